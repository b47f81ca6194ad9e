/** The only way to write to the database: one synchronous transaction, all or nothing, then one change notification. */
import type { Changes } from 'bun:sqlite'
import { sql } from 'drizzle-orm'
import type { BaseSQLiteDatabase } from 'drizzle-orm/sqlite-core'
import { Signal } from '../src/lib/signal.ts'

/** What a commit can announce; each topic feeds a memory view. */
export const TOPICS = [
  'accounts',
  'keys',
  'settings',
  'egress',
  'firewall',
  'affinity',
  'catalog',
  'sources',
  'people',
  'sessions',
  'automations',
  /** Visible rows of the request log were deleted. */
  'log',
  /** A process needs a part of a key limit that another has leased. */
  'leases',
] as const
export type Topic = (typeof TOPICS)[number]

/** drizzle's driver as it really is: synchronous, and `run()` returns the number of changed rows. */
export type Driver = BaseSQLiteDatabase<'sync', Changes>

type Reads = Pick<Driver, 'select' | 'selectDistinct' | '$with' | '$count' | 'get' | 'all' | 'values'> & {
  with(...queries: Parameters<Driver['with']>): Pick<ReturnType<Driver['with']>, 'select' | 'selectDistinct'>
}
type Writes = Pick<Driver, 'insert' | 'update' | 'delete' | 'run' | 'with'>

interface Journal {
  driver: Driver
  /** Topics announced by the open commit; null outside a commit. */
  open: Set<Topic> | null
  changes: Signal<ReadonlySet<Topic>>
  /** How often each topic has changed, as far as this process knows; null: no other process is to learn of it. */
  counts: Map<string, number> | null
}

const journal = Symbol('journal')
declare const writable: unique symbol

/** Read access. A `Tx` is one too, so a query written for `Db` sees the uncommitted rows of its commit. */
export type Db = Reads & { readonly [journal]: Journal }

/** Read and write access within a commit. Invalid after the callback returns. */
export type Tx = Writes & Db & { readonly [writable]: true }

/** `T`, unless it is a promise: an async transaction commits before its awaits, so a later throw would not roll back. */
export type Sync<T> = T extends PromiseLike<unknown> ? never : T

/**
 * Runs `fn` under BEGIN IMMEDIATE and returns its value. If `fn` throws, everything is rolled back and the error
 * rethrown. Hash, fetch and read the clock beforehand. Throws on a promise and on a nested commit.
 */
export function commit<T>(db: Db & { readonly [writable]?: never }, fn: (tx: Tx) => Sync<T>): T {
  const state = db[journal]
  if (state.open) throw new Error('A commit cannot run inside another commit; pass the tx on instead.')
  const topics = new Set<Topic>()
  state.open = topics
  let value: T
  try {
    value = state.driver.transaction(
      (driver) => {
        const result = refusePromise(fn(Object.assign(driver, { [journal]: state }) as unknown as Tx)) // as: brands are types only
        if (state.counts) for (const topic of topics) countChange(state.driver, topic)
        return result
      },
      { behavior: 'immediate' },
    )
  } finally {
    state.open = null
  }
  for (const topic of topics) state.counts?.set(topic, (state.counts.get(topic) ?? 0) + 1)
  if (topics.size > 0) state.changes.emit(topics)
  return value
}

/** Announces, once the commit of `tx` has succeeded, that `topic` changed. Repeats are merged. */
export function notice(tx: Tx, topic: Topic): void {
  const { open } = tx[journal]
  if (!open) throw new Error('This commit is over; its tx was kept too long.')
  open.add(topic)
}

/** Calls `fn` once after every commit that announced something. Returns the unsubscribe function. */
export function onChange(db: Db, fn: (topics: ReadonlySet<Topic>) => void): () => void {
  return db[journal].changes.on(fn)
}

/** Announces topics without a commit, because another process changed them. */
export function announce(db: Db, topics: ReadonlySet<Topic>): void {
  db[journal].changes.emit(topics)
}

/** Announces every topic: another process wrote to the file, and what it changed is not known. */
export function announceAll(db: Db): void {
  announce(db, new Set(TOPICS))
}

/** From now on, commits count their topics in the file, for `foreignChanges` of other processes. */
export function shareChanges(db: Db): void {
  const state = db[journal]
  state.counts = countsIn(state.driver)
}

/** Topics that other processes changed since the last call, or since `shareChanges`. */
export function foreignChanges(db: Db): ReadonlySet<Topic> {
  const state = db[journal]
  const known = state.counts
  if (!known) return new Set(TOPICS)
  state.counts = countsIn(state.driver)
  return new Set(TOPICS.filter((topic) => state.counts?.get(topic) !== known.get(topic)))
}

/** In the table of facts. */
const COUNT_OF = 'changes_of_'

function countChange(driver: Driver, topic: Topic): void {
  driver.run(sql`INSERT INTO facts (name, value) VALUES (${COUNT_OF + topic}, '1')
    ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(facts.value AS INTEGER) + 1 AS TEXT)`)
}

function countsIn(driver: Driver): Map<string, number> {
  const rows = driver.all<{ name: string; value: string }>(
    sql`SELECT name, value FROM facts WHERE name LIKE ${`${COUNT_OF}%`}`,
  )
  return new Map(rows.map(({ name, value }) => [name.slice(COUNT_OF.length), Number(value)]))
}

/** Turns a drizzle driver into a `Db`. `onListenerError` receives errors of `onChange` listeners. */
export function asDb(driver: Driver, onListenerError: (error: unknown) => void): Db {
  const state: Journal = { driver, open: null, changes: new Signal(onListenerError), counts: null }
  return Object.assign(driver, { [journal]: state })
}

function refusePromise<T>(value: T): T {
  // the throw below reports it; an unhandled rejection would end the process
  if (value instanceof Promise) value.catch(() => {})
  if (typeof (value as { then?: unknown } | null | undefined)?.then === 'function') {
    throw new Error('A commit is synchronous: await before it, and end each query with .get(), .all() or .run().')
  }
  return value
}
