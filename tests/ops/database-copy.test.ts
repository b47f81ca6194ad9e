/** `sluice database copy` moves a data folder to PostgreSQL and back, and refuses what would lose something. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { acquireFolderLock } from '../../db/lock.ts'
import { PostgresSession } from '../../db/postgres/session.ts'
import { addToUpstream } from '../../scripts/demo/pool.ts'
import { seedDemo } from '../../scripts/demo/seed.ts'
import { createDatabase, runInProcess } from '../support/cli.ts'
import { ManualClock } from '../support/clock.ts'
import { dump } from '../support/dump.ts'
import { freePort } from '../support/free-port.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../support/postgres.ts'
import { createUpstream } from '../support/upstream/app.ts'

const copy = (from: string, to: string, ...more: string[]) =>
  runInProcess(['database', 'copy', '--from', from, '--to', to, ...more])

describe('sluice database copy', () => {
  test.each([
    [[], 2, 'Both --from and --to are needed'],
    [['--from', '/a'], 2, 'Both --from and --to are needed'],
    [['--from', '/a', '--to', '/b'], 1, 'Both are files. Use "sluice backup"'],
    [['--from', 'postgres://a/b', '--to', 'postgresql://c/d'], 1, 'Use pg_dump'],
    [['--from', '/missing', '--to', 'postgres://a/b'], 1, 'There is no database at /missing/sluice.db'],
  ])('%j is refused', async (options, code, message) => {
    const { exitCode, stdout, stderr } = await runInProcess(['database', 'copy', ...options])
    expect([exitCode, stdout]).toEqual([code, ''])
    expect(stderr).toContain(message)
  })
})

describe.skipIf(MAY_SKIP)('sluice database copy with PostgreSQL', () => {
  let server: PostgresServer
  let dir: string
  let source: string
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
    dir = mkdtempSync(join(tmpdir(), 'sluice-move-'))
    source = join(dir, 'source')
    const now = Date.UTC(2026, 10, 20, 12)
    const upstream = createUpstream({ now: () => now })
    addToUpstream(upstream, now)
    await seedDemo({ dataDir: source, upstream, now, seed: 1, requests: 3000 })
  }, 120_000)
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  const aUrl = async (): Promise<string> => {
    const name = `moved_${++count}`
    await server.sql.unsafe(`CREATE DATABASE ${name}`)
    return server.url.replace(/postgres$/, name)
  }

  test('moves a filled folder there and back', async () => {
    const url = await aUrl()
    const there = await copy(source, url)
    expect([there.exitCode, there.stderr]).toEqual([0, expect.stringContaining('set SLUICE_DATABASE_URL')])
    expect(there.stdout).toMatch(/^TABLE +ROWS\n/)
    expect(there.stdout).toMatch(/^requests +3000$/m)
    const target = join(dir, 'back')
    const back = await copy(url, target, '--json')
    expect([back.exitCode, back.stderr]).toEqual([0, ''])
    expect(JSON.parse(back.stdout)).toEqual({
      tables: expect.arrayContaining([{ name: 'requests', rows: 3000 }]),
      adjusted: 0,
    })
    expect(readdirSync(target).sort()).toEqual(['sluice.db', 'sluice.lock'])
    expect(statSync(join(target, 'sluice.db')).mode & 0o777).toBe(0o600)
    expect(contentOf(target)).toEqual(contentOf(source))
    cpSync(join(source, 'encryption.key'), join(target, 'encryption.key'))
    const verified = await runInProcess(['backup', 'verify', join(target, 'sluice.db')], { dataDir: target })
    expect(verified.stdout).toContain('OK: this backup can be restored.')
    expect(verified.stdout).toContain('Audit log: verified')
  }, 120_000)

  test('is refused while a server uses the folder', async () => {
    const url = await aUrl()
    const lock = acquireFolderLock(source)
    try {
      const { exitCode, stderr } = await copy(source, url)
      expect([exitCode, stderr]).toEqual([1, expect.stringContaining('is using the folder')])
      const file = await copy(join(source, 'sluice.db'), url)
      expect([file.exitCode, file.stderr]).toEqual([1, expect.stringContaining('is using the folder')])
      const back = await copy(url, source)
      expect([back.exitCode, back.stderr]).toEqual([1, expect.stringContaining('is using the folder')])
    } finally {
      lock.release()
    }
  })

  test('is refused while a node uses PostgreSQL', async () => {
    const url = await aUrl()
    const session = await PostgresSession.open({ url, clock: new ManualClock(), number: 7 })
    const target = join(dir, 'beside')
    for (const result of [await copy(source, url), await copy(url, target)])
      expect([result.exitCode, result.stderr]).toEqual([1, expect.stringContaining('(1 node). Stop it first.')])
    await session.close()
    expect((await copy(source, url)).exitCode).toBe(0)
    expect((await copy(url, target)).exitCode).toBe(0)
  }, 120_000)

  test('is refused if the target has data, which stays as it is', async () => {
    const url = await aUrl()
    expect((await copy(source, url)).exitCode).toBe(0)
    const again = await copy(source, url)
    expect([again.exitCode, again.stderr]).toEqual([1, expect.stringMatching(/not empty.* requests \(3000\)/)])
    const used = join(dir, 'used')
    await createDatabase(used)
    const before = contentOf(used)
    const back = await copy(url, used)
    expect([back.exitCode, back.stderr]).toEqual([1, expect.stringMatching(/not empty.* facts \(\d\)/)])
    expect(contentOf(used)).toEqual(before)
    const other = join(dir, 'other.db')
    writeFileSync(other, 'a text')
    expect((await copy(url, other)).exitCode).toBe(1)
    expect(await Bun.file(other).text()).toBe('a text')
  }, 120_000)

  test('leaves no file if PostgreSQL has nothing to copy or cannot be reached', async () => {
    const target = join(dir, 'new')
    const empty = await copy(await aUrl(), target)
    expect([empty.exitCode, empty.stderr]).toEqual([1, expect.stringContaining('no Sluice tables')])
    const away = await copy(`postgres://user:secret@127.0.0.1:${freePort()}/a`, target)
    expect([away.exitCode, away.stderr]).toEqual([
      1,
      expect.stringMatching(/PostgreSQL at 127\.0\.0\.1:\d+ cannot be used/),
    ])
    expect(away.stderr).not.toContain('secret')
    expect(existsSync(join(target, 'sluice.db'))).toBe(false)
    expect(existsSync(join(target, 'sluice.db.partial'))).toBe(false)
  })
})

const contentOf = (folder: string) => {
  using sqlite = new Database(join(folder, 'sluice.db'), { readonly: true })
  const { migrations: _, ...rest } = dump(sqlite)
  return Object.fromEntries(
    Object.entries(rest).map(([name, rows]) => [name, rows.map((row) => JSON.stringify(row)).sort()]),
  )
}
