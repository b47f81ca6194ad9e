/** The only way to write to the database: one synchronous transaction, all or nothing, then one notice of what changed. */
import type { Changes } from 'bun:sqlite'
import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import { Signal } from '../src/lib/signal.ts'

/** What a commit can announce; each is the source of a memory view. */
export const TOPICS = [
  'accounts',
  'keys',
  'settings',
  'firewall',
  'affinity',
  'catalog',
  'people',
  'sessions',
  /** Rows of the request log that may still be shown were removed. */
  'log',
] as const
export type Topic = (typeof TOPICS)[number]

/** What drizzle's driver really is here: synchronous, and `run()` tells how many rows changed. */
export type Driver = BaseSQLiteDatabase<'sync', Changes>

type Reads = Pick<Driver, 'select' | 'selectDistinct' | '$with' | '$count' | 'get' | 'all' | 'values'> & {
  with(...queries: Parameters<Driver['with']>): Pick<ReturnType<Driver['with']>, 'select' | 'selectDistinct'>
}
type Writes = Pick<Driver, 'insert' | 'update' | 'delete' | 'run' | 'with'>

interface Journal {
  driver: Driver
  /** What the open commit has announced so far; null outside a commit. */
  open: Set<Topic> | null
  changes: Signal<ReadonlySet<Topic>>
}

const journal = Symbol('journal')
declare const writable: unique symbol

/** Reads. A `Tx` is one too, so a query written for `Db` also sees the uncommitted rows of the commit it is called in. */
export type Db = Reads & { readonly [journal]: Journal }

/** Reads and writes, inside a commit only: it must not be kept or used after the callback returned. */
export type Tx = Writes & Db & { readonly [writable]: true }

/** `T`, unless it is a promise: an async transaction commits before its awaits, and a later throw does not roll back. */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T

/**
 * Runs `fn` under BEGIN IMMEDIATE and returns its value. Whatever `fn` throws rolls everything back and is thrown on.
 * Hash, fetch and read the clock before entering. Throws on a promise and on a commit inside a commit.
 */
export function commit<T>(db: Db & { readonly [writable]?: never }, fn: (tx: Tx) => Sync<T>): T {
  const state = db[journal]
  if (state.open) throw new Error('A commit cannot run inside another commit; pass the tx on instead.')
  const topics = new Set<Topic>()
  state.open = topics
  let value: T
  try {
    value = state.driver.transaction(
      (driver) => refusePromise(fn(Object.assign(driver, { [journal]: state }) as unknown as Tx)), // as: brands are types only
      { behavior: 'immediate' },
    )
  } finally {
    state.open = null
  }
  if (topics.size > 0) state.changes.emit(topics)
  return value
}

/** Announces after the commit of `tx`, and only if it succeeds, that `topic` changed. Repeats are one. */
export function notice(tx: Tx, topic: Topic): void {
  const { open } = tx[journal]
  if (!open) throw new Error('This commit is over; its tx was kept too long.')
  open.add(topic)
}

/** Calls `fn` once after every commit that announced something. Returns the unsubscribe. */
export function onChange(db: Db, fn: (topics: ReadonlySet<Topic>) => void): () => void {
  return db[journal].changes.on(fn)
}

/** Announces every topic without a commit: another process wrote to the file. */
export function announceAll(db: Db): void {
  db[journal].changes.emit(new Set(TOPICS))
}

/** Turns a drizzle driver into a `Db`. `onListenerError` receives what an `onChange` listener throws. */
export function asDb(driver: Driver, onListenerError: (error: unknown) => void): Db {
  const state: Journal = { driver, open: null, changes: new Signal(onListenerError) }
  return Object.assign(driver, { [journal]: state })
}

function refusePromise<T>(value: T): T {
  if (value instanceof Promise) value.catch(() => {}) // the throw below is the report; a second one would end the process
  if (typeof (value as { then?: unknown } | null | undefined)?.then === 'function') {
    throw new Error('A commit is synchronous: await before it, and end each query with .get(), .all() or .run().')
  }
  return value
}
