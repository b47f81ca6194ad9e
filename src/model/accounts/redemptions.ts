/** Running and completed redemptions of reset credits, so that a request sent twice redeems once. In memory only. */
import { AppError } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'

interface Known<Result> {
  creditId: string
  /** null: sent, but the answer is unknown. */
  result: Result | null
  /** ms since epoch */
  at: number
}

interface Named {
  accountId: string
  requestId: string
}

const REMEMBERED_MS = DAY_MS
/** Limits memory; the upstream still knows dropped ones. */
const MOST = 1000

export class Redemptions<Result> {
  readonly #busy = new Set<string>()
  readonly #known = new Map<string, Known<Result>>()

  /** The result of this request within the last day. */
  known(wish: Named, now: number): Known<Result> | null {
    const known = this.#known.get(toKey(wish))
    return known && now - known.at < REMEMBERED_MS ? known : null
  }

  note(wish: Named, known: Known<Result>): void {
    const key = toKey(wish)
    this.#known.delete(key)
    this.#known.set(key, known)
    const oldest = this.#known.keys().next().value
    if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest)
  }

  /** One at a time per account. Returns the function that ends it. Throws `reset_credit_redeem_in_progress`. */
  begin(accountId: string): () => void {
    if (this.#busy.has(accountId)) throw new AppError('reset_credit_redeem_in_progress')
    this.#busy.add(accountId)
    return () => void this.#busy.delete(accountId)
  }
}

const toKey = ({ accountId, requestId }: Named): string => `${accountId}\n${requestId}`
