/** Collects readings of usage meters in memory for the ledger, each with its position among the ended requests. */
import { isNewReading, type MeterReading, toReadings } from '../../model/accounts/meter-readings.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import type { NotedReadings } from './meter-batch.ts'

/**
 * The most readings kept while nothing can be written. Then the oldest are dropped, and their requests are added to
 * later readings.
 */
const MAX_PENDING = 10_000

/** `after` is the number of requests recorded before it since start. */
type Note = NotedReadings

export class MeterNotes {
  #notes: Note[] = []
  /** The last reading by account and window, so that repeated readings can be skipped without reading the database. */
  readonly #last = new Map<string, MeterReading>()

  get pending(): number {
    return this.#notes.length
  }

  /** Adds readings, in memory only. Never throws. */
  note(accountId: string, usage: UsageSnapshot, { running, after }: { running: number; after: number }): void {
    const readings = toReadings(usage, running).filter((reading) => {
      const name = `${accountId}\0${reading.window}`
      if (!isNewReading(this.#last.get(name) ?? null, reading)) return false
      this.#last.set(name, reading)
      return true
    })
    if (readings.length === 0) return
    this.#notes.push({ accountId, after, readings })
    if (this.#notes.length > MAX_PENDING) this.#notes.shift()
  }

  /** Takes the readings for the requests up to number `to`. */
  take(to: number): Note[] {
    const end = this.#notes.findIndex(({ after }) => after > to)
    const due = end === -1 ? this.#notes : this.#notes.slice(0, end)
    this.#notes = end === -1 ? [] : this.#notes.slice(end)
    return due
  }

  /** Puts back readings that could not be written. */
  putBack(notes: readonly Note[]): void {
    this.#notes = [...notes, ...this.#notes]
  }
}
