/** Limits attempts per minute and client, for example eight wrong secrets over all routes that check one (spec §8). */
import type { Ctx } from '../boot/bindings.ts'
import { AppError, type Code } from '../errors.ts'
import { getClient } from '../lib/client-ip.ts'
import type { Clock } from '../lib/clock.ts'
import type { SharedTries } from './shared-tries.ts'

const TRIES = 8
const WINDOW_MS = 60_000
/** Addresses are cheap to obtain, so the number is limited; the least recent failures are dropped first. */
const MAX_CLIENTS = 10_000

/**
 * An attempt is charged before the secret is checked and refunded when it was right, so of a hundred parallel guesses
 * only eight are checked. Success refunds only its own attempt.
 */
export class FailureBudget {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #limit: number
  readonly #shared: SharedTries | null
  /** Client → times of its attempts, oldest first. */
  readonly #tries = new Map<string, number[]>()

  /** `tries` per minute, per client or other name; over all processes where they are shared. */
  constructor(clock: Pick<Clock, 'monotonic'>, tries = TRIES, shared: SharedTries | null = null) {
    this.#clock = clock
    this.#limit = tries
    this.#shared = shared
  }

  /** Returns the function that refunds this attempt. Throws `code`, a 429 with the time until the next attempt. */
  async take(client: string, code: Code): Promise<() => Promise<unknown>> {
    const now = this.#clock.monotonic()
    const recent = this.#recent(client, now)
    const oldest = recent[0]
    if (recent.length >= this.#limit && oldest !== undefined) throw tooMany(code, oldest + WINDOW_MS - now)
    this.#remember(client, [...recent, now]) // before anything is awaited, or parallel attempts would all pass
    try {
      const giveBackShared = await this.#takeShared(client, code)
      return async () => {
        this.#giveBack(client, now)
        await giveBackShared()
      }
    } catch (err) {
      this.#giveBack(client, now)
      throw err
    }
  }

  async #takeShared(client: string, code: Code): Promise<() => Promise<unknown>> {
    const shared = this.#shared
    const taken = await shared?.take(client, this.#limit)
    if (!shared || !taken) return async () => {}
    if ('waitMs' in taken) throw tooMany(code, taken.waitMs)
    return () => shared.giveBack(client, taken.at)
  }

  /** Charges an attempt without refund. False when none was left. */
  spend(client: string): boolean {
    const now = this.#clock.monotonic()
    const recent = this.#recent(client, now)
    if (recent.length >= this.#limit) return false
    this.#remember(client, [...recent, now])
    return true
  }

  #recent(client: string, now: number): number[] {
    return (this.#tries.get(client) ?? []).filter((at) => now - at < WINDOW_MS)
  }

  #remember(client: string, tries: number[]): void {
    this.#tries.delete(client)
    this.#tries.set(client, tries)
    if (this.#tries.size <= MAX_CLIENTS) return
    const [oldest] = this.#tries.keys()
    if (oldest !== undefined) this.#tries.delete(oldest)
  }

  #giveBack(client: string, at: number): void {
    const tries = this.#tries.get(client)
    const index = tries?.indexOf(at) ?? -1
    if (index !== -1) tries?.splice(index, 1)
  }
}

const tooMany = (code: Code, waitMs: number): AppError =>
  new AppError(code, { retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) })

/**
 * The name attempts are charged to: the client, or the direct peer when forwarded headers are ambiguous, so that
 * confusing one proxy does not use up the attempts of other clients.
 */
export const budgetClient = ({ var: { clientIp, peer } }: Ctx): string => getClient(clientIp ?? peer)
