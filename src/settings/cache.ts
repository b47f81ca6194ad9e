/** The current settings as one frozen object, replaced when a commit changes them. Read once per request. */
import type { Db } from '../../db/commit.ts'
import { Signal } from '../lib/signal.ts'
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
