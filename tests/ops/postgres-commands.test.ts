/** Commands with SLUICE_DATABASE_URL use PostgreSQL, and create no file of SQLite. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { copyToPostgres } from '../../db/postgres/copy-ways.ts'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../support/postgres.ts'

describe.skipIf(MAY_SKIP)('with PostgreSQL', () => {
  let server: PostgresServer
  let dataDir: string

  beforeAll(async () => {
    server = await startPostgres()
    dataDir = mkdtempSync(join(tmpdir(), 'sluice-postgres-commands-'))
    await createDatabase(dataDir)
    await copyToPostgres(join(dataDir, 'sluice.db'), server.url, 1)
    rmSync(join(dataDir, 'sluice.db'))
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dataDir, { recursive: true, force: true })
  })

  const run = (...args: string[]) => runInProcess(args, { dataDir, env: { SLUICE_DATABASE_URL: server.url } })

  test('"sluice backup" writes a file into the data folder, which "sluice backup verify" accepts', async () => {
    const { exitCode, stdout } = await run('backup')
    const [name] = readdirSync(join(dataDir, 'backups'))
    expect([exitCode, stdout]).toEqual([0, `${join(dataDir, 'backups', name ?? '')}\n`])
    const verified = await run('backup', 'verify', stdout.trim())
    expect([verified.exitCode, verified.stdout]).toEqual([
      0,
      expect.stringContaining('OK: this backup can be restored.'),
    ])
  })

  test('"sluice restore" says which command to use, and changes nothing', async () => {
    const { exitCode, stderr } = await run('restore', join(dataDir, 'any.db'))
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('sluice database copy --from FILE --to postgres://'),
    ])
    expect(readdirSync(dataDir)).not.toContain('sluice.db')
  })

  test('commands read and write PostgreSQL', async () => {
    const created = await run('keys', 'create', '--name', 'laptop')
    expect([created.exitCode, created.stderr]).toEqual([0, expect.not.stringContaining('new database')])
    expect((await run('keys', 'list')).stdout).toContain('laptop')
    expect((await run('audit', 'verify')).stdout).toContain('Verified: ')
    expect(readdirSync(dataDir)).not.toContain('sluice.db')
  })

  test('"sluice doctor" checks PostgreSQL, and the key of its database', async () => {
    const { findings } = JSON.parse((await run('doctor', '--json')).stdout)
    const verdicts = Object.fromEntries(
      findings.map(({ id, verdict }: { id: string; verdict: string }) => [id, verdict]),
    )
    expect(verdicts).toMatchObject({
      data_folder: 'ok',
      database: 'ok',
      database_connections: 'ok',
      database_sessions: 'ok',
      key_file: 'ok',
    })
  })
})
