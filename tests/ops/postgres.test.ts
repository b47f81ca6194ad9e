/** Backups and health checks of a database of PostgreSQL. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { MIGRATIONS } from '../../db/migrations/index.ts'
import { copyToPostgres } from '../../db/postgres/copy-ways.ts'
import { migratePostgres } from '../../db/postgres/migrate.ts'
import { requireOwnSession } from '../../db/postgres/own-session.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { makeBackup } from '../../src/ops/backup-file.ts'
import { verifyBackup } from '../../src/ops/backup-verify.ts'
import { type Finding, runChecks } from '../../src/ops/checks.ts'
import { folderChecks } from '../../src/ops/folder-checks.ts'
import { type PostgresFacts, postgresChecks, readPostgresFacts } from '../../src/ops/postgres-facts.ts'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { ManualClock } from '../support/clock.ts'
import { freePort } from '../support/free-port.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../support/postgres.ts'

const NOW = Date.UTC(2026, 10, 20)

const findings = async (facts: PostgresFacts | { unusable: string }): Promise<Record<string, Finding>> =>
  Object.fromEntries((await runChecks(postgresChecks(async () => facts))).map((finding) => [finding.id, finding]))

const FINE: PostgresFacts = {
  version: '15.14',
  bytes: 5 * 1024 * 1024,
  maxConnections: 97,
  usedConnections: 20,
  schemaProblem: null,
  isNew: false,
  poolerProblem: null,
}

describe('the doctor', () => {
  test('reports version, size and connections of PostgreSQL', async () => {
    const { database, database_connections, database_sessions } = await findings(FINE)
    expect([database, database_connections, database_sessions].map((one) => one?.verdict)).toEqual(['ok', 'ok', 'ok'])
    expect(database?.says).toBe('Version 15.14; the database takes 5 MiB.')
    expect(database_connections?.says).toStartWith('20 of 97 connections are in use')
  })

  test.each([
    ['database', { version: '13.2' }, 'problem', 'version 13.2'],
    ['database', { schemaProblem: 'It was written by a newer version.' }, 'problem', 'newer version'],
    ['database', { isNew: true }, 'unknown', 'created on first start'],
    ['database_connections', { usedConnections: 88 }, 'warning', '88 of 97'],
    ['database_sessions', { poolerProblem: 'No notifications.' }, 'problem', 'No notifications'],
  ])('%s with %j is a finding', async (id, change, verdict, says) => {
    const found = (await findings({ ...FINE, ...change }))[id]
    expect([found?.verdict, found?.says]).toEqual([verdict, expect.stringContaining(says)])
    if (verdict !== 'unknown') expect(found?.advice).not.toBeNull()
  })

  test('says once that PostgreSQL cannot be reached, without its password', async () => {
    const url = `postgres://anna:secret@127.0.0.1:${freePort()}/sluice`
    const facts = await readPostgresFacts(url, systemClock)
    const found = await findings(facts)
    expect(Object.values(found).map(({ verdict }) => verdict)).toEqual(['problem', 'unknown', 'unknown'])
    expect(found.database?.says).toStartWith('PostgreSQL at 127.0.0.1:')
    expect(JSON.stringify(found)).not.toContain('secret')
  })
})

test('a pooler that swallows notifications is noticed, and the subscription ends', async () => {
  const clock = new ManualClock()
  const calls: string[] = []
  const pooled = {
    listen: async () => ({ unlisten: async () => void calls.push('unlisten') }),
    unsafe: async (statement: string) => void calls.push(statement),
  } as unknown as SQL // as: only what is used
  const checked = requireOwnSession(pooled, clock).then(
    () => 'fine',
    (err: Error) => err.message,
  )
  await clock.advance(4999)
  expect(calls).toEqual(['SELECT pg_notify($1, $2)'])
  await clock.advance(1)
  expect(await checked).toContain('PgBouncer')
  expect(calls).toEqual(['SELECT pg_notify($1, $2)', 'unlisten'])
})

describe.skipIf(MAY_SKIP)('a database of PostgreSQL', () => {
  let server: PostgresServer
  let dir: string
  let data: string
  let url: string

  beforeAll(async () => {
    server = await startPostgres()
    dir = mkdtempSync(join(tmpdir(), 'sluice-postgres-ops-'))
    data = join(dir, 'data')
    await createDatabase(data)
    url = await aUrl('filled')
    await copyToPostgres(join(data, 'sluice.db'), url, NOW)
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  const aUrl = async (name: string): Promise<string> => {
    await server.sql.unsafe(`CREATE DATABASE ${name}`)
    return server.url.replace(/postgres$/, name)
  }

  test('is backed up into a file that can be verified, and copied back', async () => {
    const target = join(dir, 'copy.db')
    const keyFile = join(data, 'encryption.key')
    const made = await makeBackup({ source: { url, now: NOW }, target, keyFile })
    expect(made).toEqual({ file: target, bytes: statSync(target).size, keyFile: `${target}.key` })
    expect(statSync(target).mode & 0o777).toBe(0o600)
    expect(await verifyBackup(target, keyFile)).toMatchObject({
      damage: [],
      schema: 'current',
      schemaDifferences: [],
      key: 'fits',
      audit: { isWhole: true },
    })
    expect(readdirSync(dir).filter((name) => name.includes('partial'))).toEqual([])
    const again = await runInProcess(['database', 'copy', '--from', target, '--to', await aUrl('again')])
    expect([again.exitCode, again.stdout]).toEqual([0, expect.stringMatching(/^facts +[1-9]/m)])
  })

  test('is not backed up without room, with another key, or when it cannot be reached', async () => {
    const target = join(dir, 'none.db')
    const source = { url, now: NOW }
    await expect(makeBackup({ source, target, keyFile: null, roomFor: () => 1 })).rejects.toThrow(
      'Not enough free space',
    )
    const keyFile = join(dir, 'other.key')
    writeFileSync(keyFile, `${Buffer.alloc(32, 1).toString('base64url')}\n`)
    await expect(makeBackup({ source, target, keyFile })).rejects.toThrow('is not the encryption key')
    const away = { url: `postgres://a@127.0.0.1:${freePort()}/a`, now: NOW }
    await expect(makeBackup({ source: away, target, keyFile: null })).rejects.toThrow('cannot be used')
    expect(readdirSync(dir).filter((name) => name.startsWith('none'))).toEqual([])
  })

  test('is healthy', async () => {
    const checks = folderChecks({
      dir: data,
      databasePath: join(data, 'missing.db'),
      keyPath: join(data, 'encryption.key'),
      keyFingerprint: null,
      databaseFinding: null,
      backups: async () => [],
      backupIntervalHours: 0,
      now: NOW,
      postgres: () => readPostgresFacts(url, systemClock),
    })
    const found = Object.fromEntries((await runChecks(checks)).map((finding) => [finding.id, finding]))
    expect(found.database).toMatchObject({ verdict: 'ok', says: expect.stringMatching(/^Version \d+\.\d+; /) })
    expect(found.database_connections?.verdict).toBe('ok')
    expect(found.database_sessions?.verdict).toBe('ok')
    expect(found.data_folder?.verdict).toBe('ok')
  })

  test('of a newer release, or without tables, is a finding', async () => {
    const empty = await aUrl('empty')
    expect(await readPostgresFacts(empty, systemClock)).toMatchObject({ isNew: true, schemaProblem: null })
    await using sql = new SQL(empty, { max: 2 })
    await migratePostgres(sql, [...MIGRATIONS, { name: '9000', sql: '' }], NOW)
    expect(await readPostgresFacts(empty, systemClock)).toMatchObject({
      isNew: false,
      schemaProblem: expect.stringContaining('newer version'),
    })
  })
})
