/** A queue of waiters for a change, first come first served. */
import type { Clock } from '../../lib/clock.ts'

export class WaitQueue {
  readonly #clock: Clock
  readonly #waiting = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get size(): number {
    return this.#waiting.size
  }

  /** Resolves when `call` is called or after `ms`; rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(called)
        cancel()
        signal.removeEventListener('abort', aborted)
      }
      const called = () => {
        leave()
        resolve()
      }
      const aborted = () => {
        leave()
        reject(signal.reason)
      }
      const cancel = this.#clock.after(ms, called)
      signal.addEventListener('abort', aborted, { once: true })
      this.#waiting.add(called)
    })
  }

  call(): void {
    for (const called of this.#waiting) called()
  }
}
