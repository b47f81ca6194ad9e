/** The public keys of agent identities, kept for five minutes: clients read them often and they rarely change. */
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'

const KEPT_MS = 5 * MINUTE_MS
/** The query is the client's, so the number of entries is bounded; the oldest go first. */
const MAX_ENTRIES = 16

interface KeySet {
  bytes: Uint8Array<ArrayBuffer>
  headers: Readonly<Record<string, string>>
}

export class KeySets {
  readonly #clock: Pick<Clock, 'now'>
  /** By path with query. Assumed: every account is answered with the same keys. */
  readonly #entries = new Map<string, KeySet & { readAt: number }>()

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock
  }

  get(path: string): KeySet | null {
    const entry = this.#entries.get(path)
    return entry && this.#clock.now() - entry.readAt < KEPT_MS ? entry : null
  }

  keep(path: string, keySet: KeySet): void {
    this.#entries.delete(path) // the newest is last
    this.#entries.set(path, { ...keySet, readAt: this.#clock.now() })
    if (this.#entries.size > MAX_ENTRIES) this.#entries.delete(this.#entries.keys().next().value!) // it is not empty
  }
}
