/**
 * What ends a piece of work from outside, as an `AbortController` does, for work that no call of the runtime has to be told
 * of: a controller of the runtime's, with the listeners of a turn, is a fiftieth of that turn (measured).
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
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener)
  }

  removeEventListener(_type: 'abort', listener: StopListener): void {
    const at = this.#listeners.indexOf(listener)
    if (at !== -1) this.#listeners.splice(at, 1)
  }

  /** Tells the listeners once, in their order; a second call does nothing. What one throws is an uncaught exception. */
  abort(reason: unknown): void {
    if (this.#isAborted) return
    this.#isAborted = true
    this.#reason = reason
    for (const listener of this.#listeners.slice()) if (this.#listeners.includes(listener)) tell(listener)
    this.#listeners.length = 0
  }
}

const tell = (listener: StopListener): void => {
  try {
    if (typeof listener === 'function') listener()
    else listener.handleEvent()
  } catch (err) {
    reportError(err) // as the runtime's own do: a fault of one must not keep the others from being told
  }
}
