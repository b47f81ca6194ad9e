/** What ended turns leave behind, gathered in memory and written together, so that a turn itself never waits for the disk. */
import { type Database, SQLiteError } from 'bun:sqlite'
import { commit, type Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { UsageSnapshot } from '../model/usage-windows.ts'
import { type LedgerEntry, type LedgerWriter, ledgerWriter } from './ledger-writer.ts'
import { type RejectedRequest, Rejections } from './rejections.ts'

export type { LedgerEntry } from './ledger-writer.ts'

interface LedgerDeps {
  /** The connection of `db`; its schema must be in place. */
  sqlite: Database
  db: Db
  clock: Clock
  log: Log
  /** Told of each ended turn at once; must be cheap and must not throw. */
  onRecord?: (entry: LedgerEntry) => void
  /** Called behind every write that succeeded, when nothing of it is pending any more. */
  onWritten?: (written: Written) => void
}

export interface Written {
  /** Ended turns. */
  turns: number
  /** Accounts whose usage was stored. */
  usages: number
}

/** Together with the write itself this keeps the promise of 250 ms from the end of a turn to the disk. */
const BEAT_MS = 100
const FULL_BEAT = 100
/** Of one transaction: a backlog is written in pieces that do not hold up the streams. */
const MAX_BATCH = 1000
const MAX_PENDING = 50_000

/**
 * Writes request rows, attempts, counters, limits, affinity and usage in one transaction a beat, so sums and rows cannot
 * differ. What could not be written is kept and tried again at the next beat; of more than 50,000 the oldest are lost.
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
    this.#writer = ledgerWriter(deps.sqlite)
    this.#rejections = new Rejections(deps)
  }

  /** False from a failed write until one succeeds. */
  get healthy(): boolean {
    return this.#isHealthy
  }

  /** Ended turns that are in memory only. */
  get unwrittenTurns(): number {
    return this.#entries.length
  }

  /** The same with usage snapshots and rejected clients. */
  get pending(): number {
    return this.#entries.length + this.#usage.size + this.#rejections.pending
  }

  /** Rejected clients by reason since the start. */
  get rejections(): Readonly<Rejections['counts']> {
    return this.#rejections.counts
  }

  start(): void {
    this.#isRunning = true
    this.#arm()
  }

  /** Writes what is pending; nothing is written after it without `flush`. */
  stop(): void {
    this.#isRunning = false
    this.#disarm()
    this.flush()
    if (this.pending > 0) this.#deps.log.error('the last request log entries were lost', { count: this.pending })
  }

  /** Adds an ended turn. Touches memory only and never throws. */
  record(entry: LedgerEntry): void {
    this.#entries.push(entry)
    this.#deps.onRecord?.(entry)
    if (this.#entries.length > MAX_PENDING) this.#forgetOldest()
    this.#arm()
  }

  /** The account's latest usage as the upstream told it in passing; of several in one beat the last is written. */
  usage(accountId: string, snapshot: UsageSnapshot): void {
    this.#usage.set(accountId, snapshot)
    this.#arm()
  }

  /** Counts a request whose client was rejected. Touches memory only and never throws. */
  reject(request: RejectedRequest): void {
    this.#rejections.note(request)
    this.#arm()
  }

  /** Writes all that is pending, now. Does not throw: a failure shows in `healthy` and in what stays pending. */
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

  /** One transaction, the oldest first. Returns whether it is worth going on. */
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
   * `synchronous=NORMAL` spares the disk a sync for each batch. When the process is killed, only what `record` still held is
   * lost: the last 100 ms, and the batch being written. A power cut also loses batches that are not yet on the disk: those since
   * the last commit with FULL, the last checkpoint or the system's own write-back (about 30 s on Linux).
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

  /** A record that the schema refuses would be refused for ever and hold up all others: it is found by halving, and dropped. */
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

  /** Some more than needed: moving the whole list for each record would cost more than the turn. */
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

/** The statement was understood and the values were not accepted; anything else may pass with time. */
const isRefusal = (error: unknown): boolean =>
  error instanceof TypeError ||
  (error instanceof SQLiteError && /^SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)/.test(error.code ?? ''))
