/** Collects the records of ended turns in memory and writes them together, so that no turn waits for the disk. */
import { type Database, SQLiteError } from 'bun:sqlite'
import { commit, type Db } from '../../../db/commit.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import { type LedgerEntry, type LedgerWriter, ledgerWriter } from './ledger-writer.ts'
import { type RejectedRequest, Rejections } from './rejections.ts'

export type { LedgerEntry } from './ledger-writer.ts'

interface LedgerDeps {
  /** The connection of `db`; its schema must exist. */
  sqlite: Database
  db: Db
  clock: Clock
  log: Log
  /** The number of this process among those that use the database; 0: there is no other. */
  process?: number
  /** Called for each ended turn immediately; must be cheap and must not throw. */
  onRecord?: (entry: LedgerEntry) => void
  /** Called after a successful write, when nothing of it is pending. */
  onWritten?: (written: Written) => void
}

export interface Written {
  /** Ended turns. */
  turns: number
  /** Accounts whose usage was stored. */
  usages: number
}

/** Keeps, together with the write itself, the promise of 250 ms from the end of a turn to the disk. */
const BEAT_MS = 100
const FULL_BEAT = 100
/** Rows per transaction: a backlog is written in parts that do not block the streams. */
const MAX_BATCH = 1000
const MAX_PENDING = 50_000

/**
 * Writes request rows, attempts, counters, limits, affinity and usage in one transaction per beat, so sums and rows
 * always agree. A failed write is retried at the next beat; beyond 50,000 pending entries the oldest are dropped.
 */
export class Ledger {
  readonly #deps: LedgerDeps
  readonly #writer: LedgerWriter
  readonly #rejections: Rejections
  #entries: LedgerEntry[] = []
  #usage = new Map<string, UsageSnapshot>()
  #isRunning = false
  #isHealthy = true
  #lost = 0
  #cancelBeat: (() => void) | null = null
  #isHurried = false
  #batchSize = MAX_BATCH

  constructor(deps: LedgerDeps) {
    this.#deps = deps
    this.#writer = ledgerWriter(deps.sqlite, deps.process)
    this.#rejections = new Rejections(deps)
  }

  /** False from a failed write until the next successful one. */
  get healthy(): boolean {
    return this.#isHealthy
  }

  /** Ended turns that are only in memory. */
  get unwrittenTurns(): number {
    return this.#entries.length
  }

  /** Also counts usage snapshots and rejected clients. */
  get pending(): number {
    return this.#entries.length + this.#usage.size + this.#rejections.pending
  }

  /** Rejected clients by reason, since start. */
  get rejections(): Readonly<Rejections['counts']> {
    return this.#rejections.counts
  }

  start(): void {
    this.#isRunning = true
    this.#arm()
  }

  /** Writes what is pending. Later records are written only by `flush`. */
  stop(): void {
    this.#isRunning = false
    this.#disarm()
    this.flush()
    if (this.pending > 0) this.#deps.log.error('the last request log entries were lost', { count: this.pending })
  }

  /** Adds an ended turn. Only touches memory and never throws. */
  record(entry: LedgerEntry): void {
    this.#entries.push(entry)
    this.#deps.onRecord?.(entry)
    if (this.#entries.length > MAX_PENDING) this.#forgetOldest()
    this.#arm()
  }

  /** The account's latest usage from a response; only the last one per beat is written. */
  usage(accountId: string, snapshot: UsageSnapshot): void {
    this.#usage.set(accountId, snapshot)
    this.#arm()
  }

  /** Counts a rejected client. Only touches memory and never throws. */
  reject(request: RejectedRequest): void {
    this.#rejections.note(request)
    this.#arm()
  }

  /** Writes everything pending. Does not throw: after a failure `healthy` is false and entries stay pending. */
  flush(): void {
    while (this.pending > 0 && this.#writeSome());
  }

  #arm(): void {
    if (!this.#isRunning || this.pending === 0) return
    const isFull = this.#isHealthy && this.#entries.length >= FULL_BEAT
    if (this.#cancelBeat && !(isFull && !this.#isHurried)) return
    this.#disarm()
    this.#isHurried = isFull
    this.#cancelBeat = this.#deps.clock.after(isFull ? 0 : BEAT_MS, () => this.#beat())
  }

  #disarm(): void {
    this.#cancelBeat?.()
    this.#cancelBeat = null
  }

  #beat(): void {
    this.#cancelBeat = null
    this.#writeSome()
    this.#arm()
  }

  /** One transaction, oldest first. Returns whether to continue. */
  #writeSome(): boolean {
    const batch = this.#entries.slice(0, this.#batchSize)
    const written: Written = { turns: batch.length, usages: this.#usage.size }
    try {
      this.#commit(batch)
    } catch (error) {
      if (isRefusal(error) && batch.length > 0) return this.#narrowDown(batch, error)
      this.#noteFailure(error)
      return false
    }
    this.#noteSuccess()
    this.#deps.onWritten?.(written)
    return true
  }

  /**
   * `synchronous=NORMAL` avoids a disk sync per batch. If the process is killed, only the last 100 ms and the batch
   * being written are lost. A power cut also loses batches not yet on disk: those since the last commit with FULL,
   * checkpoint or system write-back (about 30 s on Linux).
   */
  #commit(batch: readonly LedgerEntry[]): void {
    const { sqlite, db } = this.#deps
    sqlite.run('PRAGMA synchronous = NORMAL')
    try {
      commit(db, () => {
        this.#writer.write(batch, this.#usage)
        this.#rejections.write()
      })
      this.#entries = this.#entries.slice(batch.length)
      this.#usage = new Map()
      this.#rejections.written()
    } finally {
      sqlite.run('PRAGMA synchronous = FULL')
    }
  }

  /** A record that violates the schema would fail forever and block the others: halving finds it, and it is dropped. */
  #narrowDown(batch: readonly LedgerEntry[], error: unknown): boolean {
    this.#batchSize = Math.ceil(batch.length / 2)
    const [only, ...others] = batch
    if (only && others.length === 0) {
      this.#entries = this.#entries.slice(1)
      this.#deps.log.error('the database rejected a request log entry, which was dropped', {
        id: only.row.id,
        error,
      })
    }
    return true
  }

  #noteFailure(error: unknown): void {
    if (this.#isHealthy) this.#deps.log.error('the request log cannot be written and is kept in memory', { error })
    this.#isHealthy = false
    this.#reportLost()
  }

  #noteSuccess(): void {
    if (!this.#isHealthy) this.#deps.log.info('the request log can be written again')
    this.#isHealthy = true
    this.#batchSize = Math.min(MAX_BATCH, this.#batchSize * 2)
    this.#reportLost()
  }

  /** Drops a whole batch, because shifting the list for each record would cost more than the turn. */
  #forgetOldest(): void {
    this.#entries = this.#entries.slice(MAX_BATCH)
    this.#lost += MAX_BATCH
  }

  #reportLost(): void {
    if (this.#lost === 0) return
    this.#deps.log.error('request log entries were lost because the buffer was full', { count: this.#lost })
    this.#lost = 0
  }
}

/** The values were rejected, so retrying cannot help; other errors may be temporary. */
const isRefusal = (error: unknown): boolean =>
  error instanceof TypeError ||
  (error instanceof SQLiteError && /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(error.code ?? ''))
