/** Detects consecutive failed requests although accounts are available, which account states do not show. In memory. */
import type { Clock } from '../lib/clock.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { LedgerEntry } from '../proxy/ledger/ledger.ts'

export interface Outage {
  /** Consecutive failures without a successful request in between. */
  turns: number
  /** The newest error message. */
  message: string
}

/** Fewer failures are left to the clients' retries. */
const MIN_FAILURES = 3
/** Older failures say little about now. */
const RECENT_MS = 15 * MINUTE_MS

/** Limits upstream messages, which may be whole pages. */
const MESSAGE_LENGTH = 200

const shortened = (message: string): string =>
  message.length > MESSAGE_LENGTH ? `${message.slice(0, MESSAGE_LENGTH)}…` : message

interface Ended extends Pick<LedgerEntry, 'isServiceFault'> {
  row: Pick<LedgerEntry['row'], 'kind' | 'status' | 'errorMessage'>
}

/** Requests cancelled by clients, invalid ones and prewarms do not count. */
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
    return this.#clock.monotonic() - this.#last.at < RECENT_MS
  }

  /** Null: requests succeed, or there were none recently. */
  get current(): Outage | null {
    return this.#turns >= MIN_FAILURES && this.#isRecent ? { turns: this.#turns, message: this.#last.message } : null
  }
}
