/** drizzle on one connection of bun:sqlite, awaited, because the connection may be in another thread. */
import type { Changes, SQLQueryBindings } from 'bun:sqlite'
import { fillPlaceholders, type Query } from 'drizzle-orm'
import {
  BaseSQLiteDatabase,
  type SelectedFieldsOrdered,
  SQLiteAsyncDialect,
  SQLitePreparedQuery,
  SQLiteSession,
  type SQLiteTransaction,
} from 'drizzle-orm/sqlite-core'
import { mapResultRow } from 'drizzle-orm/utils'
import { type Query as Bound, type Connection, getObjects, getRows, type Rows, runQuery } from './connection.ts'

declare module 'drizzle-orm/utils' {
  /** Exported, but missing from its types. */
  function mapResultRow(
    columns: SelectedFieldsOrdered,
    row: unknown[],
    joinsNotNullable: Record<string, boolean> | undefined,
  ): unknown
}

type NoSchema = Record<string, never>

/** drizzle with awaited queries; `run()` resolves to the number of changed rows. */
export type Driver = BaseSQLiteDatabase<'async', Changes, NoSchema, NoSchema>

/** Returns the connection for the next statement, or throws. */
export type Connect = () => Connection

type Mapper = (rows: Rows) => unknown
type ExecuteMethod = 'run' | 'all' | 'get'
interface Prepared {
  type: 'async'
  run: Changes
  all: unknown
  get: unknown
  values: unknown
  execute: unknown
}

const dialect = new SQLiteAsyncDialect({ casing: 'snake_case' })

export const createDriver = (connect: Connect): Driver =>
  new BaseSQLiteDatabase<'async', Changes, NoSchema, NoSchema>('async', dialect, new Session(connect), undefined)

class Session extends SQLiteSession<'async', Changes, NoSchema, NoSchema> {
  readonly #connect: Connect

  constructor(connect: Connect) {
    super(dialect)
    this.#connect = connect
  }

  override prepareQuery(
    query: Query,
    fields: SelectedFieldsOrdered | undefined,
    method: ExecuteMethod,
    isResponseInArrayMode: boolean,
    mapper?: Mapper,
  ): Statement {
    return new Statement(this.#connect, { query, fields, method, isResponseInArrayMode, mapper })
  }

  /** `commit` opens transactions. */
  override transaction<T>(_: (tx: SQLiteTransaction<'async', Changes, NoSchema, NoSchema>) => Promise<T>): Promise<T> {
    throw new Error('Use commit.')
  }
}

interface StatementDeps {
  query: Query
  fields: SelectedFieldsOrdered | undefined
  method: ExecuteMethod
  isResponseInArrayMode: boolean
  mapper: Mapper | undefined
}

class Statement extends SQLitePreparedQuery<Prepared> {
  readonly #connect: Connect
  readonly #deps: StatementDeps
  /** drizzle sets it for joins. */
  declare joinsNotNullableMap?: Record<string, boolean>

  constructor(connect: Connect, deps: StatementDeps) {
    super('async', deps.method, deps.query)
    this.#connect = connect
    this.#deps = deps
  }

  async run(placeholders?: Record<string, unknown>): Promise<Changes> {
    return this.#connect().call(runQuery, this.#bound(placeholders))
  }

  async all(placeholders?: Record<string, unknown>): Promise<unknown> {
    const { fields, mapper } = this.#deps
    if (!fields && !mapper) return this.#connect().call(getObjects, this.#bound(placeholders))
    const rows = await this.values(placeholders)
    return mapper ? mapper(rows) : rows.map((row) => this.#mapped(row))
  }

  async get(placeholders?: Record<string, unknown>): Promise<unknown> {
    const [row] = await this.values(placeholders)
    if (!row) return undefined
    const { fields, mapper } = this.#deps
    if (!fields && !mapper) return row
    return mapper ? mapper([row]) : this.#mapped(row)
  }

  async values(placeholders?: Record<string, unknown>): Promise<Rows> {
    return this.#connect().call(getRows, this.#bound(placeholders))
  }

  isResponseInArrayMode(): boolean {
    return this.#deps.isResponseInArrayMode
  }

  #bound(placeholders: Record<string, unknown> = {}): Bound {
    const { sql, params } = this.#deps.query
    return { sql, bindings: fillPlaceholders(params, placeholders) as SQLQueryBindings[] } // as: encoded by the columns
  }

  #mapped(row: unknown[]): unknown {
    return mapResultRow(this.#deps.fields ?? [], row, this.joinsNotNullableMap)
  }
}
