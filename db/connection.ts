/** Runs statements on a connection, in this thread or in another one. */
import type { Changes, Database, SQLQueryBindings } from 'bun:sqlite'
import { isBusy } from './busy.ts'

/**
 * What runs on a connection in one go. Its arguments and value are passed between threads by structured clone. The
 * writing thread knows only those listed in `src/threads/writer-worker.ts`.
 */
export type Procedure<Args, Value> = (sqlite: Database, args: Args) => Value

export interface Connection {
  /** Runs procedures in the order of the calls. Rejects with what the procedure throws. */
  call<Args, Value>(procedure: Procedure<Args, Value>, args: Args): Promise<Value>
}

/** `connect` returns the connection for the next call, or throws. */
export const onThisThread = (connect: () => Database): Connection => ({
  call: async (procedure, args) => procedure(connect(), args),
})

export interface Query {
  sql: string
  bindings: SQLQueryBindings[]
}

export type Rows = unknown[][]

// Statements are finalized after use: an open one would keep the connection, and with it the write-ahead log.

export const runQuery = (sqlite: Database, { sql, bindings }: Query): Changes => {
  using statement = sqlite.prepare<unknown, SQLQueryBindings[]>(sql)
  return statement.run(...bindings)
}

/** Each row as an array. */
export const getRows = (sqlite: Database, { sql, bindings }: Query): Rows => {
  using statement = sqlite.prepare<unknown, SQLQueryBindings[]>(sql)
  return statement.values(...bindings) as Rows // as: typed as primitives only
}

/** Each row as an object by column name. */
export const getObjects = (sqlite: Database, { sql, bindings }: Query): unknown[] => {
  using statement = sqlite.prepare<unknown, SQLQueryBindings[]>(sql)
  return statement.all(...bindings)
}

export const begin = (sqlite: Database, _: null): void => {
  const wait = waits.get(sqlite)
  try {
    sqlite.run('BEGIN IMMEDIATE')
  } catch (error) {
    if (wait && isBusy(error)) shorten(sqlite, wait, true)
    throw error
  }
  if (wait) shorten(sqlite, wait, false)
}

/** Runs `fn` in a transaction of its own. */
export const inTransaction = (sqlite: Database, fn: () => void): void => {
  begin(sqlite, null)
  try {
    fn()
    sqlite.run('COMMIT')
  } catch (error) {
    rollback(sqlite, null)
    throw error
  }
}

export const rollback = (sqlite: Database, _: null): void => {
  if (sqlite.inTransaction) sqlite.run('ROLLBACK')
}

/** Increments the change count of each topic in `counted` (table `facts`), then commits. */
export const commitCounting = (sqlite: Database, counted: readonly string[]): void => {
  for (const topic of counted)
    sqlite
      .query(
        `INSERT INTO facts (name, value) VALUES (?, '1')
         ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(facts.value AS INTEGER) + 1 AS TEXT)`,
      )
      .run(COUNT_OF + topic)
  sqlite.run('COMMIT')
}

/** In the table of facts. */
const COUNT_OF = 'changes_of_'

/** How often each topic has changed. */
export const getChangeCounts = (sqlite: Database, _: null): Map<string, number> => {
  const rows = sqlite
    .query<{ name: string; value: string }, [string]>('SELECT name, value FROM facts WHERE name LIKE ?')
    .all(`${COUNT_OF}%`)
  return new Map(rows.map(({ name, value }) => [name.slice(COUNT_OF.length), Number(value)]))
}

/** Changes only with commits of other connections. */
export const getDataVersion = (sqlite: Database, _: null): number | null =>
  sqlite.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version ?? null

/** How long a statement waits for another process's lock before it throws SQLITE_BUSY. */
export const waitForLocksAtMost = (sqlite: Database, ms: number): void => {
  waits.delete(sqlite)
  setBusyTimeout(sqlite, ms)
}

/**
 * Like `waitForLocksAtMost`, but after a BEGIN has timed out, the next ones wait only briefly until one succeeds.
 * Otherwise each queued commit would wait for the full timeout in turn.
 */
export const waitForOneLockAtMost = (sqlite: Database, ms: number): void => {
  waits.set(sqlite, { ms, isShort: false })
  setBusyTimeout(sqlite, ms)
}

interface Wait {
  ms: number
  /** Whether a BEGIN has timed out and none has succeeded since. */
  isShort: boolean
}

const waits = new WeakMap<Database, Wait>()
/** The brief wait, longer than a short transaction of another process. */
const SHORT_MS = 20

const shorten = (sqlite: Database, wait: Wait, isShort: boolean): void => {
  if (wait.isShort === isShort) return
  wait.isShort = isShort
  setBusyTimeout(sqlite, isShort ? SHORT_MS : wait.ms)
}

const setBusyTimeout = (sqlite: Database, ms: number): void => {
  sqlite.run(`PRAGMA busy_timeout = ${ms}`)
}

/** Writes everything that is committed to the existing empty file `target`. */
export const vacuumInto = (sqlite: Database, target: string): void => {
  sqlite.run('VACUUM INTO ?', [target])
}

/** The procedures above by name, for the writing thread. */
export const PROCEDURES = {
  runQuery,
  getRows,
  getObjects,
  begin,
  rollback,
  commitCounting,
  getChangeCounts,
  getDataVersion,
  waitForLocksAtMost,
  waitForOneLockAtMost,
  vacuumInto,
}
