/** `sluice accounts edit`, and the options of `sluice keys` for tags and fast mode. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { getTags } from '../../src/model/accounts/account-tags.ts'
import { listAccounts } from '../../src/model/accounts/accounts.ts'
import { listKeys } from '../../src/model/keys/api-keys.ts'
import { runInProcess } from '../support/cli.ts'
import { createUpstream } from '../support/upstream/app.ts'

let dataDir = ''
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-edit-'))
  const account = createUpstream().addAccount({ email: 'ada@example.test', plan: 'pro' })
  const file = join(dataDir, 'ada.json')
  writeFileSync(file, account.authJson())
  await sluice('accounts', 'import', file)
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const sluice = (...args: string[]) => runInProcess(args, { dataDir })
const edit = (...args: string[]) => sluice('accounts', 'edit', 'ada@example.test', ...args)
const stored = async () => {
  const { sqlite, db } = openDatabase(join(dataDir, 'sluice.db'))
  try {
    const [account] = await listAccounts(db)
    return { ...account!, tags: await getTags(db, account!.id), keys: await listKeys(db, 'all') } // it was imported
  } finally {
    sqlite.close()
  }
}

test('caps, tags, order and policy are set and cleared', async () => {
  const set = [
    '--max-5h',
    '60',
    '--max-week',
    '80',
    '--tag',
    'b',
    '--tag',
    'a',
    '--position',
    '1',
    '--policy',
    'preserve',
  ]
  expect(await edit(...set)).toEqual({ exitCode: 0, stdout: 'Changed ada@example.test.\n', stderr: '' })
  expect(await stored()).toMatchObject({
    maxUsedPercentPrimary: 60,
    maxUsedPercentSecondary: 80,
    tags: ['a', 'b'],
    position: 1,
    routingPolicy: 'preserve',
  })
  await edit('--max-5h', 'none', '--remove-tags', '--position', 'none')
  expect(await stored()).toMatchObject({
    maxUsedPercentPrimary: null,
    maxUsedPercentSecondary: 80,
    tags: [],
    position: null,
  })
})

test.each([
  [['--max-week', '101'], '--max-week must be a percentage from 1 to 100, or none.'],
  [['--max-5h', '0'], '--max-5h must be a percentage from 1 to 100, or none.'],
  [['--position', '0'], '--position must be a place from 1, or none.'],
  [['--tag', 'x'.repeat(41)], '--tag must be of 1 to 40 characters'],
  [['--policy', 'first'], '--policy must be one of'],
  [['--reserve-for-owner', 'maybe'], '--reserve-for-owner must be yes or no.'],
  [[], 'Nothing to change.'],
])('%j is a usage error', async (args, says) => {
  const { exitCode, stderr } = await edit(...args)
  expect(exitCode).toBe(2)
  expect(stderr).toContain(says)
})

test('an exemption needs an owner, and an unknown one is named', async () => {
  expect((await edit('--reserve-for-owner', 'yes')).exitCode).toBe(1)
  const { exitCode, stderr } = await edit('--owner', 'ada')
  expect([exitCode, stderr]).toEqual([1, expect.stringContaining('There is no user "ada"')])
})

test('keys get and lose tags and a rule for fast mode', async () => {
  const made = await sluice('keys', 'create', '--name', 'ci', '--account-tag', 'team', '--prohibit-fast-mode', 'strip')
  expect(made.exitCode).toBe(0)
  expect((await stored()).keys).toMatchObject([{ assignedTags: ['team'], prohibitFastMode: 'strip' }])
  expect((await sluice('keys', 'edit', 'ci', '--all-accounts', '--prohibit-fast-mode', 'default')).exitCode).toBe(0)
  expect((await stored()).keys).toMatchObject([{ assignedTags: null, prohibitFastMode: null }])
  expect((await sluice('keys', 'edit', 'ci', '--prohibit-fast-mode', 'never')).exitCode).toBe(2)
})

test('keys get and lose models for Claude names', async () => {
  const opus = { model: 'gpt-5.5:cloud', effort: 'high' }
  const args = ['--claude-model', 'opus=gpt-5.5:cloud:high', '--claude-model', 'haiku=gpt-5.4']
  expect((await sluice('keys', 'create', '--name', 'ci', ...args)).exitCode).toBe(0)
  expect((await stored()).keys[0]?.claudeModels).toEqual({
    opus,
    sonnet: null,
    haiku: { model: 'gpt-5.4', effort: null },
  })
  const local = ['--claude-model', 'opus=qwen3:8b', '--claude-model', 'sonnet=qwen3:8b:low']
  expect((await sluice('keys', 'edit', 'ci', ...local, '--claude-model', 'haiku=llama4:latest')).exitCode).toBe(0)
  expect((await stored()).keys[0]?.claudeModels).toEqual({
    opus: { model: 'qwen3:8b', effort: null },
    sonnet: { model: 'qwen3:8b', effort: 'low' },
    haiku: { model: 'llama4:latest', effort: null },
  })
  expect((await sluice('keys', 'edit', 'ci', '--claude-model', 'default')).exitCode).toBe(0)
  expect((await stored()).keys[0]?.claudeModels).toBeNull()
  const wrong = await sluice('keys', 'edit', 'ci', '--claude-model', 'fable=gpt-5.5')
  expect([wrong.exitCode, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('is not SIZE=MODEL[:EFFORT]. Sizes: opus'),
  ])
})

test('the setting for Claude names is set as JSON', async () => {
  const set = await sluice('settings', 'set', 'claudeModels={"opus":{"model":"gpt-5.5"}}')
  expect(set.stdout).toContain('"opus":{"model":"gpt-5.5","effort":null}')
  const wrong = await sluice('settings', 'set', 'claudeModels={"large":{"model":"gpt-5.5"}}')
  expect([wrong.exitCode, wrong.stderr]).toEqual([
    2,
    expect.stringContaining('claudeModels must be JSON with opus, sonnet, haiku, not'),
  ])
})
