/** Migrates a database to the current schema: forward only, by name, each migration all or nothing. */
import { Database } from 'bun:sqlite'
import { type Applied, getBreaking, getHash, getProblem, inOrder, type Migration } from './migration.ts'

/**
 * Applies missing migrations in name order, each under its own BEGIN IMMEDIATE, and returns their names. `now` is ms
 * since epoch. Throws when an applied migration was edited, the database is newer than this program, a new migration
 * sorts before an applied one, or rows violate a foreign key afterwards.
 */
export function migrate(sqlite: Database, migrations: readonly Migration[], now: number): string[] {
  sqlite.run(
    'CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, hash TEXT NOT NULL, applied_at INTEGER NOT NULL)',
  )
  const ordered = inOrder(migrations)
  return withoutForeignKeys(sqlite, () =>
    ordered.filter((migration) => applyOnce(sqlite, ordered, migration, now)).map(({ name }) => name),
  )
}

/** Whether an earlier release wrote this database: some of `migrations` are applied and some are not. */
export function isOutdated(sqlite: Database, migrations: readonly Migration[]): boolean {
  if (!sqlite.query("SELECT 1 FROM sqlite_master WHERE name = 'migrations'").get()) return false
  const applied = appliedHashes(sqlite)
  return applied.size > 0 && migrations.some(({ name }) => !applied.has(name))
}

/**
 * Missing migrations that a program without them could not work with, such as one that drops a column. While an older
 * process still uses the database, only the others may be applied.
 */
export function breakingMigrations(sqlite: Database, migrations: readonly Migration[]): string[] {
  return isOutdated(sqlite, migrations) ? getBreaking(migrations, appliedHashes(sqlite)) : []
}

/** Why `migrate` would reject a previously migrated database, or null. Reads only. */
export function schemaProblem(sqlite: Database, migrations: readonly Migration[]): string | null {
  return getProblem(inOrder(migrations), appliedHashes(sqlite))
}

/**
 * Differences between the schema and what the applied `migrations` create: missing, changed and unknown objects, such
 * as "trigger steal". A trigger or view in a backup would run with its data. Reads only.
 */
export function schemaDifferences(sqlite: Database, migrations: readonly Migration[]): string[] {
  const applied = appliedHashes(sqlite)
  using expected = new Database(':memory:', { strict: true })
  migrate(
    expected,
    migrations.filter(({ name }) => applied.has(name)),
    0,
  )
  const [theirs, ours] = [getObjects(sqlite), getObjects(expected)]
  const names = new Set([...theirs.keys(), ...ours.keys()])
  return [...names].filter((name) => theirs.get(name) !== ours.get(name)).sort()
}

/** Maps "table accounts" to its definition, without SQLite's statistics (sqlite.org/fileformat2.html §2.6). */
function getObjects(sqlite: Database): Map<string, string> {
  const rows = sqlite
    .query<{ type: string; name: string; tbl_name: string; sql: string | null }, []>(
      'SELECT type, name, tbl_name, sql FROM sqlite_schema',
    )
    .all()
    .filter(({ type, name }) => !(type === 'table' && /^sqlite_(stat[134]|sequence)$/.test(name)))
  return new Map(
    rows.map(({ type, name, tbl_name, sql }) => [
      `${type} ${name}`,
      `${tbl_name} ${(sql ?? '').replaceAll(/\s+/g, ' ').trim()}`,
    ]),
  )
}

/** Checks again inside the lock, so two processes may start at the same time. */
function applyOnce(sqlite: Database, ordered: Migration[], migration: Migration, now: number): boolean {
  const apply = sqlite.transaction(() => {
    const applied = appliedHashes(sqlite)
    const problem = getProblem(ordered, applied)
    if (problem !== null) throw new Error(problem)
    if (applied.has(migration.name)) return false
    runStatements(sqlite, migration)
    sqlite.run('INSERT INTO migrations VALUES (?, ?, ?)', [migration.name, getHash(migration), now])
    return true
  })
  return apply.immediate()
}

function appliedHashes(sqlite: Database): Applied {
  const rows = sqlite.query<{ name: string; hash: string }, []>('SELECT name, hash FROM migrations').all()
  return new Map(rows.map(({ name, hash }) => [name, hash]))
}

function runStatements(sqlite: Database, { name, sql }: Migration): void {
  for (const statement of sql.split('--> statement-breakpoint')) {
    if (statement.trim() === '') continue
    try {
      sqlite.run(statement)
    } catch (error) {
      throw new Error(`Migration ${name} failed: ${error instanceof Error ? error.message : error}`, { cause: error })
    }
  }
  const broken = sqlite.query('PRAGMA foreign_key_check').all()
  if (broken.length > 0) throw new Error(`Migration ${name} leaves ${broken.length} rows with a broken foreign key.`)
}

/**
 * Rebuilding a table drops it, which with foreign keys on would delete the rows that refer to it. The pragma has no
 * effect inside a transaction (sqlite.org/lang_altertable.html §7).
 */
function withoutForeignKeys<T>(sqlite: Database, run: () => T): T {
  const [before] = sqlite.query<{ foreign_keys: number }, []>('PRAGMA foreign_keys').all()
  sqlite.run('PRAGMA foreign_keys = OFF')
  try {
    return run()
  } finally {
    sqlite.run(`PRAGMA foreign_keys = ${before?.foreign_keys ?? 1}`)
  }
}
