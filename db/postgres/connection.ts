/** Runs the procedures of `db/connection.ts` on PostgreSQL. */
import type { Changes, SQLQueryBindings } from 'bun:sqlite'
import type { ReservedSQL } from 'bun'
import { type Connection, getObjects, getRows, type Procedure, type Query, type Rows, runQuery } from '../connection.ts'
import { toPostgres } from './statements.ts'

/** A connection, or a pool in which each statement can get a different connection. */
export type Client = Pick<ReservedSQL, 'unsafe'>

/** The PostgreSQL version of a procedure. Statements are sent in order, without waiting for earlier answers. */
export type PostgresProcedure<Args, Value = unknown> = (client: Client, args: Args) => Promise<Value>

const PROCEDURES = new Map<unknown, PostgresProcedure<Query, unknown>>([
  [runQuery, (client, query) => run(client, query)],
  [getRows, (client, query) => rowsOf(client, query)],
  [getObjects, (client, query) => objectsOf(client, query)],
])

/** Runs single statements, each in its own transaction unless one is open. */
export const onPostgres = (client: Client): Connection => ({
  async call<Args, Value>(procedure: Procedure<Args, Value>, args: Args): Promise<Value> {
    const known = PROCEDURES.get(procedure)
    if (!known) throw new Error(`${procedure.name} does not run on PostgreSQL.`)
    return (await known(client, args as Query)) as Value // as: the map pairs procedures of the same kind
  },
})

const run = async (client: Client, query: Query): Promise<Changes> => {
  const { count } = await send(client, query)
  return { changes: count, lastInsertRowid: 0 }
}

export const rowsOf = async (client: Client, query: Query): Promise<Rows> => {
  const answer = (await sent(client, query).values()) as unknown as Answer // as: its columns are not typed (Bun 1.4.5)
  const rows = [...answer] as Rows // as: `values` answers with arrays
  for (const [place, toNumber] of getConverters(answer)) for (const row of rows) row[place] = toNumber(row[place])
  return rows
}

const objectsOf = async (client: Client, query: Query): Promise<unknown[]> => {
  const answer = await send(client, query)
  const rows = [...answer] as Record<string, unknown>[] // as: one object for each row
  for (const [place, toNumber] of getConverters(answer)) {
    const { name } = answer.columns[place]!
    for (const row of rows) row[name] = toNumber(row[name])
  }
  return rows
}

interface Answer extends Array<unknown> {
  count: number
  columns: { name: string; type: number }[]
}

const sent = (client: Client, { sql, bindings }: Query) => client.unsafe(toPostgres(sql), bindings.map(toParameter))

const send = async (client: Client, query: Query): Promise<Answer> => (await sent(client, query)) as unknown as Answer // as: its columns are not typed (Bun 1.4.5)

/**
 * Booleans become numbers, as our columns store them. U+0000 and half surrogate pairs are replaced: PostgreSQL text
 * cannot contain them.
 */
const toParameter = (value: SQLQueryBindings): unknown => {
  if (typeof value === 'boolean') return Number(value)
  return typeof value === 'string' ? value.toWellFormed().replaceAll('\0', '\uFFFD') : value
}

/** The types that SQLite returns as numbers. The IDs are from `SELECT oid, typname FROM pg_type`. */
const NUMBERS: ReadonlySet<number> = new Set([16, 20, 1700]) // bool, int8 and numeric; the last two arrive as text

/** Safe as numbers: our counters and times are far below 2^53. */
const toNumber = (value: unknown): unknown => (value === null ? null : Number(value))

const getConverters = ({ columns }: Answer) =>
  columns.flatMap(({ type }, place) => (NUMBERS.has(type) ? [[place, toNumber] as const] : []))
