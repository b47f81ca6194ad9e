/** One timer for all open streams, in place of several each: it asks every one in turn whether something is overdue. */
import type { Clock } from '../lib/clock.ts'

const BEAT_MS = 500

/** Called about twice a second with `clock.monotonic()`. */
export type Beat = (now: number) => void

export class Pulse {
  readonly #clock: Clock
  readonly #beats = new Set<Beat>()
  #stop: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Watches until the returned function is called. */
  watch(beat: Beat): () => void {
    this.#beats.add(beat)
    this.#stop ??= this.#clock.every(BEAT_MS, () => this.#beat())
    return () => {
      this.#beats.delete(beat)
      if (this.#beats.size > 0) return
      this.#stop?.()
      this.#stop = null
    }
  }

  #beat(): void {
    const now = this.#clock.monotonic()
    for (const beat of this.#beats) beat(now)
  }
}
