/** How often a minute somebody may do something: be wrong about a secret eight times, over all routes that check one (spec §8). */
import type { Ctx } from '../bindings.ts'
import { AppError, type Code } from '../errors.ts'
import { clientOf } from '../lib/client-address.ts'
import type { Clock } from '../lib/clock.ts'

const TRIES = 8
const WINDOW_MS = 60_000
/** Addresses are cheap to come by; those that were wrong longest ago are forgotten first. */
const MAX_CLIENTS = 10_000

/**
 * A try is taken before the secret is looked at and given back when it was right, so of a hundred parallel guesses eight
 * are looked at. A success gives back no try but its own.
 */
export class FailureBudget {
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #limit: number
  /** Client → when its tries were taken, oldest first. */
  readonly #tries = new Map<string, number[]>()

  /** `tries` a minute, of each client or whoever is named. */
  constructor(clock: Pick<Clock, 'monotonic'>, tries = TRIES) {
    this.#clock = clock
    this.#limit = tries
  }

  /** Returns what gives this try back. Throws `code`, a 429 with the time until the next try. */
  take(client: string, code: Code): () => void {
    const now = this.#clock.monotonic()
    const recent = this.#recent(client, now)
    const oldest = recent[0]
    if (recent.length >= this.#limit && oldest !== undefined)
      throw new AppError(code, { retryAfterSeconds: Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1000)) })
    recent.push(now)
    this.#remember(client, recent)
    return () => this.#giveBack(client, now)
  }

  /** For what is counted without being refused: takes a try that is not given back. False: there was none left. */
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

/**
 * Whose tries are counted: the client, and where headers do not agree on one the peer that handed the request on, so that
 * nobody who confuses one proxy uses up the tries of everybody else who cannot be told.
 */
export const budgetClient = ({ var: { clientIp, peer } }: Ctx): string => clientOf(clientIp ?? peer)
