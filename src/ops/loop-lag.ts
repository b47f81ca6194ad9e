/** How late the event loop runs its timers: the time in which all streams were blocked. */
import type { Clock } from '../lib/clock.ts'
import { type Family, Histogram } from './prometheus.ts'

const BEAT_MS = 250
const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1]

export class LoopLag {
  readonly #clock: Clock
  readonly #lag = new Histogram(BOUNDS)
  #stop: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Measures four times a second until `stop`. A histogram, so that nothing between two scrapes is missed. */
  start(): void {
    let expected = this.#clock.monotonic() + BEAT_MS
    this.#stop ??= this.#clock.every(BEAT_MS, () => {
      const now = this.#clock.monotonic()
      this.#lag.observe(Math.max(0, now - expected) / 1000)
      expected = now + BEAT_MS
    })
  }

  stop(): void {
    this.#stop?.()
    this.#stop = null
  }

  family(): Family {
    return {
      name: 'sluice_event_loop_lag_seconds',
      type: 'histogram',
      help: 'Delay of the event loop, measured four times a second.',
      samples: this.#lag.samples(),
    }
  }
}
