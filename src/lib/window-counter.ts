/** "At most 8 a minute per key": an exact sliding window, bounded in keys. */

export interface WindowRule {
  /** Hits allowed in any span of `windowMs`. */
  limit: number
  windowMs: number
  /** Beyond this many keys the one seen longest ago is forgotten, which gives it a fresh window. */
  maxKeys: number
}

export interface Hit {
  allowed: boolean
  /** Milliseconds until the next hit would be allowed; 0 when this one was. */
  retryAfterMs: number
}

/** The last `limit` allowed hits as a ring: the one about to be overwritten decides. */
interface Ring {
  times: number[]
  next: number
}

export class WindowCounter {
  /** Least recently seen first. */
  readonly #rings = new Map<string, Ring>()
  readonly #rule: WindowRule

  constructor(rule: WindowRule) {
    this.#rule = rule
  }

  get size(): number {
    return this.#rings.size
  }

  /** Counts one attempt of `key` at `now` (milliseconds). A refused attempt is not counted, so waiting always helps. */
  hit(key: string, now: number): Hit {
    const { limit, windowMs } = this.#rule
    if (limit <= 0) return { allowed: false, retryAfterMs: windowMs }
    const ring = this.#touch(key)
    const freeAt = ring.times.length < limit ? now : ring.times[ring.next]! + windowMs
    if (freeAt > now) return { allowed: false, retryAfterMs: freeAt - now }
    ring.times[ring.next] = now
    ring.next = (ring.next + 1) % limit
    return { allowed: true, retryAfterMs: 0 }
  }

  /** Gives `key` a fresh window: after a sign-in that succeeded. */
  forget(key: string): void {
    this.#rings.delete(key)
  }

  #touch(key: string): Ring {
    const ring = this.#rings.get(key) ?? { times: [], next: 0 }
    this.#rings.delete(key)
    this.#rings.set(key, ring)
    if (this.#rings.size > this.#rule.maxKeys) this.#forgetOldest()
    return ring
  }

  #forgetOldest(): void {
    for (const key of this.#rings.keys()) {
      this.#rings.delete(key)
      return
    }
  }
}
