/** The only way to write to the database: one transaction at a time, all or nothing, then one change notification. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { getQueue } from '../src/lib/lanes.ts'
import { isOutcomeUnknown } from './busy.ts'
import {
  begin,
  type Connection,
  commitCounting,
  getChangeCounts,
  getRows,
  type Procedure,
  rollback,
} from './connection.ts'
import { createDriver, type Driver } from './driver.ts'

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
  'alerts',
  /** Visible rows of the request log were deleted. */
  'log',
  /** A process needs a part of a key limit that another has leased. */
  'leases',
] as const
export type Topic = (typeof TOPICS)[number]

type Reads = Pick<Driver, 'select' | 'selectDistinct' | '$with' | '$count' | 'get' | 'all' | 'values'> & {
  with(...queries: Parameters<Driver['with']>): Pick<ReturnType<Driver['with']>, 'select' | 'selectDistinct'>
}
type Writes = Pick<Driver, 'insert' | 'update' | 'delete' | 'run' | 'with'>

type Listener = (topics: ReadonlySet<Topic>) => unknown

/** Queue of writers to one file, shared by all connections of this process. */
export type Turn = ReturnType<typeof getQueue>

export const newTurn = (): Turn => getQueue(1)

export type Engine = 'sqlite' | 'postgres'

interface Journal {
  /** The connection that writes; null for a database that is only read. */
  writer: Connection | null
  turn: Turn
  snapshot: Snapshot
  listeners: Set<{ run: Listener }>
  onListenerError: (error: unknown) => void
  /** SQLite: the change count of each topic that this process knows. Null if other processes are not notified. */
  counts: Map<string, number> | null
  /** A commit may have been stored that was not announced. The next one announces everything. */
  isUncertain: boolean
  engine: Engine
}

/** Calls `fn` with a connection on which all queries see the same snapshot. */
export type Snapshot = <T>(fn: (connection: Connection) => Promise<T>) => Promise<T>

/** The commit whose callback is running. */
interface Scope {
  journal: Journal
  topics: Set<Topic>
  isOpen: boolean
  onCommitted: (() => void)[]
}

const journal = Symbol('journal')
const scope = Symbol('scope')
declare const writable: unique symbol

/** Detects a nested commit, which would wait for itself. */
const running = new AsyncLocalStorage<Scope>()

/** Read access. A `Tx` is one too, so a query written for `Db` sees the uncommitted rows of its commit. */
export type Db = Reads & { readonly [journal]: Journal }

/** Read and write access within a commit. Throws after the callback has ended. */
export type Tx = Writes & Db & { readonly [scope]: Scope; readonly [writable]: true }

/**
 * Runs `fn` under BEGIN IMMEDIATE, after the commits before it, and resolves to its value once the listeners of
 * `onChange` are done. If `fn` throws, everything is rolled back and the error rethrown. Nothing else can write while
 * `fn` runs: hash, fetch and read the clock before. Throws on a nested commit.
 */
export async function commit<T>(db: Db & { readonly [writable]?: never }, fn: (tx: Tx) => Promise<T>): Promise<T> {
  const state = db[journal]
  refuseNested(state)
  const topics = new Set<Topic>()
  const value = await state.turn(() => transaction(state, topics, fn))
  if (state.isUncertain) {
    state.isUncertain = false
    await announceAll(db)
  } else if (topics.size > 0) await announce(db, topics)
  return value
}

async function transaction<T>(state: Journal, topics: Set<Topic>, fn: (tx: Tx) => Promise<T>): Promise<T> {
  const writer = writerOf(state)
  await writer.call(begin, null)
  const now: Scope = { journal: state, topics, isOpen: true, onCommitted: [] }
  try {
    const value = await running.run(now, () => fn(txOf(now, writer)))
    now.isOpen = false
    await writer.call(commitCounting, isShared(state) ? [...topics] : [])
    for (const topic of topics) state.counts?.set(topic, (state.counts.get(topic) ?? 0) + 1)
    for (const run of now.onCommitted) run()
    return value
  } catch (error) {
    now.isOpen = false
    state.isUncertain ||= isOutcomeUnknown(error)
    await writer.call(rollback, null)
    throw error
  }
}

/** Whether other processes may use the database; those on PostgreSQL are notified without counts. */
const isShared = ({ counts, engine }: Journal): boolean => counts !== null || engine === 'postgres'

function txOf(now: Scope, writer: Connection): Tx {
  const driver = createDriver(() => {
    if (!now.isOpen) throw over()
    return writer
  })
  return Object.assign(driver, { [journal]: now.journal, [scope]: now }) as unknown as Tx // as: brands are types only
}

/** Announces, once the commit of `tx` has succeeded, that `topic` changed. Repeats are merged. */
export function notice(tx: Tx, topic: Topic): void {
  openScope(tx).topics.add(topic)
}

/** Runs `run` when COMMIT is confirmed, before the next commit begins and before listeners are called. */
export function onCommitted(tx: Tx, run: () => void): void {
  openScope(tx).onCommitted.push(run)
}

function openScope(tx: Tx): Scope {
  const now = tx[scope]
  if (!now.isOpen) throw over()
  return now
}

const over = () => new Error('This commit is over; its tx was kept too long, or a query was not awaited.')

/** Runs `procedure` on the writing connection between commits. A transaction is up to it; nothing is announced. */
export function onWriter<Args, Value>(db: Db, procedure: Procedure<Args, Value>, args: Args): Promise<Value> {
  return holdWriter(db, (writer) => writer.call(procedure, args))
}

/** Runs `fn` with the writing connection. Commits wait until it is done. */
export async function holdWriter<T>(db: Db, fn: (writer: Connection) => Promise<T>): Promise<T> {
  const state = db[journal]
  refuseNested(state)
  return state.turn(() => fn(writerOf(state)))
}

/** For the few queries that cannot be written the same way for both engines. */
export const engineOf = (db: Db): Engine => db[journal].engine

/** The writing connection, for calls that may run during a commit. */
export const getWriter = (db: Db): Connection => writerOf(db[journal])

/** Replaces the writing connection by another one to the same file. */
export function writeWith(db: Db, writer: Connection): void {
  db[journal].writer = writer
}

/** Runs the queries of `fn` on one snapshot, while others may write and purge. */
export async function atOneMoment<T>(db: Db, fn: (db: Db) => Promise<T>): Promise<T> {
  const state = db[journal]
  return state.snapshot((connection) =>
    fn(
      Object.assign(
        createDriver(() => connection),
        { [journal]: state },
      ),
    ),
  )
}

/** Takes snapshots on a connection shared with other readers, one at a time. */
const onSharedConnection =
  (connect: () => Connection, queue: ReturnType<typeof getQueue>): Snapshot =>
  (fn) =>
    queue(async () => {
      const connection = connect()
      await connection.call(getRows, { sql: 'BEGIN', bindings: [] })
      try {
        return await fn(connection)
      } finally {
        await connection.call(getRows, { sql: 'COMMIT', bindings: [] })
      }
    })

function refuseNested(state: Journal): void {
  const outer = running.getStore()
  if (outer?.isOpen && outer.journal.turn === state.turn)
    throw new Error('A commit cannot run inside another commit; pass the tx on instead.')
}

function writerOf({ writer }: Journal): Connection {
  if (!writer) throw new Error('This database is only read.')
  return writer
}

/**
 * Calls `fn` once after every commit that announced something; the commit resolves when it is done. Returns the
 * unsubscribe function.
 */
export function onChange(db: Db, fn: Listener): () => void {
  const { listeners } = db[journal]
  const entry = { run: fn }
  listeners.add(entry)
  return () => {
    listeners.delete(entry)
  }
}

/** Announces topics without a commit, because another process changed them. Resolves when the listeners are done. */
export async function announce(db: Db, topics: ReadonlySet<Topic>): Promise<void> {
  const { listeners, onListenerError } = db[journal]
  for (const entry of [...listeners]) {
    if (!listeners.has(entry)) continue
    try {
      await entry.run(topics)
    } catch (error) {
      onListenerError(error)
    }
  }
}

/** Announces every topic, for when another process wrote to the file and its changes are unknown. */
export function announceAll(db: Db): Promise<void> {
  return announce(db, new Set(TOPICS))
}

/** From now on, commits count their topics in the file, for `foreignChanges` of other processes. */
export async function shareChanges(db: Db): Promise<void> {
  db[journal].counts = await onWriter(db, getChangeCounts, null)
}

/** Topics that other processes changed since the last call, or since `shareChanges`. */
export async function foreignChanges(db: Db): Promise<ReadonlySet<Topic>> {
  const state = db[journal]
  if (!state.counts) return new Set(TOPICS)
  return holdWriter(db, async (writer) => {
    const counts = await writer.call(getChangeCounts, null)
    const known = state.counts
    state.counts = counts
    return new Set(TOPICS.filter((topic) => counts.get(topic) !== known?.get(topic)))
  })
}

interface DbParts {
  /** Null for a database that is only read. */
  writer: Connection | null
  /** The connection that reads; absent in memory, where the writer's is the only one. */
  reader?: Connection
  /** Shared by all that open the same file. */
  turn?: Turn
  /** By default, snapshots are taken on the connection that reads. */
  snapshot?: Snapshot
  engine?: Engine
  /** Receives errors of `onChange` listeners. */
  onListenerError: (error: unknown) => void
}

/** Reads from one connection and writes on another, so that an open transaction is seen by its own commit only. */
export function createDb({
  writer,
  reader,
  turn = newTurn(),
  snapshot,
  engine = 'sqlite',
  onListenerError,
}: DbParts): Db {
  const connect = (): Connection => reader ?? writerOf(state)
  const state: Journal = {
    writer,
    turn,
    snapshot: snapshot ?? onSharedConnection(connect, reader ? getQueue(1) : turn),
    listeners: new Set(),
    onListenerError,
    counts: null,
    isUncertain: false,
    engine,
  }
  return Object.assign(createDriver(connect), { [journal]: state })
}
