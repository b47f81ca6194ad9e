/** Migrations on PostgreSQL: several nodes at once, each migration all or nothing, with the same result as on SQLite. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { SQL } from 'bun'
import { breakingMigrations, migrate } from '../../../db/migrate.ts'
import { getStatements, type Migration } from '../../../db/migration.ts'
import { MIGRATIONS } from '../../../db/migrations/index.ts'
import { breakingPostgresMigrations, migratePostgres } from '../../../db/postgres/migrate.ts'
import { translate } from '../../../db/postgres/translate.ts'
import * as schema from '../../../db/schema/all.ts'
import { MAY_SKIP, type PostgresServer, startPostgres } from '../../support/postgres.ts'
import { type Catalogue, ofPostgres, ofSqlite, ofTables } from './catalogue.ts'

/** The last one that rebuilds a table and has no text for PostgreSQL: no release before it ran there. */
const LAST_REBUILD = '0017_model_sources'
const NAMES = MIGRATIONS.map(({ name }) => name)

const aTable: Migration = { name: '9000_table', sql: 'CREATE TABLE `extra` (`id` text PRIMARY KEY NOT NULL);' }
const aColumn: Migration = { name: '9001_column', sql: 'ALTER TABLE `extra` ADD `n` integer DEFAULT 3 NOT NULL;' }
const aRow: Migration = { name: '9002_row', sql: "INSERT INTO `extra` (`id`) VALUES ('a');" }

test('every migration that a released node can miss is translated', () => {
  for (const migration of MIGRATIONS.filter(({ name }) => name > LAST_REBUILD))
    expect(() => translate(migration)).not.toThrow()
})

test('a statement that cannot be translated needs a text of its own', () => {
  const rebuilt: Migration = { name: '9003_rebuilt', sql: 'PRAGMA foreign_keys=OFF;' }
  const renamed: Migration = { name: '9004_renamed', sql: 'ALTER TABLE `new_a` RENAME TO `a`;' }
  for (const migration of [rebuilt, renamed])
    expect(() => translate(migration)).toThrow(`${migration.name} has a statement`)
  expect(translate({ ...rebuilt, postgres: 'SELECT 1;--> statement-breakpoint\n-- why\nSELECT 2' })).toEqual([
    'SELECT 1;',
    'SELECT 2',
  ])
})

describe.skipIf(MAY_SKIP)('migrations on PostgreSQL', () => {
  let server: PostgresServer
  const open: SQL[] = []
  let count = 0

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(async () => {
    for (const sql of open) await sql.close()
    await server[Symbol.asyncDispose]()
  })

  const anEmptyDatabase = async (): Promise<SQL> => {
    const name = `migrated_${++count}`
    await server.sql.unsafe(`CREATE DATABASE ${name}`)
    const sql = new SQL(server.url.replace(/postgres$/, name), { max: 4 })
    open.push(sql)
    return sql
  }

  const aDatabase = async (): Promise<SQL> => {
    const sql = await anEmptyDatabase()
    await migratePostgres(sql, MIGRATIONS, 7)
    return sql
  }

  const catalogueOf = async (sql: SQL): Promise<Catalogue> => {
    const { migrations: _, ...rest } = await ofPostgres(sql)
    return rest
  }

  const applied = async (sql: SQL): Promise<unknown[]> =>
    [...(await sql.unsafe('SELECT name FROM migrations ORDER BY name').values())].flat()

  test('a new database is created once although several nodes start', async () => {
    const sql = await anEmptyDatabase()
    const starts = await Promise.all([1, 2, 3].map(() => migratePostgres(sql, MIGRATIONS, 7)))
    expect(starts.toSorted((a, b) => b.length - a.length)).toEqual([NAMES, [], []])
    expect(await catalogueOf(sql)).toEqual(ofTables(schema))
    expect(await applied(sql)).toEqual(NAMES)
    const [row] = await sql`SELECT DISTINCT applied_at::int AS at FROM migrations`
    expect(row.at).toBe(7)
  })

  test('missing migrations are applied once although several nodes start', async () => {
    const sql = await aDatabase()
    const starts = await Promise.all(
      [1, 2, 3].map(() => migratePostgres(sql, [...MIGRATIONS, aTable, aColumn, aRow], 8)),
    )
    expect(starts.flat().toSorted()).toEqual([aTable.name, aColumn.name, aRow.name])
    expect(await sql`SELECT id, n::int FROM extra`.values()).toEqual([['a', 3]])
    expect(await migratePostgres(sql, [...MIGRATIONS, aTable, aColumn, aRow], 9)).toEqual([])
  })

  test('a failing migration leaves nothing of itself and keeps the earlier ones', async () => {
    const sql = await aDatabase()
    const bad: Migration = {
      name: '9001_bad',
      sql: 'CREATE TABLE `more` (`id` text);--> statement-breakpoint\nDROP TABLE `missing`;',
    }
    await expect(migratePostgres(sql, [...MIGRATIONS, aTable, bad], 8)).rejects.toThrow('9001_bad failed')
    expect((await applied(sql)).slice(-2)).toEqual([NAMES.at(-1), aTable.name])
    expect(Object.keys(await catalogueOf(sql))).not.toContain('more')
  })

  test('an edited, newer or missing migration is rejected as on SQLite', async () => {
    const sql = await aDatabase()
    const edited = MIGRATIONS.map((one, i) => (i === 3 ? { ...one, sql: `${one.sql} ` } : one))
    await expect(migratePostgres(sql, edited, 8)).rejects.toThrow(`${NAMES[3]} was edited after it was applied`)
    await expect(migratePostgres(sql, MIGRATIONS.slice(0, -1), 8)).rejects.toThrow('written by a newer version')
    const before: Migration = { name: '0001_between', sql: 'CREATE TABLE `between` (`id` text);' }
    await expect(migratePostgres(sql, [...MIGRATIONS, before], 8)).rejects.toThrow('A migration is missing before')
    expect(await applied(sql)).toEqual(NAMES)
  })

  test('tables of another program are not touched', async () => {
    const sql = await anEmptyDatabase()
    await sql.unsafe('CREATE TABLE settings (id integer)')
    await expect(migratePostgres(sql, MIGRATIONS, 7)).rejects.toThrow('a table settings from another program')
    expect(Object.keys(await ofPostgres(sql))).toEqual(['settings'])
  })

  test('an older node can work on with tables and columns that are added, not with others', async () => {
    const dropped: Migration = { name: '9002_dropped', sql: 'ALTER TABLE `extra` DROP COLUMN `n`;' }
    const all = [...MIGRATIONS, aTable, aColumn, dropped]
    const sql = await aDatabase()
    expect(await breakingPostgresMigrations(sql, all)).toEqual([dropped.name])
    using sqlite = new Database(':memory:')
    migrate(sqlite, MIGRATIONS, 7)
    expect(breakingMigrations(sqlite, all)).toEqual([dropped.name])
    expect(await breakingPostgresMigrations(await anEmptyDatabase(), all)).toEqual([])
    await migratePostgres(sql, [...MIGRATIONS, aTable], 8)
    await sql`INSERT INTO firewall_entries VALUES ('::1', 1)` // as a node of the older release does
  })

  test('translated migrations create what they create on SQLite', async () => {
    const first = MIGRATIONS.slice(0, 4)
    const sql = await anEmptyDatabase()
    for (const statement of first.flatMap(translate)) await sql.unsafe(statement)
    using sqlite = new Database(':memory:')
    migrate(sqlite, first, 7)
    expect(await catalogueOf(sql)).toEqual(ofSqlite(sqlite))
    await sql`INSERT INTO audit_logs (at, event, actor, severity) VALUES (1, 'e', 'a', 'info'), (2, 'e', 'a', 'info')`
    expect(await sql`SELECT id::int FROM audit_logs ORDER BY id`.values()).toEqual([[1], [2]])
  })

  test('translated migrations lead to the schema of a new database', async () => {
    const sql = await aDatabase()
    const late = MIGRATIONS.filter(({ name }) => name > LAST_REBUILD)
    for (const statement of late.flatMap((one) => getStatements(one.sql)).reverse()) await sql.unsafe(undo(statement))
    await sql.unsafe('DELETE FROM migrations WHERE name > $1', [LAST_REBUILD])
    expect(Object.keys(await catalogueOf(sql)).length).toBeLessThan(Object.keys(ofTables(schema)).length)
    expect(await migratePostgres(sql, MIGRATIONS, 8)).toEqual(late.map(({ name }) => name))
    expect(await catalogueOf(sql)).toEqual(ofTables(schema))
  })
})

/** Removes what the statement created. */
const undo = (statement: string): string => {
  const [, table] = /^CREATE TABLE `(\w+)`/.exec(statement) ?? []
  if (table) return `DROP TABLE "${table}" CASCADE`
  const [, index] = /^CREATE (?:UNIQUE )?INDEX `(\w+)`/.exec(statement) ?? []
  if (index?.endsWith('_unique')) return 'SELECT 1' // gone with its table
  if (index) return `DROP INDEX IF EXISTS "${index}"`
  const [, changed, column] = /^ALTER TABLE `(\w+)` ADD `(\w+)`/.exec(statement) ?? []
  return changed ? `ALTER TABLE "${changed}" DROP COLUMN "${column}"` : 'SELECT 1'
}
