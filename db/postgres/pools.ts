/** Connections to PostgreSQL that are replaced when the server stops answering. */
import { type ReservedSQL, SQL } from 'bun'
import type { Clock } from '../../src/lib/clock.ts'

const CONNECT_SECONDS = 5

interface PoolOptions {
  url: string
  max: number
  connection: Record<string, string | number>
}

/**
 * If the server or the network is gone without closing connections, queries on these wait for many minutes, also after
 * another server has taken over.
 */
export class ReplaceablePool {
  readonly #options: PoolOptions
  #current: SQL

  constructor(options: PoolOptions) {
    this.#options = options
    this.#current = this.#open()
  }

  get current(): SQL {
    return this.#current
  }

  readonly unsafe: SQL['unsafe'] = (...args) => this.#current.unsafe(...args)

  reserve(): Promise<ReservedSQL> {
    return this.#current.reserve()
  }

  /** Running queries fail. */
  replace(): void {
    void this.#current.close({ timeout: 0 }).catch(() => {})
    this.#current = this.#open()
  }

  close(): Promise<void> {
    return this.#current.close()
  }

  #open(): SQL {
    const { url, max, connection } = this.#options
    const shared = { application_name: 'sluice', ...connection }
    return new SQL({ url, max, connectionTimeout: CONNECT_SECONDS, connection: shared })
  }
}

interface Subscription {
  channel: string
  onPayload: (payload: string) => void
  onMissed: () => void
  /** Stops listening on the current connection. */
  unlisten: () => Promise<void>
}

const RETRY_MS = 1000

/** Notifications from other nodes. */
export class Channels {
  readonly #pool: ReplaceablePool
  readonly #clock: Clock
  readonly #subscriptions = new Set<Subscription>()
  #isClosed = false

  constructor(pool: ReplaceablePool, clock: Clock) {
    this.#pool = pool
    this.#clock = clock
  }

  /** `onMissed` is called when notifications may have been missed. Returns the stop function. */
  async listen(
    channel: string,
    onPayload: Subscription['onPayload'],
    onMissed = () => {},
  ): Promise<() => Promise<void>> {
    const subscription = { channel, onPayload, onMissed, unlisten: async () => {} }
    await this.#subscribe(subscription)
    this.#subscriptions.add(subscription)
    return () => {
      this.#subscriptions.delete(subscription)
      return subscription.unlisten()
    }
  }

  /** The pool was replaced. */
  listenAgain(): void {
    for (const subscription of this.#subscriptions) void this.#listenAgain(subscription)
  }

  close(): void {
    this.#isClosed = true
  }

  async #listenAgain(subscription: Subscription): Promise<void> {
    const pool = this.#pool.current
    const isWanted = () => !this.#isClosed && this.#subscriptions.has(subscription) && this.#pool.current === pool
    while (isWanted()) {
      try {
        await this.#subscribe(subscription)
        return subscription.onMissed()
      } catch {
        await this.#clock.sleep(RETRY_MS)
      }
    }
  }

  async #subscribe(subscription: Subscription): Promise<void> {
    let isFirst = true
    const listening = await this.#pool.current.listen(subscription.channel, subscription.onPayload, () => {
      if (!isFirst) subscription.onMissed()
      isFirst = false
    })
    subscription.unlisten = () => listening.unlisten()
  }
}
