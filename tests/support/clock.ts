/** A clock that moves only when a test advances it. */
import type { Clock, Task } from '../../src/lib/clock.ts'

type Duration = `${number}${keyof typeof UNIT_MS}`

interface Timer {
  dueMs: number
  run: Task
  /** Set for a repeating timer. */
  everyMs?: number
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export class ManualClock implements Clock {
  #elapsedMs = 0
  #startMs: number
  /** Ascending by due time; timers due together keep the order in which they were set. */
  readonly #timers: Timer[] = []

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#startMs = startMs
  }

  /** How many timers wait: 0 at the end of a test means nothing leaked. */
  get pending(): number {
    return this.#timers.length
  }

  now(): number {
    return this.#startMs + Math.floor(this.#elapsedMs)
  }

  monotonic(): number {
    return this.#elapsedMs
  }

  /** Sets the wall clock forward, or back where `byMs` is negative, as people and NTP do: no time passes. */
  set(byMs: number): void {
    this.#startMs += byMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const stop = () => {
        cancel()
        reject(signal?.reason)
      }
      const cancel = this.after(ms, () => {
        signal?.removeEventListener('abort', stop)
        resolve()
      })
      signal?.addEventListener('abort', stop, { once: true })
    })
  }

  after(ms: number, run: Task): () => void {
    return this.#set({ dueMs: this.#elapsedMs + Math.max(0, ms), run })
  }

  every(ms: number, run: Task): () => void {
    const everyMs = Math.max(1, ms)
    return this.#set({ dueMs: this.#elapsedMs + everyMs, run, everyMs })
  }

  /**
   * Advances the clock by `by` (milliseconds or `'31s'`, `'5m'`, `'250ms'`), firing due timers in order. Promises and
   * immediate callbacks settle before the first timer, after each, and at the end. A timer that throws makes this
   * reject.
   */
  async advance(by: number | Duration): Promise<void> {
    const targetMs = this.#elapsedMs + durationMs(by)
    await settle()
    for (let timer = this.#timers[0]; timer && timer.dueMs <= targetMs; timer = this.#timers[0]) {
      this.#elapsedMs = Math.max(this.#elapsedMs, timer.dueMs)
      this.#fire(timer)
      await settle()
    }
    this.#elapsedMs = Math.max(this.#elapsedMs, targetMs)
  }

  #fire(timer: Timer): void {
    this.#timers.shift()
    if (timer.everyMs) {
      timer.dueMs += timer.everyMs
      this.#insert(timer)
    }
    timer.run()
  }

  #set(timer: Timer): () => void {
    this.#insert(timer)
    return () => {
      const at = this.#timers.indexOf(timer)
      if (at >= 0) this.#timers.splice(at, 1)
    }
  }

  #insert(timer: Timer): void {
    let at = this.#timers.length
    while (at > 0 && this.#timers[at - 1]!.dueMs > timer.dueMs) at--
    this.#timers.splice(at, 0, timer)
  }
}

function durationMs(by: number | Duration): number {
  if (typeof by === 'number') return by
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(by) ?? []
  if (!amount || !unit) throw new Error(`'${by}' is not a duration like '31s'`)
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS] // as: the pattern lists exactly these units
}

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
