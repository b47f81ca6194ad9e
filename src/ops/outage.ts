/** Whether turn after turn fails though accounts can be asked: what accounts that look well do not tell. In memory, since the start. */
import type { Clock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { LedgerEntry } from '../proxy/ledger.ts'

export interface Outage {
  /** How many failed one after another, and no other was answered meanwhile. */
  turns: number
  /** What the newest of them failed with. */
  message: string
}

/** Fewer are what the attempts of a client are for. */
const TOLD_FROM = 3
/** Failures that are older say little of now. */
const TOLD_FOR_MS = 15 * MINUTE_MS

/** An upstream may write pages. */
const MESSAGE_LENGTH = 200

const shortened = (message: string): string =>
  message.length > MESSAGE_LENGTH ? `${message.slice(0, MESSAGE_LENGTH)}…` : message

interface Ended extends Pick<LedgerEntry, 'isServiceFault'> {
  row: Pick<LedgerEntry['row'], 'kind' | 'status' | 'errorMessage'>
}

/** Turns that a client left or got wrong, and prewarms, count for neither. */
export class OutageWatch {
  readonly #clock: Pick<Clock, 'monotonic'>
  #turns = 0
  /** `at` on the monotonic clock. */
  #last = { at: 0, message: '' }

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock
  }

  count({ row, isServiceFault }: Ended): void {
    if (row.kind !== 'normal' && row.kind !== 'compaction') return
    if (row.status === 'ok') this.#turns = 0
    if (!isServiceFault) return
    this.#turns = this.#isRecent ? this.#turns + 1 : 1
    this.#last = { at: this.#clock.monotonic(), message: shortened(row.errorMessage ?? '') }
  }

  get #isRecent(): boolean {
    return this.#clock.monotonic() - this.#last.at < TOLD_FOR_MS
  }

  /** Null: turns are answered, or none was asked for lately. */
  get current(): Outage | null {
    return this.#turns >= TOLD_FROM && this.#isRecent ? { turns: this.#turns, message: this.#last.message } : null
  }
}
