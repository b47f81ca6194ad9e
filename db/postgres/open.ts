/** Opens a PostgreSQL database, which several nodes may share. */
import type { SQL } from 'bun'
import type { Clock } from '../../src/lib/clock.ts'
import { createDb, type Db, type Snapshot, TOPICS, type Topic } from '../commit.ts'
import { type Connection, rollback } from '../connection.ts'
import { throwUncaught } from '../open.ts'
import { onPostgres } from './connection.ts'
import { Channels, ReplaceablePool } from './pools.ts'
import { CHANNEL, lost, type PostgresProcedures, PostgresWriter } from './writer.ts'

export interface OpenedPostgres {
  db: Db
  reader: Connection
  snapshot: Snapshot
  /** A read-only pool with a limit on how long a query runs. */
  slowDb: Db
  /** For DDL, locks and measurements. */
  sql: SQL
  /**
   * Calls `onMoved` with the topics that other nodes changed: none if only log rows were added, all after a lost
   * connection. Returns the stop function.
   */
  watch(onMoved: (topics: ReadonlySet<Topic>) => void): Promise<() => Promise<void>>
  /** Sends a message to the other nodes. Nodes that cannot be reached do not get it. */
  send(message: unknown): void
  /** Calls `onMessage` with messages of other nodes. Returns the stop function. */
  onMessage(onMessage: (message: unknown) => void): Promise<() => Promise<void>>
  /** While the server does not answer, calls fail immediately instead of waiting, and a running commit fails too. */
  setSilent(isSilent: boolean): void
  close(): Promise<void>
}

const READ_ONLY = { default_transaction_read_only: 'on' }

const isRollback = (procedure: unknown): boolean => procedure === rollback

export interface PostgresOptions {
  clock: Clock
  /** Unique; sent with notifications, so that a node knows its own. */
  node: string
  /** See `PostgresWriter`. */
  procedures?: PostgresProcedures
  /** Receives errors of `onChange` listeners. */
  onListenerError: (error: unknown) => void
}

const READERS = 4
const SLOW_READERS = 2
/** The time limit of a read, the same as in SQLite's reader threads. */
const SLOW_MS = 2000

/** Opens the database; connects with the first query. `url` is `postgres://…`. */
export function openPostgres(url: string, options: PostgresOptions): OpenedPostgres {
  const { clock, node, procedures = new Map(), onListenerError } = options
  const main = new ReplaceablePool({ url, max: 3, connection: { idle_session_timeout: 0 } })
  const readers = new ReplaceablePool({ url, max: READERS, connection: READ_ONLY })
  const slow = new ReplaceablePool({
    url,
    max: SLOW_READERS,
    connection: { ...READ_ONLY, statement_timeout: SLOW_MS },
  })
  const writer = new PostgresWriter({ sql: main, node, clock, more: procedures })
  const channels = new Channels(main, clock)
  let isServerSilent = false
  const ifAnswering = (connection: Connection): Connection => ({
    call: async (procedure, args) => {
      if (isServerSilent && !isRollback(procedure)) throw lost()
      return connection.call(procedure, args)
    },
  })
  const snapshotOn = (pool: ReplaceablePool): Snapshot => {
    const snapshot = onOwnConnection(pool)
    return async (fn) => {
      if (isServerSilent) throw lost()
      return snapshot(fn)
    }
  }
  const reading = { reader: ifAnswering(onPostgres(readers)), snapshot: snapshotOn(readers) }
  const parts = { engine: 'postgres', onListenerError } as const
  return {
    ...reading,
    db: createDb({ ...parts, ...reading, writer: ifAnswering(writer) }),
    slowDb: createDb({
      ...parts,
      reader: ifAnswering(onPostgres(slow)),
      snapshot: snapshotOn(slow),
      writer: null,
    }),
    sql: main.current,
    watch: (onMoved) => watch(channels, node, onMoved),
    ...messagesOn(main, channels, { node, clock }),
    setSilent(isSilent) {
      if (isSilent === isServerSilent) return
      isServerSilent = isSilent
      if (!isSilent) return channels.listenAgain()
      writer.giveUp()
      for (const pool of [main, readers, slow]) pool.replace()
    },
    async close() {
      writer.close()
      channels.close()
      await Promise.all([readers.close(), slow.close(), main.close()])
    },
  }
}

/** A read-only pool without a limit on how long a query runs. */
export function postgresReader(url: string): { db: Db; close: () => Promise<void> } {
  const pool = new ReplaceablePool({ url, max: 1, connection: READ_ONLY })
  const db = createDb({
    engine: 'postgres',
    reader: onPostgres(pool),
    snapshot: onOwnConnection(pool),
    writer: null,
    onListenerError: throwUncaught,
  })
  return { db, close: () => pool.close() }
}

/** Each snapshot has its own connection, because a failed query would end other snapshots on the same one. */
const onOwnConnection =
  (pool: ReplaceablePool): Snapshot =>
  async (fn) => {
    using client = await pool.reserve()
    await client.unsafe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    try {
      return await fn(onPostgres(client))
    } finally {
      await client.unsafe('ROLLBACK')
    }
  }

const watch = (channels: Channels, node: string, onMoved: (topics: ReadonlySet<Topic>) => void) =>
  channels.listen(
    CHANNEL,
    (payload) => {
      const [sender, ...names] = payload.split(' ')
      if (sender !== node) onMoved(new Set(TOPICS.filter((topic) => names.includes(topic))))
    },
    () => onMoved(new Set(TOPICS)),
  )

const MESSAGES = 'sluice_messages'
/** Messages are collected for this long, because each notification is a transaction. */
const BATCH_MS = 10
/** Messages per notification. A notification has up to 8,000 bytes, and a message about 250. */
const MOST_TOGETHER = 20

function messagesOn(
  pool: ReplaceablePool,
  channels: Channels,
  { node, clock }: Pick<PostgresOptions, 'node' | 'clock'>,
): Pick<OpenedPostgres, 'send' | 'onMessage'> {
  const waiting: string[] = []
  let isSending = false
  const flush = async () => {
    // A failed notification is not repeated: without PostgreSQL no node can be reached.
    while (waiting.length > 0)
      await pool.current.notify(MESSAGES, `${node} [${waiting.splice(0, MOST_TOGETHER)}]`).catch(() => {})
    isSending = false
  }
  return {
    send(message) {
      waiting.push(JSON.stringify(message))
      if (!isSending) clock.after(BATCH_MS, flush)
      isSending = true
    },
    onMessage: (onMessage) =>
      channels.listen(MESSAGES, (payload) => {
        const start = payload.indexOf(' ')
        if (payload.slice(0, start) === node) return
        for (const message of JSON.parse(payload.slice(start)) as unknown[]) onMessage(message)
      }),
  }
}
