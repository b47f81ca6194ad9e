/** The size of each table with its indexes: what fills the disk, and what retention would free. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'

interface TableSize {
  name: string
  rows: number
  /** Pages of the table and of its indexes. */
  bytes: number
}

export interface TableSizes {
  /** The largest first. */
  tables: TableSize[]
  /** Otherwise `bytes` is estimated from a few hundred rows per table. */
  isExact: boolean
}

export interface FileSize {
  bytes: number
  /** Part of `bytes`: free pages in the file, used first by new rows. */
  freeBytes: number
}

/** The database file without its log; read from its header. */
export const fileSize = (db: Db): FileSize => {
  const page = pragma(db, 'page_size')
  return { bytes: pragma(db, 'page_count') * page, freeBytes: pragma(db, 'freelist_count') * page }
}

/** Exact counting reads every page: 1.3 s for 350 MB (SQLite 3.54), while other reads wait. */
const EXACT_UP_TO_BYTES = 64 * 1024 * 1024

/** Counts every row, so call it only in a reader thread. */
export const tableSizes = (db: Db, exactUpToBytes = EXACT_UP_TO_BYTES): TableSizes => {
  const { bytes, freeBytes } = fileSize(db)
  const isExact = bytes <= exactUpToBytes
  const tables = isExact ? measured(db) : estimated(db, bytes - freeBytes)
  return { tables: tables.toSorted((a, b) => b.bytes - a.bytes || a.name.localeCompare(b.name)), isExact }
}

const measured = (db: Db): TableSize[] =>
  db
    .all<{ name: string; bytes: number }>(sql`
      SELECT objects.tbl_name AS name, SUM(stat.pgsize) AS bytes
      FROM dbstat AS stat JOIN sqlite_schema AS objects ON objects.name = stat.name
      WHERE stat.aggregate = TRUE
      GROUP BY objects.tbl_name`)
    .map(({ name, bytes }) => ({ name, bytes, rows: countRows(db, name) }))

/** Distributes the used part of the file by rows and average row size, including index entries. */
const estimated = (db: Db, usedBytes: number): TableSize[] => {
  const weighed = db.all<{ name: string }>(sql`SELECT name FROM sqlite_schema WHERE type = 'table'`).map(({ name }) => {
    const rows = countRows(db, name)
    return { name, rows, weight: rows === 0 ? 0 : rows * rowBytes(db, name) }
  })
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
const rowBytes = (db: Db, table: string): number => {
  const indexed = db.all<{ index: string; column: string | null }>(sql`
    SELECT indexes.name AS "index", columns.name AS column FROM pragma_index_list(${table}) AS indexes, pragma_index_xinfo(indexes.name) AS columns
    WHERE indexes.name IN (SELECT name FROM sqlite_schema) AND columns.cid <> -1`) // -1: the row id
  const columns = db.all<{ column: string }>(sql`SELECT name AS column FROM pragma_table_info(${table})`)
  const lengths = [...columns, ...indexed].flatMap(({ column }) => (column === null ? [] : [getLength(column)]))
  const [sample] = db.all<{ bytes: number | null }>(sql`
    SELECT AVG(${sql.join(lengths, sql` + `)}) AS bytes
    FROM (SELECT * FROM ${sql.identifier(table)} LIMIT ${SAMPLED_ROWS})`)
  const indexes = new Set(indexed.map(({ index }) => index)).size
  return (sample?.bytes ?? 0) + OVERHEAD_BYTES * (1 + indexes)
}

const getLength = (column: string): SQL => sql`COALESCE(OCTET_LENGTH(${sql.identifier(column)}), 0)`

const countRows = (db: Db, table: string): number =>
  db.all<{ n: number }>(sql`SELECT COUNT(*) AS n FROM ${sql.identifier(table)}`)[0]?.n ?? 0

const pragma = (db: Db, name: 'page_size' | 'page_count' | 'freelist_count'): number =>
  db.all<Partial<Record<string, number>>>(sql.raw(`PRAGMA ${name}`))[0]?.[name] ?? 0
