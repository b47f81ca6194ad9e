/** The size of each table with its indexes: what fills the disk, and what retention would free. */

import { type SQL, sql } from 'drizzle-orm'
import { type Db, engineOf } from '../../db/commit.ts'
import { mapInOrder } from '../lib/in-order.ts'

interface TableSize {
  name: string
  rows: number
  /** Pages of the table and of its indexes. */
  bytes: number
}

export interface TableSizes {
  /** The largest first. */
  tables: TableSize[]
  /** Whether the result is exact. Otherwise `bytes` (on PostgreSQL `rows`) is estimated. */
  isExact: boolean
}

export interface FileSize {
  bytes: number
  /**
   * Free pages in the file, included in `bytes` and reused for new rows. 0 on PostgreSQL, which does not count them.
   */
  freeBytes: number
}

/** The size of the SQLite file without its log, read from its header, or of the PostgreSQL database. */
export const fileSize = async (db: Db): Promise<FileSize> => {
  if (engineOf(db) === 'postgres') return { bytes: await postgresBytes(db), freeBytes: 0 }
  const page = await pragma(db, 'page_size')
  return { bytes: (await pragma(db, 'page_count')) * page, freeBytes: (await pragma(db, 'freelist_count')) * page }
}

const postgresBytes = async (db: Db): Promise<number> =>
  (await db.all<{ bytes: number }>(sql`SELECT pg_database_size(current_database()) AS bytes`))[0]?.bytes ?? 0

/** Exact counting reads every page: 1.3 s for 350 MB (SQLite 3.54), while other reads wait. */
const EXACT_UP_TO_BYTES = 64 * 1024 * 1024

/** Counts every row, so call it only in a reader thread. */
export const tableSizes = async (db: Db, exactUpToBytes = EXACT_UP_TO_BYTES): Promise<TableSizes> => {
  const { bytes, freeBytes } = await fileSize(db)
  const isExact = bytes <= exactUpToBytes
  const tables = await getTables(db, isExact ? null : bytes - freeBytes)
  return { tables: tables.toSorted((a, b) => b.bytes - a.bytes || a.name.localeCompare(b.name)), isExact }
}

/** `usedBytes` is null if the result is exact. */
const getTables = (db: Db, usedBytes: number | null): Promise<TableSize[]> => {
  if (engineOf(db) === 'postgres') return inPostgres(db, { isExact: usedBytes === null })
  return usedBytes === null ? measured(db) : estimated(db, usedBytes)
}

/** PostgreSQL knows the size of each table, and an estimate of its rows from the last background count. */
const inPostgres = async (db: Db, { isExact }: { isExact: boolean }): Promise<TableSize[]> =>
  mapInOrder(
    await db.all<{ name: string; bytes: number; about: number }>(sql`
      SELECT relname AS name, pg_total_relation_size(oid) AS bytes, reltuples AS about
      FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`),
    async ({ name, bytes, about }) => {
      const isCounted = isExact || about < 0 // -1: never counted
      return { name, bytes, rows: isCounted ? await countRows(db, name) : about }
    },
  )

const measured = async (db: Db): Promise<TableSize[]> =>
  mapInOrder(
    await db.all<{ name: string; bytes: number }>(sql`
      SELECT objects.tbl_name AS name, SUM(stat.pgsize) AS bytes
      FROM dbstat AS stat JOIN sqlite_schema AS objects ON objects.name = stat.name
      WHERE stat.aggregate = TRUE
      GROUP BY objects.tbl_name`),
    async ({ name, bytes }) => ({ name, bytes, rows: await countRows(db, name) }),
  )

/** Distributes the used part of the file by rows and average row size, including index entries. */
const estimated = async (db: Db, usedBytes: number): Promise<TableSize[]> => {
  const weighed = await mapInOrder(
    await db.all<{ name: string }>(sql`SELECT name FROM sqlite_schema WHERE type = 'table'`),
    async ({ name }) => {
      const rows = await countRows(db, name)
      return { name, rows, weight: rows === 0 ? 0 : rows * (await rowBytes(db, name)) }
    },
  )
  const total = weighed.reduce((sum, { weight }) => sum + weight, 0)
  return weighed.map(({ name, rows, weight }) => ({
    name,
    rows,
    bytes: total === 0 ? 0 : Math.round((usedBytes * weight) / total),
  }))
}

/** Per record or index entry: header, pointer, and its share of the page. */
const OVERHEAD_BYTES = 12
const SAMPLED_ROWS = 300

/**
 * The average row size including index entries. The primary key of a `WITHOUT ROWID` table is listed as an index but is
 * the table itself; its other indexes also contain the key columns.
 */
const rowBytes = async (db: Db, table: string): Promise<number> => {
  const indexed = await db.all<{ index: string; column: string | null }>(sql`
    SELECT indexes.name AS "index", columns.name AS column FROM pragma_index_list(${table}) AS indexes, pragma_index_xinfo(indexes.name) AS columns
    WHERE indexes.name IN (SELECT name FROM sqlite_schema) AND columns.cid <> -1`) // -1: the row id
  const columns = await db.all<{ column: string }>(sql`SELECT name AS column FROM pragma_table_info(${table})`)
  const lengths = [...columns, ...indexed].flatMap(({ column }) => (column === null ? [] : [getLength(column)]))
  const [sample] = await db.all<{ bytes: number | null }>(sql`
    SELECT AVG(${sql.join(lengths, sql` + `)}) AS bytes
    FROM (SELECT * FROM ${sql.identifier(table)} LIMIT ${SAMPLED_ROWS})`)
  const indexes = new Set(indexed.map(({ index }) => index)).size
  return (sample?.bytes ?? 0) + OVERHEAD_BYTES * (1 + indexes)
}

const getLength = (column: string): SQL => sql`COALESCE(OCTET_LENGTH(${sql.identifier(column)}), 0)`

const countRows = async (db: Db, table: string): Promise<number> =>
  (await db.all<{ n: number }>(sql`SELECT COUNT(*) AS n FROM ${sql.identifier(table)}`))[0]?.n ?? 0

const pragma = async (db: Db, name: 'page_size' | 'page_count' | 'freelist_count'): Promise<number> =>
  (await db.all<Partial<Record<string, number>>>(sql.raw(`PRAGMA ${name}`)))[0]?.[name] ?? 0
