/** Commands in a folder without a database: reading creates nothing, and the error explains how to start. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli } from '../../src/cli/main.ts'

let parent: string
let dataDir: string

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sluice-empty-'))
  dataDir = join(parent, 'data')
})
afterEach(() => rmSync(parent, { recursive: true }))

const cli = async (...argv: string[]) => {
  const said: Record<'stdout' | 'stderr', string[]> = { stdout: [], stderr: [] }
  const exitCode = await runCli(argv, {
    environment: { SLUICE_DATA_DIR: dataDir, PORT: '1' },
    stdout: (text) => void said.stdout.push(text),
    stderr: (text) => void said.stderr.push(text),
    fetch: Object.assign(() => Promise.reject(new TypeError('refused')), { preconnect: () => {} }),
    timeout: () => new AbortController().signal,
  })
  return { exitCode, stdout: said.stdout.join(''), stderr: said.stderr.join('') }
}

const READS = [
  'status',
  'status --json',
  'logs',
  'logs -f',
  'explain --model gpt-5.5',
  'accounts list',
  'accounts pause ada@example.com',
  'accounts edit ada@example.com --alias ada',
  'keys list --json',
  'keys revoke laptop',
  'keys edit laptop --name desk',
  'keys regenerate laptop',
  'keys test laptop',
  'settings get',
  'user list',
  'user reset-totp anna',
  'bootstrap-token',
  'audit verify',
]

test.each(READS)('%s says that there is no database', async (command) => {
  const { exitCode, stdout, stderr } = await cli(...command.split(' '))
  expect([exitCode, stdout]).toEqual([1, ''])
  expect(stderr).toBe(
    `sluice: There is no database in ${dataDir} yet. To create one, start the server: npm run sluice -- serve\n` +
      'If your data is in another folder, set SLUICE_DATA_DIR.\n',
  )
  expect(existsSync(dataDir)).toBe(false)
})

test.each(['status', 'keys list', 'audit verify'])('%s leaves an existing folder unchanged', async (command) => {
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, '.env'), '')
  expect((await cli(...command.split(' '))).exitCode).toBe(1)
  expect(readdirSync(dataDir)).toEqual(['.env'])
})

test.each(['keys create --name laptop', 'settings set backupKeep=3', 'bootstrap-token --rotate'])(
  '%s creates the database and names it once',
  async (command) => {
    const { exitCode, stderr } = await cli(...command.split(' '))
    expect(exitCode).toBe(0)
    expect(stderr).toContain(`Created a new database: ${join(dataDir, 'sluice.db')}.`)
    expect((await cli('settings', 'get')).stderr).toBe('')
  },
)
