/** Statements that run for many rows, with the same text for SQLite and PostgreSQL (`db/postgres/batch.ts`). */
import type { Database, Statement as Prepared } from 'bun:sqlite'
import { getTableColumns, getTableName, type Table } from 'drizzle-orm'
import { toSnakeCase } from 'drizzle-orm/casing'

export type Value = string | number | null
export type Parameters = Readonly<Record<string, Value>>

/** A statement that runs once for each row, in order. */
export type Statement = Insertion | Change

/** An insertion. The values of a row are in the order of the columns. */
export interface Insertion {
  into: Insert
  rows: readonly Value[][]
}

/** The values by name, for an UPDATE or DELETE. */
export interface Change {
  sql: string
  rows: readonly Parameters[]
}

export interface Insert {
  readonly table: string
  readonly columns: readonly string[]
  /** `ON CONFLICT …`, or empty. */
  readonly onConflict: string
  readonly sql: string
}

/**
 * Inserts all columns of a table except `except`. Values are encoded as drizzle does; building a query per row costs
 * twenty times as much. Rows of one insertion must not conflict with each other.
 */
export const insertInto = <T extends Table>(table: T, { onConflict = '', except = '' } = {}) => {
  const columns = Object.entries(getTableColumns(table)).filter(([property]) => property !== except)
  const names = columns.map(([property]) => toSnakeCase(property))
  const into: Insert = {
    table: getTableName(table),
    columns: names,
    onConflict,
    sql: `INSERT INTO ${getTableName(table)} (${quoted(names)}) VALUES (${names.map(() => '?')}) ${onConflict}`,
  }
  const encode = (row: T['$inferInsert']): Value[] => {
    const given: Record<string, unknown> = row
    return columns.map(([property, column]) => {
      const value = given[property] ?? column.default ?? null
      return (value === null ? null : column.mapToDriverValue(value)) as Value // as: text, integer and real columns only
    })
  }
  return (rows: Iterable<T['$inferInsert']>): Insertion => ({ into, rows: Array.from(rows, encode) })
}

/** `window` is a reserved word of PostgreSQL. */
export const quoted = (names: readonly string[]): string => names.map((name) => `"${name}"`).join(', ')

/** Sorts rows by key. All nodes then lock rows in the same order, which prevents deadlocks. */
export const inKeyOrder = <T>(rows: ReadonlyMap<string, T>): T[] => [...rows.keys()].sort().map((key) => rows.get(key)!) // each key has a row

/** Runs the statements one after another. The caller opens a transaction if it needs one. */
export const runStatements = (sqlite: Database, statements: Iterable<Statement>): void => {
  const known = prepared.getOrInsertComputed(sqlite, () => new Map())
  const get = (sql: string) => known.getOrInsertComputed(sql, () => sqlite.prepare(sql))
  for (const statement of statements) {
    if (statement.rows.length === 0) continue
    if ('into' in statement) {
      const insert = get(statement.into.sql)
      for (const row of statement.rows) insert.run(...row)
    } else {
      const change = get(statement.sql)
      for (const row of statement.rows) change.run(row)
    }
  }
}

/** Prepared statements, by connection and text. */
const prepared = new WeakMap<Database, Map<string, Prepared>>()
