/** An SQLite file as the source or target of a copy. */
import { Database } from 'bun:sqlite'
import { existsSync, statSync } from 'node:fs'
import { isOutdated, migrate, schemaProblem } from '../migrate.ts'
import { MIGRATIONS } from '../migrations/index.ts'
import { readerDatabase } from '../open.ts'
import {
  CopyError,
  type CopySource,
  type CopyTable,
  type CopyTarget,
  columnList,
  PAGE_ROWS,
  type Row,
  requireEmpty,
} from './copy.ts'

/** Reads the database at `path` while `run` runs. Throws `CopyError` unless this release created or migrated it. */
export async function fromSqlite<T>(path: string, run: (source: CopySource) => Promise<T>): Promise<T> {
  if (!existsSync(path)) throw new CopyError(`There is no database at ${path}.`)
  const { sqlite } = readerDatabase(path)
  try {
    sqlite.run('BEGIN')
    requireCurrent(sqlite, path)
    return await run({
      pages: (table) => pagesOf(sqlite, table),
      count: async (table) => countRows(sqlite, table),
      lastNumber: async (table) => getLastNumber(sqlite, table),
    })
  } finally {
    sqlite.close()
  }
}

function requireCurrent(sqlite: Database, path: string): void {
  if (!hasTable(sqlite, 'migrations')) throw new CopyError(`${path} is not a database of Sluice.`)
  const problem = schemaProblem(sqlite, MIGRATIONS)
  if (problem !== null) throw new CopyError(problem)
  if (isOutdated(sqlite, MIGRATIONS))
    throw new CopyError(
      `${path} was written by an earlier release. Migrate it first: start this release on it once, or restore it into ` +
        'a new data folder with "sluice restore".',
    )
}

function* pagesOf(sqlite: Database, table: CopyTable): Iterable<Row[]> {
  using statement = sqlite.prepare<Record<string, string | number | null>, []>(
    `SELECT ${columnList(table)} FROM "${table.name}"`,
  )
  let page: Row[] = []
  for (const row of statement.iterate()) {
    page.push(table.columns.map(({ name }) => row[name] ?? null))
    if (page.length < PAGE_ROWS) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

/** SQLite stores the last number only for tables with AUTOINCREMENT. For others it is the largest number in use. */
function getLastNumber(sqlite: Database, { name, numbered }: CopyTable): number | null {
  const kept = hasTable(sqlite, 'sqlite_sequence')
    ? sqlite.query<{ seq: number }, [string]>('SELECT seq FROM sqlite_sequence WHERE name = ?').get(name)
    : null
  return (
    kept?.seq ??
    sqlite.query<{ n: number | null }, []>(`SELECT max("${numbered}") AS n FROM "${name}"`).get()?.n ??
    null
  )
}

const hasTable = (sqlite: Database, name: string): boolean =>
  sqlite.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?").get(name) !== null

const countRows = (sqlite: Database, { name }: CopyTable): number =>
  sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM "${name}"`).get()?.n ?? 0

/** Throws `CopyError` if the file at `path` exists and has rows, or is not a Sluice database. */
export async function requireEmptySqlite(path: string): Promise<void> {
  if (!existsSync(path) || statSync(path).size === 0) return
  const { sqlite } = readerDatabase(path)
  try {
    if (!hasTable(sqlite, 'migrations')) throw new CopyError(`${path} is not a database of Sluice.`)
    const count = async (table: CopyTable) => (hasTable(sqlite, table.name) ? countRows(sqlite, table) : 0)
    await requireEmpty(count, path)
  } finally {
    sqlite.close()
  }
}

/**
 * Fills the new file at `path`, and leaves it as one file without a write-ahead log. If it throws, the file may be
 * incomplete: it must not have its final name yet. `now` is ms since epoch.
 */
export async function intoSqlite<T>(path: string, now: number, run: (target: CopyTarget) => Promise<T>): Promise<T> {
  const sqlite = new Database(path, { strict: true })
  try {
    sqlite.run('PRAGMA journal_mode = MEMORY') // a file that fails is removed
    sqlite.run('PRAGMA synchronous = OFF') // the caller flushes it
    migrate(sqlite, MIGRATIONS, now)
    sqlite.run('PRAGMA foreign_keys = OFF') // checked at the end
    sqlite.run('BEGIN EXCLUSIVE')
    const indexes = takeIndexes(sqlite)
    const value = await run(targetOf(sqlite))
    for (const create of indexes) sqlite.run(create)
    requireForeignKeys(sqlite)
    sqlite.run('COMMIT')
    sqlite.run('PRAGMA journal_mode = DELETE')
    return value
  } finally {
    sqlite.close()
  }
}

const targetOf = (sqlite: Database): CopyTarget => ({
  insert: async (table, rows) => {
    const places = table.columns.map(() => '?').join(', ')
    const statement = sqlite.query(`INSERT INTO "${table.name}" (${columnList(table)}) VALUES (${places})`)
    for (const row of rows) statement.run(...row)
  },
  count: async (table) => countRows(sqlite, table),
  setLastNumber: async ({ name }, number) => {
    if (!hasTable(sqlite, 'sqlite_sequence')) return
    const { changes } = sqlite.query('UPDATE sqlite_sequence SET seq = ? WHERE name = ?').run(number, name)
    if (changes === 0 && isAutoincrement(sqlite, name))
      sqlite.query('INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)').run(name, number)
  },
})

const isAutoincrement = (sqlite: Database, name: string): boolean =>
  sqlite.query("SELECT 1 FROM sqlite_schema WHERE name = ? AND sql LIKE '%AUTOINCREMENT%'").get(name) !== null

/**
 * Drops indexes, because filling a table without them is several times faster. Returns the statements that create them
 * again.
 */
function takeIndexes(sqlite: Database): string[] {
  const indexes = sqlite
    .query<{ name: string; sql: string }, []>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL",
    )
    .all()
  for (const { name } of indexes) sqlite.run(`DROP INDEX "${name}"`)
  return indexes.map(({ sql }) => sql)
}

function requireForeignKeys(sqlite: Database): void {
  const broken = sqlite.query<{ table: string; parent: string }, []>('PRAGMA foreign_key_check').all()
  const pairs = new Set(broken.map(({ table, parent }) => `${table} to ${parent}`))
  if (broken.length > 0)
    throw new CopyError(`${broken.length} rows refer to rows that do not exist: ${[...pairs].join(', ')}.`)
}
