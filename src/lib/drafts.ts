/** Unfinished work of users, kept in memory for a limited time and only for the user who began it. */
import type { Clock } from './clock.ts'
import type { Random } from './random.ts'

export interface Draft<T> {
  id: string
  owner: string
  /** ms since epoch. */
  expiresAt: number
  content: T
}

interface Limits {
  /** The prefix of IDs. */
  prefix: string
  ttlMs: number
  /** The most drafts per owner. The oldest are dropped. */
  max: number
}

export class Drafts<T> {
  readonly #clock: Pick<Clock, 'now'>
  readonly #random: Pick<Random, 'id'>
  readonly #limits: Limits
  readonly #drafts = new Map<string, Draft<T>>()
  /** Running work by draft. */
  readonly #running = new Map<string, Promise<void>>()

  constructor(clock: Pick<Clock, 'now'>, random: Pick<Random, 'id'>, limits: Limits) {
    this.#clock = clock
    this.#random = random
    this.#limits = limits
  }

  keep(owner: string, content: T): Draft<T> {
    this.#dropExpired()
    const { prefix, ttlMs, max } = this.#limits
    const draft = { id: this.#random.id(prefix), owner, expiresAt: this.#clock.now() + ttlMs, content }
    this.#drafts.set(draft.id, draft)
    const theirs = [...this.#drafts.values()].filter((other) => other.owner === owner)
    for (const old of theirs.slice(0, -max)) this.#drafts.delete(old.id)
    return draft
  }

  /** The draft. Null if it expired, was dropped, or belongs to another user. */
  get(id: string, owner: string): Draft<T> | null {
    this.#dropExpired()
    const draft = this.#drafts.get(id)
    return draft?.owner === owner ? draft : null
  }

  /**
   * Runs `work` on the draft's content and stores the result. Calls for the same draft run one after another. If `work`
   * fails, the draft does not change.
   */
  update({ id, owner }: Draft<T>, work: (content: T) => Promise<T>): Promise<void> {
    const before = this.#running.get(id) ?? Promise.resolve()
    const run = before
      .catch(() => {}) // reported to the call that ran it
      .then(async () => {
        const draft = this.get(id, owner)
        if (draft === null) return
        const content = await work(draft.content)
        if (this.#drafts.has(id)) this.#drafts.set(id, { ...draft, content })
      })
      .finally(() => {
        if (this.#running.get(id) === run) this.#running.delete(id)
      })
    this.#running.set(id, run)
    return run
  }

  #dropExpired(): void {
    const now = this.#clock.now()
    for (const [id, { expiresAt }] of this.#drafts) if (expiresAt <= now) this.#drafts.delete(id)
  }
}
