/** One timer for all open streams, in place of several each: it asks every one in turn whether something is overdue. */
import type { Clock } from '../lib/clock.ts'
import { Roster } from '../lib/roster.ts'

const BEAT_MS = 500

export interface Watcher {
  /** Called about twice a second with `clock.monotonic()`. */
  beat(now: number): void
}

export class Pulse {
  readonly #clock: Clock
  readonly #watchers = new Roster<Watcher>()
  #stop: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** An object and no function, because every stream has one for as long as it lasts. */
  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
    this.#stop ??= this.#clock.every(BEAT_MS, () => this.#beat())
  }

  /** Once is enough; again does nothing. */
  unwatch(watcher: Watcher): void {
    this.#watchers.delete(watcher)
    if (this.#watchers.size > 0) return
    this.#stop?.()
    this.#stop = null
  }

  #beat(): void {
    const now = this.#clock.monotonic()
    for (const watcher of this.#watchers) watcher.beat(now)
  }
}
