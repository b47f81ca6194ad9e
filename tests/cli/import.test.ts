/** `sluice import` and `sluice export accounts`. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { listAccounts } from '../../src/model/accounts/accounts.ts'
import { hashKey, listKeys } from '../../src/model/keys/api-keys.ts'
import { readSettings } from '../../src/settings/store.ts'
import { runInProcess } from '../support/cli.ts'
import { createCodexLb, FORMS } from '../support/imports.ts'
import { createUpstream } from '../support/upstream/app.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-import-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const KEY = 'sk-clb-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG'
const upstream = createUpstream()
const at = (...names: string[]) => join(folder, ...names)
const sluice = (...args: string[]) => runInProcess(args, { dataDir: at('data') })
const stored = async (dataDir = at('data')) => {
  const { sqlite, db } = openDatabase(join(dataDir, 'sluice.db'))
  try {
    const { values: settings } = await readSettings(db)
    return { accounts: await listAccounts(db), keys: await listKeys(db, 'all'), settings }
  } finally {
    sqlite.close()
  }
}

const peer = () =>
  createCodexLb(at('peer'), {
    accounts: [{ sim: upstream.addAccount({ email: 'ada@example.test' }), alias: 'work' }],
    keys: [{ key: KEY, name: 'laptop' }],
    settings: { routing_strategy: 'round_robin', api_key_auth_enabled: 1 },
  })

test('shows a plan of a codex-lb folder, writes nothing without --apply, and imports with it', async () => {
  peer()
  const plan = await sluice('import', at('peer'))
  expect(plan.exitCode).toBe(0)
  expect(plan.stdout).toContain('store.db (codex-lb)')
  expect(plan.stdout).toContain('Stop codex-lb before you use these accounts here.')
  expect(plan.stdout).toContain('To import: 1 account, 1 API key.')
  expect(plan.stdout).toContain('Not included: 2 settings. Add --settings to import them.')
  expect(plan.stdout).toContain('run the same command with --apply')
  expect((await stored()).accounts).toEqual([])
  const done = await sluice('import', at('peer'), '--apply')
  expect(done.exitCode).toBe(0)
  expect(done.stdout).toContain('2 imported, 0 joined')
  const { accounts, keys, settings } = await stored()
  expect(accounts).toMatchObject([{ email: 'ada@example.test', alias: 'work', status: 'active' }])
  expect(keys).toMatchObject([{ name: 'laptop', keyHash: hashKey(KEY), ownerUserId: null }])
  expect(settings).toMatchObject({ routingStrategy: 'capacity_weighted', apiKeyAuthEnabled: false })
})

test('--settings and --pause', async () => {
  peer()
  await sluice('import', at('peer'), '--apply', '--settings', '--pause')
  const { accounts, settings } = await stored()
  expect(accounts).toMatchObject([{ status: 'paused' }])
  expect(settings).toMatchObject({ routingStrategy: 'round_robin', apiKeyAuthEnabled: true })
})

test('reads a folder of token files, and prints JSON without secrets', async () => {
  const sim = upstream.addAccount()
  await Bun.write(at('auths', 'codex-a.json'), JSON.stringify(FORMS.cliproxyapi?.(sim)))
  await Bun.write(at('auths', 'claude-b.json'), JSON.stringify({ type: 'claude', access_token: 'secret' }))
  const { stdout } = await sluice('import', at('auths'), '--json')
  expect(JSON.parse(stdout).items).toMatchObject([
    { kind: 'account', label: sim.email, verdict: 'new' },
    { kind: 'account', label: 'claude-b.json', verdict: 'broken' },
  ])
  expect(stdout).not.toContain(sim.refreshToken)
  expect((await sluice('import', at('auths'), '--from', 'codex-lb')).stderr).toContain(
    'is from CLIProxyAPI, not from codex-lb',
  )
})

test('a running codex-lb is named, and so are a missing path and an unknown format', async () => {
  writeFileSync(`${peer()}-wal`, '')
  const { exitCode, stderr } = await sluice('import', at('peer'))
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringContaining('store.db is in use, or was not closed properly. Stop codex-lb and try again.'),
  ])
  expect(await sluice('import', at('nowhere'))).toMatchObject({ exitCode: 2 })
  expect(await sluice('import', at('peer'), '--from', 'x')).toMatchObject({ exitCode: 2 })
})

test('an export is readable by its owner only, and by another Sluice with the passphrase', async () => {
  peer()
  await sluice('import', at('peer'), '--apply')
  writeFileSync(at('short'), 'short\n')
  writeFileSync(at('passphrase'), 'correct horse battery\n')
  const out = at('accounts.sluice.json')
  expect(await sluice('export', 'accounts', '--out', out, '--passphrase-file', at('short'))).toMatchObject({
    exitCode: 2,
  })
  const exported = await sluice('export', 'accounts', '--out', out, '--passphrase-file', at('passphrase'))
  expect(exported).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('Exported 1 account') })
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const again = await sluice('export', 'accounts', '--out', out, '--passphrase-file', at('passphrase'))
  expect(again).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('already exists') })
  const other = at('other')
  const args = ['import', out, '--passphrase-file', at('passphrase'), '--apply']
  expect(await runInProcess(args, { dataDir: other })).toMatchObject({ exitCode: 0 })
  expect((await stored(other)).accounts).toMatchObject([{ email: 'ada@example.test', alias: 'work' }])
  expect(existsSync(at('peer', 'store.db'))).toBe(true)
})
