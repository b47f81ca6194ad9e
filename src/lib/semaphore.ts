/** A fixed number of places; who finds none waits in line, for a bounded time and in a bounded line. */
import type { Clock } from './clock.ts'

/** Gives the place back. Calling it again does nothing. */
export type Release = () => void

export interface SemaphoreLimits {
  places: number
  /** Callers that may wait at once; one more is turned away immediately. */
  maxWaiting: number
}

export class Semaphore {
  readonly #clock: Clock
  #limits: SemaphoreLimits
  #held = 0
  /** First come, first served: a set keeps insertion order and lets any waiter leave in constant time. */
  readonly #line = new Set<() => void>()

  constructor(clock: Clock, limits: SemaphoreLimits) {
    this.#clock = clock
    this.#limits = limits
  }

  get held(): number {
    return this.#held
  }

  get waiting(): number {
    return this.#line.size
  }

  /**
   * A place, or null when the line is full or none came free within `maxWaitMs`; 0 never waits.
   * Rejects with `signal.reason` when the caller gives up.
   */
  acquire(signal: AbortSignal, maxWaitMs: number): Promise<Release | null> {
    if (signal.aborted) return Promise.reject(signal.reason)
    if (this.#held < this.#limits.places) return Promise.resolve(this.#take())
    if (maxWaitMs <= 0 || this.#line.size >= this.#limits.maxWaiting) return Promise.resolve(null)
    return this.#wait(signal, maxWaitMs)
  }

  /** Takes effect at once: more places admit waiters, fewer let holders finish. */
  resize(limits: SemaphoreLimits): void {
    this.#limits = limits
    this.#admit()
  }

  #take(): Release {
    this.#held++
    let given = false
    return () => {
      if (given) return
      given = true
      this.#held--
      this.#admit()
    }
  }

  #wait(signal: AbortSignal, maxWaitMs: number): Promise<Release | null> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#line.delete(admitted)
        cancelDeadline()
        signal.removeEventListener('abort', aborted)
      }
      const admitted = () => {
        leave()
        resolve(this.#take())
      }
      const aborted = () => {
        leave()
        reject(signal.reason)
      }
      const cancelDeadline = this.#clock.after(maxWaitMs, () => {
        leave()
        resolve(null)
      })
      signal.addEventListener('abort', aborted)
      this.#line.add(admitted)
    })
  }

  #admit(): void {
    for (const admitted of this.#line) {
      if (this.#held >= this.#limits.places) return
      admitted()
    }
  }
}
