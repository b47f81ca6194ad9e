/** Migrates a PostgreSQL database. A new one gets the current schema, an older one the missing migrations. */
import type { SQL, TransactionSQL } from 'bun'
import { type Applied, getBreaking, getHash, getProblem, inOrder, type Migration } from '../migration.ts'
import * as schema from '../schema/all.ts'
import { getDdl, getTableNames } from './ddl.ts'
import { FUNCTIONS } from './functions.ts'
import { translate } from './translate.ts'
import { COMMIT_LOCK } from './writer.ts'

/**
 * How long a migration waits for the readers of a table. Later queries wait behind it, so the timeout must be short
 * even if a backup of another node takes minutes.
 */
const LOCK_TIMEOUT_MS = 5000

/**
 * Applies missing migrations in name order, each in one transaction, and returns their names. Several nodes may call it
 * at the same time. `now` is ms since epoch. Throws for the same reasons as `db/migrate.ts`.
 */
export async function migratePostgres(sql: SQL, migrations: readonly Migration[], now: number): Promise<string[]> {
  const ordered = inOrder(migrations)
  if (!(await hasMigrations(sql)) && (await create(sql, ordered, now))) return ordered.map(({ name }) => name)
  const applied = await appliedTo(sql)
  requireKnown(ordered, applied)
  const done: string[] = []
  for (const migration of ordered)
    if (!applied.has(migration.name) && (await applyOnce(sql, ordered, migration, now))) done.push(migration.name)
  return done
}

/**
 * Like `breakingMigrations` in `db/migrate.ts`: these must not be applied while a node of an older release is running.
 */
export async function breakingPostgresMigrations(sql: SQL, migrations: readonly Migration[]): Promise<string[]> {
  if (!(await hasMigrations(sql))) return []
  return getBreaking(inOrder(migrations), await appliedTo(sql), (one) => one.postgres ?? one.sql)
}

/** The reason `migratePostgres` would reject the database, or the migrations it would apply. Reads only. */
export async function postgresSchemaState(sql: Queries, migrations: readonly Migration[]) {
  if (!(await hasMigrations(sql))) return { problem: null, isNew: true, missing: [] }
  const ordered = inOrder(migrations)
  const applied = await appliedTo(sql)
  const missing = ordered.map(({ name }) => name).filter((name) => !applied.has(name))
  return { problem: getProblem(ordered, applied), isNew: false, missing }
}

type Queries = Pick<SQL, 'unsafe'>

const hasMigrations = async (sql: Queries): Promise<boolean> => {
  const [row] = await sql.unsafe("SELECT to_regclass('migrations') IS NOT NULL AS found")
  return row.found
}

const appliedTo = async (sql: Queries): Promise<Applied> => {
  const rows: { name: string; hash: string }[] = await sql.unsafe('SELECT name, hash FROM migrations')
  return new Map(rows.map(({ name, hash }) => [name, hash]))
}

const requireKnown = (ordered: readonly Migration[], applied: Applied): void => {
  const problem = getProblem(ordered, applied)
  if (problem !== null) throw new Error(problem)
}

/** Creates the schema. Returns false if another node was first. */
const create = (sql: SQL, ordered: readonly Migration[], now: number): Promise<boolean> =>
  alone(sql, async (tx) => {
    if (await hasMigrations(tx)) return false
    const [taken] = await tx.unsafe(TABLES_IN_USE, [getTableNames(schema).join()])
    if (taken)
      throw new Error(
        `The database has a table ${taken.name} from another program. Create a separate database for Sluice.`,
      )
    for (const statement of getDdl(schema)) await tx.unsafe(statement)
    await tx.unsafe(
      'CREATE TABLE migrations (name text COLLATE "C" PRIMARY KEY, hash text NOT NULL, applied_at bigint NOT NULL)',
    )
    for (const migration of ordered) await record(tx, migration, now)
    return true
  })

const TABLES_IN_USE =
  "SELECT name FROM unnest(string_to_array($1, ',')) AS name WHERE to_regclass(quote_ident(name)) IS NOT NULL"

const applyOnce = (sql: SQL, ordered: readonly Migration[], migration: Migration, now: number): Promise<boolean> => {
  const statements = translate(migration)
  return alone(sql, async (tx) => {
    const applied = await appliedTo(tx)
    requireKnown(ordered, applied)
    if (applied.has(migration.name)) return false
    try {
      for (const statement of [...FUNCTIONS, ...statements]) await tx.unsafe(statement)
    } catch (cause) {
      throw new Error(`Migration ${migration.name} failed: ${cause instanceof Error ? cause.message : cause}`, {
        cause,
      })
    }
    await record(tx, migration, now)
    return true
  })
}

const record = (tx: TransactionSQL, migration: Migration, now: number): Promise<unknown> =>
  tx.unsafe('INSERT INTO migrations VALUES ($1, $2, $3)', [migration.name, getHash(migration), now])

/** Runs `run` in one transaction while no other node commits or migrates. */
const alone = <T>(sql: SQL, run: (tx: TransactionSQL) => Promise<T>): Promise<T> =>
  sql.begin(async (tx) => {
    await tx.unsafe(`SELECT pg_advisory_xact_lock(${COMMIT_LOCK})`)
    await tx.unsafe(`SET LOCAL lock_timeout = ${LOCK_TIMEOUT_MS}`)
    return run(tx)
  }) as Promise<T> // as: Bun unwraps arrays of promises, of which there are none
