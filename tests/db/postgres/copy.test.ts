/** A database that is copied to PostgreSQL and back is the same; a copy that fails leaves nothing. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { migrate } from '../../../db/migrate.ts'
import { MIGRATIONS } from '../../../db/migrations/index.ts'
import { COPY_TABLES, copyRows, PAGE_ROWS } from '../../../db/postgres/copy.ts'
import { fromPostgres } from '../../../db/postgres/copy-postgres.ts'
import { intoSqlite, requireEmptySqlite } from '../../../db/postgres/copy-sqlite.ts'
import { copyToPostgres, copyToSqlite } from '../../../db/postgres/copy-ways.ts'
import { migratePostgres } from '../../../db/postgres/migrate.ts'
import * as schema from '../../../db/schema/all.ts'
import { fillEveryTable } from '../../support/every-table.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { ofPostgres, ofTables } from './catalogue.ts'

const NOW = 1_800_000_000_000

describe.skipIf(MAY_SKIP)('a copy of the database', () => {
  let server: PostgresServer
  let dir: string
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
    dir = mkdtempSync(join(tmpdir(), 'sluice-copy-'))
  })
  afterAll(async () => {
    await server[Symbol.asyncDispose]()
    rmSync(dir, { recursive: true, force: true })
  })

  const aUrl = async (): Promise<string> => {
    const name = `copied_${++count}`
    await server.sql.unsafe(`CREATE DATABASE ${name}`)
    return server.url.replace(/postgres$/, name)
  }
  const aPath = () => join(dir, `${++count}.db`)
  const aFile = (fill: (sqlite: Database) => void): string => {
    const path = aPath()
    using sqlite = new Database(path, { strict: true })
    migrate(sqlite, MIGRATIONS, NOW)
    fill(sqlite)
    return path
  }
  const toPostgres = (path: string, url: string) => copyToPostgres(path, url, NOW)
  const toSqlite = (url: string, path: string) => copyToSqlite(url, path, NOW)
  const countsIn = async (url: string): Promise<number> => {
    await using sql = new SQL(url, { max: 1 })
    let rows = 0
    for (const { name } of COPY_TABLES) rows += Number((await sql.unsafe(`SELECT count(*) AS n FROM "${name}"`))[0].n)
    return rows
  }

  test('is the same after the way to PostgreSQL and back', async () => {
    const path = aFile((sqlite) => fillEveryTable(sqlite, PAGE_ROWS + 3))
    const [url, back] = [await aUrl(), aPath()]
    const there = await toPostgres(path, url)
    const again = await toSqlite(url, back)
    expect(there.tables.map(({ name }) => name)).toEqual(COPY_TABLES.map(({ name }) => name))
    expect(there.tables.filter(({ rows }) => rows !== PAGE_ROWS + 3)).toEqual([])
    expect(again).toEqual(there)
    expect(there.adjusted).toBe(0)
    expect(contentOf(back)).toEqual(contentOf(path))
    await using sql = new SQL(url, { max: 1 })
    const { migrations: _, ...catalogue } = await ofPostgres(sql)
    expect(catalogue).toEqual(ofTables(schema))
  })

  test('goes on with the numbers that were given out', async () => {
    const path = aFile((sqlite) => {
      for (let n = 0; n < 5; n++)
        sqlite.run("INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'e', 'a', 'info')")
      sqlite.run('DELETE FROM audit_logs WHERE id > 2')
    })
    const [url, back] = [await aUrl(), aPath()]
    await toPostgres(path, url)
    await toSqlite(url, back)
    await using sql = new SQL(url, { max: 1 })
    const add = "INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'e', 'a', 'info') RETURNING id"
    expect(Number((await sql.unsafe(add))[0].id)).toBe(6)
    using sqlite = new Database(back)
    expect(sqlite.query(add).get()).toEqual({ id: 6 })
  })

  test('of PostgreSQL is of one moment', async () => {
    const url = await aUrl()
    await toPostgres(
      aFile((sqlite) => fillEveryTable(sqlite, 2)),
      url,
    )
    await using sql = new SQL(url, { max: 1 })
    const back = aPath()
    await fromPostgres(url, async (source) => {
      expect(await source.count(COPY_TABLES[0]!)).toBe(2)
      await sql.unsafe("INSERT INTO facts (name, value) VALUES ('later', '')")
      await intoSqlite(back, NOW, (target) => copyRows(source, target))
    })
    expect(contentOf(back).facts).toHaveLength(2)
  })

  test('stores NUL and fractions, which PostgreSQL does not, as close as it can', async () => {
    const path = aFile((sqlite) => {
      sqlite.run("INSERT INTO facts (name, value) VALUES ('nul', 'a' || char(0) || 'b')")
      sqlite.run("INSERT INTO firewall_entries (ip_address, created_at) VALUES ('::1', 1.6)")
    })
    const url = await aUrl()
    expect((await toPostgres(path, url)).adjusted).toBe(2)
    await using sql = new SQL(url, { max: 1 })
    expect(await sql`SELECT value FROM facts`.values()).toEqual([['a\uFFFDb']])
    expect(await sql`SELECT created_at::int FROM firewall_entries`.values()).toEqual([[2]])
  })

  test.each([
    [
      'a row that refers to a missing one',
      "INSERT INTO account_totals VALUES ('gone', 1, 1, 1, 1, 1)",
      /account_totals/,
    ],
    ['a value of another type', "INSERT INTO firewall_entries VALUES ('::1', 'yesterday')", /firewall_entries/],
  ])('with %s leaves PostgreSQL empty', async (_, insert, message) => {
    const path = aFile((sqlite) => {
      fillEveryTable(sqlite, 2)
      sqlite.run('PRAGMA foreign_keys = OFF')
      sqlite.run(insert)
    })
    const url = await aUrl()
    await expect(toPostgres(path, url)).rejects.toThrow(message)
    expect(await countsIn(url)).toBe(0)
    await toPostgres(
      aFile((sqlite) => fillEveryTable(sqlite, 2)),
      url,
    ) // it can be tried again
  })

  test('from PostgreSQL with a row that refers to a missing one is refused', async () => {
    const url = await aUrl()
    await toPostgres(
      aFile(() => {}),
      url,
    )
    await using sql = new SQL(url, { max: 1 })
    await sql.unsafe('ALTER TABLE account_totals DROP CONSTRAINT account_totals_account_id_fkey')
    await sql.unsafe("INSERT INTO account_totals VALUES ('gone', 1, 1, 1, 1, 1)")
    await expect(toSqlite(url, aPath())).rejects.toThrow('account_totals to accounts')
  })

  test('into a database with rows is refused with what is in it', async () => {
    const path = aFile((sqlite) => fillEveryTable(sqlite, 1))
    const url = await aUrl()
    await toPostgres(path, url)
    await expect(toPostgres(path, url)).rejects.toThrow(/is not empty.* accounts \(1\)/)
    await expect(requireEmptySqlite(path)).rejects.toThrow(/is not empty.* accounts \(1\)/)
    await requireEmptySqlite(aFile(() => {}))
  })

  test('of another release is refused', async () => {
    const path = aPath()
    {
      using sqlite = new Database(path)
      migrate(sqlite, MIGRATIONS.slice(0, -1), NOW)
    }
    const url = await aUrl()
    await expect(toPostgres(path, url)).rejects.toThrow('earlier release')
    await expect(toSqlite(url, aPath())).rejects.toThrow('no Sluice tables')
    await using sql = new SQL(url, { max: 2 })
    await migratePostgres(sql, [...MIGRATIONS, { name: '9000', sql: '' }], NOW)
    await expect(toSqlite(url, aPath())).rejects.toThrow('newer version')
    await expect(
      toPostgres(
        aFile(() => {}),
        url,
      ),
    ).rejects.toThrow('newer version')
  })
})

/** Table → rows in one order. */
const contentOf = (path: string): Record<string, string[]> => {
  using sqlite = new Database(path, { readonly: true })
  const tables = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'migrations'")
    .all()
  return Object.fromEntries(
    tables.map(({ name }) => [
      name,
      sqlite
        .query(`SELECT * FROM "${name}"`)
        .values()
        .map((row) => JSON.stringify(row))
        .sort(),
    ]),
  )
}
