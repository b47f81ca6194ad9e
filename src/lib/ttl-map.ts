/** A bounded map whose entries expire; when it is full, the entry used longest ago makes room. */

interface Entry<V> {
  value: V
  expiresAt: number
}

export class TtlMap<K, V> {
  /** Least recently used first: a JavaScript map keeps insertion order, and every use inserts again. */
  readonly #entries = new Map<K, Entry<V>>()
  readonly #maxEntries: number
  readonly #ttlMs: number

  constructor({ maxEntries, ttlMs }: { maxEntries: number; ttlMs: number }) {
    this.#maxEntries = maxEntries
    this.#ttlMs = ttlMs
  }

  /** Entries held, expired ones included until they are met or swept. */
  get size(): number {
    return this.#entries.size
  }

  /** The value stored less than its lifetime before `now` (milliseconds), else undefined. Does not prolong it. */
  get(key: K, now: number): V | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    this.#entries.delete(key)
    if (entry.expiresAt <= now) return undefined
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Stores `value` until `now + ttlMs`, replacing what was there. */
  set(key: K, value: V, now: number, ttlMs = this.#ttlMs): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, expiresAt: now + ttlMs })
    if (this.#entries.size > this.#maxEntries) this.#dropOldest()
  }

  /** Whether there was an entry, expired or not. */
  delete(key: K): boolean {
    return this.#entries.delete(key)
  }

  clear(): void {
    this.#entries.clear()
  }

  /** Drops all expired entries and returns how many. Walks the whole map: call it every minute, not every request. */
  sweep(now: number): number {
    const before = this.#entries.size
    for (const [key, entry] of this.#entries) if (entry.expiresAt <= now) this.#entries.delete(key)
    return before - this.#entries.size
  }

  #dropOldest(): void {
    for (const key of this.#entries.keys()) {
      this.#entries.delete(key)
      return
    }
  }
}
