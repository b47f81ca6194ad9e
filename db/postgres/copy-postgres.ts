/** PostgreSQL as the source or target of a copy. */
import { type ReservedSQL, SQL } from 'bun'
import { MIGRATIONS } from '../migrations/index.ts'
import * as schema from '../schema/all.ts'
import {
  COPY_TABLES,
  type CopyColumn,
  CopyError,
  type CopySource,
  type CopyTable,
  type CopyTarget,
  columnList,
  PAGE_ROWS,
  type Row,
  requireEmpty,
} from './copy.ts'
import { getForeignKeys } from './ddl.ts'
import { migratePostgres, postgresSchemaState } from './migrate.ts'
import { NODES, NODES_RUNNING } from './session.ts'
import { COMMIT_LOCK } from './writer.ts'

/**
 * Reads the database at `url` from one snapshot while `run` runs. Throws `CopyError` if it has the schema of another
 * release.
 */
export const fromPostgres = <T>(url: string, run: (source: CopySource) => Promise<T>): Promise<T> =>
  withClient(url, async (client) => {
    await client.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await requireCurrent(client)
    return run({
      pages: (table) => pagesOf(client, table),
      count: (table) => countRows(client, table),
      lastNumber: (table) => getLastNumber(client, table),
    })
  })

/** The number of Sluice nodes that use the database. */
export const countNodes = (url: string): Promise<number> =>
  withClient(url, async (client) => (await client.unsafe(NODES_RUNNING, [NODES])).length)

/** The size of the database files, in bytes. */
export const postgresBytes = (url: string): Promise<number> =>
  withClient(url, async (client) => {
    const [row] = await client.unsafe('SELECT pg_database_size(current_database()) AS bytes')
    return Number(row.bytes)
  })

/** Rolls back a transaction that is still open at the end. */
async function withClient<T>(url: string, run: (client: ReservedSQL, sql: SQL) => Promise<T>): Promise<T> {
  const sql = new SQL({ url, max: 2, connection: { application_name: 'sluice copy' } })
  try {
    const client = await sql.reserve().catch((cause: Error) => {
      throw new CopyError(`PostgreSQL at ${new URL(url).host} cannot be used: ${cause.message}`, { cause })
    })
    try {
      return await run(client, sql)
    } finally {
      await client.unsafe('ROLLBACK').catch(() => {}) // the connection may be lost
      client.release()
    }
  } finally {
    await sql.close()
  }
}

async function requireCurrent(client: ReservedSQL): Promise<void> {
  const { isNew, problem, missing } = await postgresSchemaState(client, MIGRATIONS)
  if (isNew) throw new CopyError('The PostgreSQL database has no Sluice tables.')
  if (problem !== null) throw new CopyError(problem)
  if (missing.length > 0)
    throw new CopyError('The database was written by an earlier release. Start this release on it once.')
}

async function* pagesOf(client: ReservedSQL, table: CopyTable): AsyncIterable<Row[]> {
  const toValues = table.columns.map(toValue)
  await client.unsafe(`DECLARE page NO SCROLL CURSOR FOR SELECT ${columnList(table)} FROM "${table.name}"`)
  for (;;) {
    const rows: unknown[][] = await client.unsafe(`FETCH ${PAGE_ROWS} FROM page`).values()
    if (rows.length === 0) break
    yield rows.map((row) => row.map((value, place) => toValues[place]!(value))) // one for each column
  }
  await client.unsafe('CLOSE page')
}

/** Converts integers, which arrive as text, to numbers. */
const toValue = ({ type }: CopyColumn): ((value: unknown) => Row[number]) =>
  type === 'text' ? (value) => value as string | null : (value) => (value === null ? null : Number(value)) // as: of its column

async function countRows(client: ReservedSQL, { name }: CopyTable): Promise<number> {
  const [row] = await client.unsafe(`SELECT count(*) AS n FROM "${name}"`)
  return Number(row.n)
}

async function getLastNumber(client: ReservedSQL, table: CopyTable): Promise<number | null> {
  const [row] = await client.unsafe(`SELECT last_value AS n FROM ${sequenceOf(table)} WHERE is_called`)
  return row ? Number(row.n) : null
}

/** The name that PostgreSQL gives the sequence of an identity column. */
const sequenceOf = ({ name, numbered }: CopyTable): string => `"${name}_${numbered}_seq"`

/** Fills the database at `url`, which may be new. Throws `CopyError` and leaves the database without rows. */
export const intoPostgres = <T>(url: string, now: number, run: (target: CopyTarget) => Promise<T>): Promise<T> =>
  withClient(url, async (client, sql) => {
    await migratePostgres(sql, MIGRATIONS, now)
    await client.unsafe('BEGIN')
    await client.unsafe(`SELECT pg_advisory_xact_lock(${COMMIT_LOCK})`)
    await client.unsafe(`LOCK TABLE ${COPY_TABLES.map(({ name }) => `"${name}"`).join(', ')}`)
    const target = targetOf(client)
    await requireEmpty(target.count, 'The PostgreSQL database')
    const indexes = await takeIndexes(client)
    await dropForeignKeys(client)
    const value = await run(target)
    for (const create of [...indexes, ...getForeignKeys(schema)]) await client.unsafe(create)
    await client.unsafe('COMMIT')
    await client.unsafe('ANALYZE')
    return value
  })

const targetOf = (client: ReservedSQL): CopyTarget => ({
  insert: async (table, rows) => {
    await client.unsafe(insertOf(table), [JSON.stringify(rows.map((row) => toObject(table, row)))])
  },
  count: (table) => countRows(client, table),
  setLastNumber: async (table, number) => {
    await client.unsafe(`SELECT setval('${sequenceOf(table)}', $1)`, [number])
  },
})

const TYPES: Record<CopyColumn['type'], string> = { integer: 'bigint', real: 'double precision', text: 'text' }

/** Inserts a page of rows, which is sent as one parameter. */
const insertOf = (table: CopyTable): string => {
  const columns = table.columns.map(({ name, type }) => `"${name}" ${TYPES[type]}`).join(', ')
  const names = columnList(table)
  return `INSERT INTO "${table.name}" (${names}) SELECT ${names} FROM json_to_recordset($1::text::json) AS page (${columns})`
}

const toObject = ({ columns }: CopyTable, row: Row) =>
  Object.fromEntries(columns.map(({ name }, place) => [name, row[place] ?? null]))

/** Drops indexes, except those of keys and unique constraints. Returns the statements that create them again. */
async function takeIndexes(client: ReservedSQL): Promise<string[]> {
  const indexes: { name: string; definition: string }[] = await client.unsafe(
    `SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition FROM pg_index
     WHERE ${OF_OUR_TABLES('indrelid')} AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)`,
    [TABLE_NAMES],
  )
  for (const { name } of indexes) await client.unsafe(`DROP INDEX ${name}`)
  return indexes.map(({ definition }) => definition)
}

async function dropForeignKeys(client: ReservedSQL): Promise<void> {
  const keys: { owner: string; name: string }[] = await client.unsafe(
    `SELECT conrelid::regclass::text AS owner, quote_ident(conname) AS name FROM pg_constraint
     WHERE contype = 'f' AND ${OF_OUR_TABLES('conrelid')}`,
    [TABLE_NAMES],
  )
  for (const { owner, name } of keys) await client.unsafe(`ALTER TABLE ${owner} DROP CONSTRAINT ${name}`)
}

const TABLE_NAMES = COPY_TABLES.map(({ name }) => name).join()
const OF_OUR_TABLES = (column: string): string =>
  `${column} IN (SELECT to_regclass(quote_ident(name)) FROM unnest(string_to_array($1, ',')) AS name)`
