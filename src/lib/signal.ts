/** A typed, synchronous event emitter. A failing listener does not affect the others. */

type Listener<T> = (value: T) => void

export class Signal<T> {
  readonly #listeners = new Set<{ run: Listener<T> }>()
  readonly #onError: (error: unknown) => void

  /** `onError` receives listeners' errors; it should log them. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Calls `run` with every later value, in order of subscription. Returns the unsubscribe function. */
  on(run: Listener<T>): () => void {
    const entry = { run }
    this.#listeners.add(entry)
    return () => {
      this.#listeners.delete(entry)
    }
  }

  /** Calls every listener now. A listener unsubscribed during the call is skipped. */
  emit(value: T): void {
    for (const entry of [...this.#listeners]) {
      if (!this.#listeners.has(entry)) continue
      try {
        entry.run(value)
      } catch (error) {
        this.#onError(error)
      }
    }
  }
}
