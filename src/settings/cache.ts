/** The current settings as one frozen object, replaced when a commit changes them. Read once per request. */
import type { Db } from '../../db/commit.ts'
import type { Settings } from './schema.ts'
import { readSettings, type StoredSettings } from './store.ts'

export class SettingsCache {
  readonly #db: Db
  readonly #changed: Signal<Readonly<Settings>>
  #stored: StoredSettings

  private constructor(db: Db, stored: StoredSettings, onListenerError: (err: unknown) => void) {
    this.#db = db
    this.#changed = new Signal(onListenerError)
    this.#stored = stored
  }

  static async open(db: Db, onListenerError: (err: unknown) => void): Promise<SettingsCache> {
    return new SettingsCache(db, await readSettings(db), onListenerError)
  }

  current(): Readonly<Settings> {
    return this.#stored.values
  }

  version(): number {
    return this.#stored.version
  }

  /** Called after a commit, or after another process wrote. */
  async reload(): Promise<void> {
    this.#stored = await readSettings(this.#db)
    this.#changed.emit(this.#stored.values)
  }

  onChange(fn: (settings: Readonly<Settings>) => void): () => void {
    return this.#changed.on(fn)
  }
}

type Listener<T> = (value: T) => void

/** A typed, synchronous event emitter. A failing listener does not affect the others. */
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
