/** Copies all rows between a database file of SQLite and a database of PostgreSQL, in pages, so that memory stays small. */
import * as schema from '../schema/all.ts'
import { type Config, getColumnName, getTables } from './ddl.ts'

export interface CopyTable {
  name: string
  columns: readonly CopyColumn[]
  /** The column with automatic numbers, if there is one. */
  numbered: string | null
}

export interface CopyColumn {
  name: string
  type: 'integer' | 'real' | 'text'
}

/** The values, in the order of the columns. */
export type Row = (string | number | null)[]

/** The source of a copy. All reads see the same snapshot. */
export interface CopySource {
  pages(table: CopyTable): AsyncIterable<Row[]> | Iterable<Row[]>
  count(table: CopyTable): Promise<number>
  /** The last number that was assigned, possibly to a row deleted since. Null if there was none. */
  lastNumber(table: CopyTable): Promise<number | null>
}

/** The target of a copy. Everything is stored in one transaction. */
export interface CopyTarget {
  insert(table: CopyTable, rows: Row[]): Promise<void>
  count(table: CopyTable): Promise<number>
  setLastNumber(table: CopyTable, number: number): Promise<void>
}

export interface Copied {
  tables: { name: string; rows: number }[]
  /** How many values were changed, because PostgreSQL cannot store fractions in integer columns, or NUL in text. */
  adjusted: number
}

/** A copy is not possible, or failed. The message is for the operator. */
export class CopyError extends Error {
  override readonly name = 'CopyError'
}

/** Rows per page: enough to be fast, but few enough to need little memory. */
export const PAGE_ROWS = 500

/** Fills the empty `target`. Throws `CopyError` if a table has a different number of rows afterwards. */
export async function copyRows(source: CopySource, target: CopyTarget): Promise<Copied> {
  const copied: Copied = { tables: [], adjusted: 0 }
  for (const table of COPY_TABLES) {
    try {
      for await (const page of source.pages(table)) {
        for (const row of page) copied.adjusted += adjust(table, row)
        await target.insert(table, page)
      }
    } catch (cause) {
      throw new CopyError(`Table ${table.name} cannot be copied: ${getMessage(cause)}`, { cause })
    }
    const rows = await source.count(table)
    const arrived = await target.count(table)
    if (rows !== arrived) throw new CopyError(`Table ${table.name} has ${rows} rows, but ${arrived} were copied.`)
    const last = table.numbered === null ? null : await source.lastNumber(table)
    if (last !== null) await target.setLastNumber(table, last)
    copied.tables.push({ name: table.name, rows })
  }
  return copied
}

/** Throws `CopyError` that names the tables with rows, if there are any. */
export async function requireEmpty(count: CopyTarget['count'], name: string): Promise<void> {
  const filled: string[] = []
  for (const table of COPY_TABLES) {
    const rows = await count(table)
    if (rows > 0) filled.push(`${table.name} (${rows})`)
  }
  if (filled.length > 0)
    throw new CopyError(`${name} is not empty. It has rows in ${filled.join(', ')}. Use a new database.`)
}

function toCopyTable({ name, columns }: Config): CopyTable {
  const types = columns.map((column) => ({
    name: getColumnName(column),
    type: column.getSQLType() as CopyColumn['type'], // as: `ddl.ts` knows no other types
  }))
  const numbered = columns.find((column) => column.primary && column.getSQLType() === 'integer')
  return { name, columns: types, numbered: numbered ? getColumnName(numbered) : null }
}

export const COPY_TABLES: readonly CopyTable[] = getTables(schema).map(toCopyTable)

/** The quoted column names, such as `"id", "name"`. */
export const columnList = ({ columns }: CopyTable): string => columns.map(({ name }) => `"${name}"`).join(', ')

/**
 * Changes values that PostgreSQL cannot store: SQLite allows any value in any column, and NUL in text. Returns how many
 * values of the row were changed.
 */
function adjust({ columns }: CopyTable, row: Row): number {
  let changed = 0
  for (const [place, { type }] of columns.entries()) {
    const value = row[place]
    if (type === 'integer' && typeof value === 'number' && !Number.isInteger(value)) row[place] = Math.round(value)
    else if (typeof value === 'string' && value.includes('\0')) row[place] = value.replaceAll('\0', '\uFFFD')
    else continue
    changed++
  }
  return changed
}

const getMessage = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause))
