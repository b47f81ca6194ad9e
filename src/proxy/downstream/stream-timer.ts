/** One shared timer for all open streams, instead of several each, that checks each stream for timeouts. */
import type { Clock } from '../../lib/clock.ts'

const BEAT_MS = 500

export interface Watcher {
  /** Called about twice a second with `clock.monotonic()`. */
  beat(now: number): void
}

export class StreamTimer {
  readonly #clock: Clock
  readonly #watchers = new Set<Watcher>()
  #stop: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** An object, not a function, because every stream keeps one for its whole duration. */
  watch(watcher: Watcher): void {
    this.#watchers.add(watcher)
    this.#stop ??= this.#clock.every(BEAT_MS, () => this.#beat())
  }

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
