/** A typed, synchronous emitter: "these accounts changed". One bad listener never silences the others. */

type Listener<T> = (value: T) => void

export class Signal<T> {
  readonly #listeners = new Set<{ run: Listener<T> }>()
  readonly #onError: (error: unknown) => void

  /** `onError` receives whatever a listener throws; it should log. */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Calls `run` with every later value, in the order of subscription. Returns the unsubscribe. */
  on(run: Listener<T>): () => void {
    const entry = { run }
    this.#listeners.add(entry)
    return () => {
      this.#listeners.delete(entry)
    }
  }

  /** Calls every listener now. One that unsubscribes another during the call keeps it from being called. */
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
