/** The PostgreSQL connection that writes. It reconnects after it is lost. */
import type { ReservedSQL, SQL } from 'bun'
import type { Clock } from '../../src/lib/clock.ts'
import { isBusy, outcomeUnknown } from '../busy.ts'
import {
  begin,
  type Connection,
  commitCounting,
  type Procedure,
  rollback,
  waitForLocksAtMost,
  waitForOneLockAtMost,
} from '../connection.ts'
import { allOf, send } from './batch.ts'
import { onPostgres, type PostgresProcedure } from './connection.ts'

/** The channel for commits. A notification is the node's name and the changed topics. */
export const CHANNEL = 'sluice'

/** The lock that allows one commit at a time across all nodes, so what a commit reads cannot change until it ends. */
export const COMMIT_LOCK = 1

/** Returns the ID of the transaction. */
const LOCK = `SELECT pg_advisory_xact_lock(${COMMIT_LOCK}), pg_current_xact_id()::text AS id`

/**
 * Other procedures, by their SQLite function. Each has its own transaction, which does not wait for commits of other
 * nodes.
 */
export type PostgresProcedures = ReadonlyMap<unknown, PostgresProcedure<never, unknown>>

interface WriterDeps {
  sql: Pick<SQL, 'reserve'>
  /** The node's name, which its notifications start with. */
  node: string
  clock: Clock
  more: PostgresProcedures
}

const RECONNECT_MS = 250
/** A commit whose outcome is unknown blocks the later commits of this node for this long. Then it fails. */
const UNKNOWN_MS = 5000
/** The pool may contain this many connections that the server has closed. */
const TRIES = 3
/** A node that is frozen or disconnected during a commit blocks the others for this long. */
const FROZEN_MS = 5000

export class PostgresWriter implements Connection {
  readonly #deps: WriterDeps
  #client: ReservedSQL | null = null
  /** The ID of the open transaction. After a lost connection, it shows whether the transaction was committed. */
  #transaction: string | null = null
  #lockTimeoutMs = 5000
  #isClosed = false

  constructor(deps: WriterDeps) {
    this.#deps = deps
  }

  async call<Args, Value>(procedure: Procedure<Args, Value>, args: Args): Promise<Value> {
    return (await this.#run(procedure, args)) as Value // as: each does what its procedure does on SQLite
  }

  /** Closes the connection. An open commit is rolled back. */
  close(): void {
    this.#isClosed = true
    this.#drop()
  }

  /** Running statements fail. The server rolls back, or has already committed. */
  giveUp(): void {
    this.#drop()
  }

  async #run(procedure: unknown, args: unknown): Promise<unknown> {
    if (procedure === begin) return this.#begin()
    if (procedure === commitCounting) return this.#commit(args as readonly string[])
    if (procedure === rollback) return this.#rollback()
    if (procedure === waitForLocksAtMost || procedure === waitForOneLockAtMost)
      return this.#waitForLocksAtMost(args as number)
    const more = this.#deps.more.get(procedure)
    if (more) return this.#append(more, args as never)
    const client = this.#transaction === null ? await this.#connect() : this.#client
    if (!client) throw lost()
    return onPostgres(client).call(procedure as Procedure<unknown, unknown>, args)
  }

  /** Takes the lock before the first read, so that the commit sees the previous one. In one round trip. */
  async #begin(tries = TRIES): Promise<void> {
    try {
      const client = await this.#connect()
      const [, [row]] = await allOf([send(client, 'BEGIN'), send<[{ id: string }]>(client, LOCK)] as const)
      this.#transaction = row.id
    } catch (error) {
      this.#drop() // the server rolls back
      if (tries === 1 || this.#isClosed || isBusy(error) || isTimeout(error)) throw error
      return this.#begin(tries - 1) // the connection was lost some time ago
    }
  }

  /** Commits, and notifies the other nodes in the same transaction. In one round trip. */
  async #commit(topics: readonly string[]): Promise<void> {
    const client = this.#client
    const transaction = this.#transaction
    if (!client || transaction === null) throw lost()
    const notice = [CHANNEL, [this.#deps.node, ...topics].join(' ')]
    const notified = topics.length > 0 ? send(client, 'SELECT pg_notify($1, $2)', notice) : null
    const [before, commit] = await Promise.allSettled([notified, send(client, 'COMMIT')])
    this.#transaction = null
    if (commit.status === 'rejected') {
      this.#drop()
      if (!(await this.#wasCommitted(transaction))) throw commit.reason
    } else if (before.status === 'rejected') throw before.reason // so PostgreSQL has rolled back
  }

  async #rollback(): Promise<void> {
    const client = this.#transaction === null ? null : this.#client
    this.#transaction = null
    try {
      await client?.unsafe('ROLLBACK')
    } catch {
      this.#drop()
    }
  }

  /** Notifies the other nodes without a topic, because only log rows were added. */
  async #append(procedure: PostgresProcedure<never, unknown>, args: never): Promise<unknown> {
    const client = await this.#connect()
    try {
      const value = await procedure(client, args)
      // the rows are stored, so a failed notification must not cause a retry
      await client.unsafe('SELECT pg_notify($1, $2)', [CHANNEL, this.#deps.node]).catch(() => this.#drop())
      return value
    } catch (error) {
      await client.unsafe('ROLLBACK').catch(() => this.#drop())
      throw error
    }
  }

  /** Throws `outcomeUnknown` if the server cannot tell within `UNKNOWN_MS`. */
  async #wasCommitted(transaction: string): Promise<boolean> {
    const { clock } = this.#deps
    const deadline = clock.monotonic() + UNKNOWN_MS
    let reason: unknown = null
    while (clock.monotonic() < deadline && !this.#isClosed) {
      try {
        const client = await this.#connect()
        const [row] = await client.unsafe('SELECT pg_xact_status($1::xid8) AS status', [transaction])
        if (row.status !== 'in progress') return row.status === 'committed'
      } catch (error) {
        this.#drop()
        reason = error
      }
      await clock.sleep(RECONNECT_MS)
    }
    throw outcomeUnknown(reason)
  }

  async #waitForLocksAtMost(ms: number): Promise<void> {
    this.#lockTimeoutMs = ms
    if (this.#client) await this.#client.unsafe(`SET lock_timeout = ${ms}`)
  }

  async #connect(): Promise<ReservedSQL> {
    if (this.#isClosed) throw lost()
    if (this.#client) return this.#client
    const client = await this.#deps.sql.reserve()
    this.#client = client
    try {
      await client.unsafe(`SET lock_timeout = ${this.#lockTimeoutMs}`)
      await client.unsafe(`SET idle_in_transaction_session_timeout = ${FROZEN_MS}`)
    } catch (error) {
      this.#drop()
      throw error
    }
    return client
  }

  /** Closes the connection, which may already be lost. */
  #drop(): void {
    const client = this.#client
    this.#client = null
    void client?.close().catch(() => {})
  }
}

const isTimeout = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ERR_POSTGRES_CONNECTION_TIMEOUT'

/** The same error code as the driver uses when a query is running. */
export const lost = () =>
  Object.assign(new Error('The connection to the database was lost.'), { code: 'ERR_POSTGRES_CONNECTION_CLOSED' })
