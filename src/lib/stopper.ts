/**
 * What ends a piece of work from outside, as an `AbortController` does, for work that no call of the runtime has to be told
 * of: one of its own, with the listeners of a turn, is a fiftieth of that turn (measured).
 */

/** What the work looks at. Every `AbortSignal` is one, too. */
export interface StopSignal {
  readonly aborted: boolean
  /** What `abort` was called with. */
  readonly reason: unknown
  addEventListener(type: 'abort', listener: StopListener, options?: { once: true }): void
  removeEventListener(type: 'abort', listener: StopListener): void
}

type StopListener = (() => void) | { handleEvent(): void }

export class Stopper implements StopSignal {
  /** For those who may look and not stop. */
  readonly signal: StopSignal = this
  #isAborted = false
  #reason: unknown
  readonly #listeners: StopListener[] = []

  get aborted(): boolean {
    return this.#isAborted
  }

  get reason(): unknown {
    return this.#reason
  }

  addEventListener(_type: 'abort', listener: StopListener): void {
    this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: StopListener): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  /**
   * Tells the listeners once, in their order; a second call does nothing. Throws what one of them throws, when all are told.
   */
  abort(reason: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#reason = reason
    this.#tell()
  }

  #tell(): void {
    const next = this.#listeners.shift()
    if (!next) return
    try {
      if (typeof next === 'function') next()
      else next.handleEvent()
    } finally {
      this.#tell()
    }
  }
}
