/** The output of `serve` at its start: the address, the data it uses, and what the reader may need to do. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '../../package.json'
import { runInProcess } from '../support/cli.ts'
import { FROM_SOURCE, runCommand, spawnServer, untilGreeted } from '../support/spawn.ts'
import { createUpstream } from '../support/upstream/app.ts'

let dataDir: string

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-cli-start-'))
})

afterEach(() => rmSync(dataDir, { recursive: true }))

/** Nothing listens there, so that no account finds out anything about itself. */
const NOWHERE = { SLUICE_UPSTREAM_BASE_URL: 'http://127.0.0.1:1', SLUICE_AUTH_BASE_URL: 'http://127.0.0.1:1' }

const startLines = async (env: Record<string, string> = {}) => {
  await using server = await spawnServer({
    command: FROM_SOURCE,
    dataDir,
    env: { SLUICE_LOG_LEVEL: 'info', ...NOWHERE, ...env },
  })
  const { url } = server
  await untilGreeted(server)
  await server.stop()
  const lines = server.output().trim().split('\n')
  return { url, output: server.output(), greeting: lines.filter((line) => !/^\d{4}-/.test(line)) }
}

const addAccount = async (email: string) => {
  const file = join(dataDir, `${email}.json`)
  writeFileSync(file, createUpstream().addAccount({ email, plan: 'pro' }).authJson())
  await runInProcess(['accounts', 'import', file], { dataDir })
}

test('an empty install says in four lines where it is and what to do next', async () => {
  const { url, output, greeting } = await startLines()
  expect(greeting).toEqual([
    `Sluice ${version} is listening on ${url}`,
    `Dashboard: ${url}/dashboard`,
    `Data folder: ${dataDir}`,
    '0 accounts, 0 keys. Add an account in the dashboard or with "npm run sluice -- accounts add".',
  ])
  expect(output).not.toContain('bootstrap')
  expect(output).not.toContain('WARN')
})

test('accounts and keys are counted, with those that need attention', async () => {
  for (const name of ['ada', 'bob', 'eve']) await addAccount(`${name}@example.test`)
  await runInProcess(['accounts', 'pause', 'eve@example.test'], { dataDir })
  await runInProcess(['keys', 'create', '--name', 'laptop'], { dataDir })
  const { greeting } = await startLines()
  expect(greeting.slice(3)).toEqual(['3 accounts (1 paused), 1 key'])
})

test('a server that other machines can reach shows the bootstrap token until a password is set', async () => {
  const beyond = { HOST: '0.0.0.0' }
  const first = await startLines(beyond)
  expect(first.output).toMatch(/INFO {2}No password is set yet\. To set the first one .* bootstrap=[\w-]{43}$/m)
  expect(first.greeting.slice(4)).toEqual([
    'Clients on other machines are rejected until you run "npm run sluice -- settings set apiKeyAuthEnabled=true".',
  ])
  await runCommand(['user', 'create-admin', 'admin'], { dataDir, stdin: 'a long password' })
  await runInProcess(['settings', 'set', 'apiKeyAuthEnabled=true'], { dataDir })
  const second = await startLines(beyond)
  expect(second.output).not.toContain('bootstrap')
  expect(second.greeting).toHaveLength(4)
})

test('unknown variables and contradictions are reported once', async () => {
  const { output } = await startLines({ SLUICE_DESSERT: 'yes', CODEX_LB_LOG_LEVEL: 'debug' })
  expect(output.match(/SLUICE_DESSERT/g)).toHaveLength(1)
  expect(output).toContain('WARN  SLUICE_LOG_LEVEL and CODEX_LB_LOG_LEVEL are set to different values.')
})
