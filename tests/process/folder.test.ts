/** The data folder at the start, which is private, and the log, which may be unwritable and has one event per line. */
import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, openSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { acquireFolderLock } from '../../db/lock.ts'
import { migrate } from '../../db/migrate.ts'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/open.ts'
import { freePort } from '../support/free-port.ts'
import { PROGRAM, runCommand, spawnServer, untilGreeted } from '../support/spawn.ts'
import { until } from '../support/until.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'sluice-folder-'))
})
afterEach(() => rmSync(dataDir, { recursive: true }))

/** As an earlier release has left it. */
const older = () => {
  const { sqlite } = openDatabase(join(dataDir, 'sluice.db'))
  migrate(sqlite, MIGRATIONS.slice(0, -1), 1)
  sqlite.close()
}
const applied = (): number => {
  const sqlite = new Database(join(dataDir, 'sluice.db'), { readonly: true })
  const [row] = sqlite.query<{ count: number }, []>('SELECT count(*) AS count FROM migrations').all()
  sqlite.close()
  return row!.count // a count is one row
}

test('nothing changes the schema under a running server of an earlier release', async () => {
  older()
  const { release } = acquireFolderLock(dataDir)
  const env = { HOST: '127.0.0.1', PORT: String(freePort()) }
  const second = await runCommand(['serve'], { dataDir, env })
  expect([second.exitCode, second.stderr]).toEqual([1, expect.stringContaining('Another server')])
  const list = await runCommand(['keys', 'list'], { dataDir })
  expect([list.exitCode, list.stderr]).toEqual([1, expect.stringContaining('older release')])
  expect(list.stderr).toContain('Restart it first')
  expect(applied()).toBe(MIGRATIONS.length - 1)
  release()
  expect((await runCommand(['keys', 'list'], { dataDir })).exitCode).toBe(0)
  expect(applied()).toBe(MIGRATIONS.length)
}, 120_000)

test('a shared folder stays unchanged, and an empty one becomes private', async () => {
  const mode = () => statSync(dataDir).mode & 0o7777
  chmodSync(dataDir, 0o1777)
  writeFileSync(join(dataDir, 'of somebody else'), '')
  for (const command of ['serve', 'keys create --name a']) {
    const { exitCode, stderr } = await runCommand(command.split(' '), { dataDir })
    expect([exitCode, stderr]).toEqual([
      1,
      `sluice: The data folder ${dataDir} is shared by all users of this machine. Set SLUICE_DATA_DIR to a folder in it.\n`,
    ])
  }
  expect([mode(), readdirSync(dataDir)]).toEqual([0o1777, ['of somebody else']])
  rmSync(join(dataDir, 'of somebody else'))
  expect((await runCommand(['keys', 'create', '--name', 'a'], { dataDir })).exitCode).toBe(0)
  expect(mode()).toBe(0o700)
})

test('simultaneous commands migrate a folder once, and none takes another for a server', async () => {
  older()
  const all = await Promise.all(Array.from({ length: 4 }, () => runCommand(['keys', 'list'], { dataDir })))
  expect(all.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(Array(4).fill([0, '']))
  expect(applied()).toBe(MIGRATIONS.length)
})

test('pages work wherever it is started from', async () => {
  const command = [process.execPath, resolve(import.meta.dir, '../../src/main.ts')]
  await using server = await spawnServer({ cwd: dataDir, command })
  expect((await fetch(`${server.url}/dashboard`)).status).toBe(200)
})

test('a log that cannot be written stops neither requests nor the exit', async () => {
  const port = freePort()
  const full = openSync('/dev/full', 'w')
  const child = Bun.spawn([...PROGRAM, 'serve'], {
    env: { PATH: process.env.PATH ?? '', CODEX_LB_DATA_DIR: dataDir, HOST: '127.0.0.1', PORT: String(port) },
    stdio: ['ignore', full, full],
  })
  try {
    const live = () => fetch(`http://127.0.0.1:${port}/health/live`, { signal: AbortSignal.timeout(20_000) })
    await until(async () => (await live().catch(() => null))?.ok === true) // rejected while it starts
    for (let n = 0; n < 5; n++) expect((await live()).status).toBe(200)
    child.kill('SIGTERM')
    expect(await child.exited).toBe(0)
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
}, 120_000)

test('a JSON log contains only JSON, from the first line on', async () => {
  await using server = await spawnServer({ env: { CODEX_LB_LOG_FORMAT: 'json' } })
  await untilGreeted(server)
  await server.stop()
  const lines = server
    .output()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines).toContainEqual(expect.objectContaining({ message: 'listening', url: server.url, accounts: 0 }))
})
