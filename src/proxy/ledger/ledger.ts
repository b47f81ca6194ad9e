/** Collects the records of ended turns in memory and writes them together, so that no turn waits for the disk. */
import { type Db, holdWriter } from '../../../db/commit.ts'
import type { Connection } from '../../../db/connection.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import type { LedgerEntry } from './ledger-batch.ts'
import { writeLedger } from './ledger-writer.ts'
import { MeterNotes } from './meter-notes.ts'
import { type RejectedRequest, Rejections } from './rejections.ts'

export type { LedgerEntry } from './ledger-batch.ts'

interface LedgerDeps {
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
/** Entries per transaction, so that a backlog is sent to the writing thread in parts that do not block the streams. */
const MAX_BATCH = 1000
const MAX_PENDING = 50_000

/**
 * Writes request rows, attempts, counters, limits, affinity and usage in one transaction per beat, so sums and rows
 * always agree. A failed write is retried at the next beat; beyond 50,000 pending entries the oldest are dropped.
 */
export class Ledger {
  readonly #deps: LedgerDeps
  readonly #rejections: Rejections
  #entries: LedgerEntry[] = []
  #usage = new Map<string, UsageSnapshot>()
  readonly #meters = new MeterNotes()
  /**
   * The number of turns since start that are written, being written or dropped. It is also the number of the first
   * pending turn.
   */
  #taken = 0
  #isRunning = false
  #isHealthy = true
  #lost = 0
  /** Ended turns that are being written. */
  #underWay = 0
  #cancelBeat: (() => void) | null = null
  #isHurried = false
  /** Whether a beat is writing or waiting to write. */
  #isBeating = false
  #batchSize = MAX_BATCH

  private constructor(deps: LedgerDeps, rejections: Rejections) {
    this.#deps = deps
    this.#rejections = rejections
  }

  static async open(deps: LedgerDeps): Promise<Ledger> {
    return new Ledger(deps, await Rejections.open(deps))
  }

  /** False from a failed write until the next successful one. */
  get healthy(): boolean {
    return this.#isHealthy
  }

  /** Whether memory has room for many more entries while the database cannot be written. */
  get hasRoom(): boolean {
    return this.unwrittenTurns < MAX_PENDING / 2
  }

  /** Ended turns that are only in memory. */
  get unwrittenTurns(): number {
    return this.#entries.length + this.#underWay
  }

  /** Also counts usage snapshots, meter readings and rejected clients. */
  get pending(): number {
    return this.unwrittenTurns + this.#usage.size + this.#meters.pending + this.#rejections.pending
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
  async stop(): Promise<void> {
    this.#isRunning = false
    this.#disarm()
    do await this.flush()
    while (this.pending > 0 && this.#isHealthy) // the last requests are still ending
    if (this.pending > 0) this.#deps.log.error('the last request log entries were lost', { count: this.pending })
  }

  /** Adds an ended turn. Only touches memory and never throws. */
  record(entry: LedgerEntry): void {
    this.#entries.push(entry)
    this.#deps.onRecord?.(entry)
    if (this.#entries.length > MAX_PENDING) this.#forgetOldest()
    this.#arm()
  }

  /**
   * The account's latest usage, of which only the last one per beat is written, and its meter readings, all of which are
   * written after the requests that ended before. `running`: see `MeterReading`.
   */
  usage(accountId: string, snapshot: UsageSnapshot, running = 0): void {
    this.#usage.set(accountId, snapshot)
    this.#meters.note(accountId, snapshot, { running, after: this.#taken + this.#entries.length })
    this.#arm()
  }

  /** Counts a rejected client. Only touches memory and never throws. */
  reject(request: RejectedRequest): void {
    this.#rejections.note(request)
    this.#arm()
  }

  /** Writes what is pending now. Does not reject: after a failure `healthy` is false and entries stay pending. */
  async flush(): Promise<void> {
    await holdWriter(this.#deps.db, (writer) => this.#flushOn(writer))
  }

  /**
   * Calls `prepare`, then runs the read it returns at a time when the rows include exactly the turns that had ended at
   * that call. Later turns are written after the read. Resolves to undefined if the ledger cannot be written.
   */
  readWritten<T>(prepare: () => () => Promise<T>): Promise<T | undefined> {
    return holdWriter(this.#deps.db, async (writer) => {
      const read = prepare()
      return (await this.#flushOn(writer)) ? read() : undefined
    })
  }

  /**
   * Writes the entries pending now, but not later ones, which might never end under load. Returns whether it succeeded.
   */
  async #flushOn(writer: Connection): Promise<boolean> {
    if (this.pending === 0) return true
    const last = this.#entries.at(-1)
    do if (!(await this.#writeSome(writer, last))) return false
    while (last && this.#entries.includes(last))
    return true
  }

  #arm(): void {
    if (!this.#isRunning || this.#isBeating || this.pending === 0) return
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

  async #beat(): Promise<void> {
    this.#cancelBeat = null
    this.#isBeating = true
    try {
      await holdWriter(this.#deps.db, async (writer) => this.pending > 0 && this.#writeSome(writer))
    } finally {
      this.#isBeating = false
    }
    this.#arm()
  }

  /** Writes the oldest entries, up to `last`, in one transaction. Returns whether to continue. */
  async #writeSome(writer: Connection, last = this.#entries.at(-1)): Promise<boolean> {
    const due = last ? this.#entries.lastIndexOf(last) + 1 : 0
    const batch = this.#entries.slice(0, Math.min(due, this.#batchSize))
    const written: Written = { turns: batch.length, usages: this.#usage.size }
    try {
      await this.#commit(writer, batch)
    } catch (error) {
      if (isRefusal(error) && batch.length > 0) return this.#narrowDown(batch, error)
      this.#noteFailure(error)
      return false
    }
    this.#noteSuccess()
    this.#deps.onWritten?.(written)
    return true
  }

  async #commit(writer: Connection, batch: readonly LedgerEntry[]): Promise<void> {
    const usage = this.#usage
    const rejected = this.#rejections.take()
    const first = this.#taken
    this.#take(batch.length)
    const notes = this.#meters.take(this.#taken)
    const meters = notes.map((note) => ({ ...note, after: Math.max(0, note.after - first) }))
    this.#underWay = batch.length
    this.#usage = new Map()
    try {
      await writer.call(writeLedger, { process: this.#deps.process ?? 0, entries: batch, usage, meters, rejected })
    } catch (error) {
      this.#entries = [...batch, ...this.#entries]
      this.#taken -= batch.length
      this.#meters.putBack(notes)
      this.#usage = new Map([...usage, ...this.#usage])
      this.#rejections.putBack(rejected)
      throw error
    } finally {
      this.#underWay = 0
    }
  }

  /** Removes the oldest entries. */
  #take(count: number): void {
    this.#entries = this.#entries.slice(count)
    this.#taken += count
  }

  /** A record that violates the schema would fail forever and block the others: halving finds it, and it is dropped. */
  #narrowDown(batch: readonly LedgerEntry[], error: unknown): boolean {
    this.#batchSize = Math.ceil(batch.length / 2)
    const [only, ...others] = batch
    if (only && others.length === 0) {
      this.#take(1)
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
    this.#take(MAX_BATCH)
    this.#lost += MAX_BATCH
  }

  #reportLost(): void {
    if (this.#lost === 0) return
    this.#deps.log.error('request log entries were lost because the buffer was full', { count: this.#lost })
    this.#lost = 0
  }
}

/** The values were rejected, so retrying cannot help; other errors may be temporary. */
const isRefusal = (error: unknown): boolean => error instanceof TypeError || REFUSALS.test(getCodes(error))

/** PostgreSQL: invalid data, a violated constraint, or too long for an index. */
const REFUSALS = /^(SQLITE_(CONSTRAINT|MISMATCH|TOOBIG)|ERR_POSTGRES_SERVER_ERROR (22|23|54))/

const getCodes = (error: unknown): string => {
  const { code, errno } = error as { code?: unknown; errno?: unknown } // as: both are optional
  return `${code} ${errno}`
}
