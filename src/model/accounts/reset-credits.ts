/** Reset credits of the accounts as last reported, in memory only. Redeeming one resets its account's limits immediately. */
import { isoOrNull } from '../../lib/iso.ts'
import { isInScope, type KeyScope } from '../keys/key-scope.ts'
import { Redemptions } from './redemptions.ts'

/** Times are ms since epoch; null: unknown. */
export interface ResetCredit {
  /** Sent to redeem it. */
  id: string
  /** The upstream's status; only `available` credits can be redeemed. */
  status: string
  expiresAt: number | null
  resetType?: string | null
  title?: string | null
  description?: string | null
  grantedAt?: number | null
  redeemStartedAt?: number | null
  redeemedAt?: number | null
}

/** The result of redeeming. */
export interface Redemption {
  /** Only `reset` changes anything. */
  code: 'reset' | 'nothing_to_reset' | 'no_credit' | 'already_redeemed'
  windowsReset: number
  /** ms since epoch */
  redeemedAt: number | null
  creditId: string
  /** When ChatGPT answered, ms since epoch. The same in repeated answers. */
  at: number
}

interface Holder {
  readonly id: string
  readonly tags: readonly string[]
  readonly row: { readonly email: string }
}

export class ResetCredits {
  readonly #credits = new Map<string, readonly ResetCredit[]>()
  readonly redemptions = new Redemptions<Redemption>()

  /** Replaces the credits of the account. */
  set(accountId: string, credits: readonly ResetCredit[]): void {
    this.#credits.set(accountId, credits)
  }

  /** Drops other accounts. */
  keepOnly(accountIds: ReadonlySet<string>): void {
    for (const id of this.#credits.keys()) if (!accountIds.has(id)) this.#credits.delete(id)
  }

  /** The credits last reported; null: none yet. */
  of(accountId: string): readonly ResetCredit[] | null {
    return this.#credits.get(accountId) ?? null
  }

  /** Drops outdated credits. */
  forget(accountId: string): void {
    this.#credits.delete(accountId)
  }

  /**
   * Redeemable credits at `now` of those `accounts` in `scope` (null: all), soonest expiry first. The wire format of
   * clients, including its one camel-case member.
   */
  listFor(scope: KeyScope, accounts: readonly Holder[], now: number) {
    return accounts
      .filter((account) => isInScope(scope, account))
      .flatMap((account) => (this.#credits.get(account.id) ?? []).map((credit) => ({ account, credit })))
      .filter(({ credit }) => isRedeemable(credit, now))
      .toSorted((a, b) => soonestFirst(a.credit, b.credit))
      .map(({ account, credit }) => ({
        account_id: account.id,
        email: account.row.email,
        redeem_id: credit.id,
        expiredAt: isoOrNull(credit.expiresAt),
      }))
  }
}

/** Soonest expiry first; those that never expire last. */
export const redeemable = (credits: readonly ResetCredit[], now: number): ResetCredit[] =>
  credits.filter((credit) => isRedeemable(credit, now)).toSorted(soonestFirst)

/** For dashboard clients (`rate-limit-reset-credits`). */
export const resetCreditsView = (credits: readonly ResetCredit[], now: number) => {
  const available = redeemable(credits, now)
  return {
    availableCount: available.length,
    nearestExpiresAt: isoOrNull(available[0]?.expiresAt),
    credits: credits.map((credit) => ({
      id: credit.id,
      resetType: credit.resetType ?? null,
      status: credit.status,
      grantedAt: isoOrNull(credit.grantedAt),
      expiresAt: isoOrNull(credit.expiresAt),
      title: credit.title ?? null,
      description: credit.description ?? null,
      redeemStartedAt: isoOrNull(credit.redeemStartedAt),
      redeemedAt: isoOrNull(credit.redeemedAt),
    })),
  }
}
export type ResetCreditsView = ReturnType<typeof resetCreditsView>

const isRedeemable = (credit: ResetCredit, now: number): boolean =>
  credit.status === 'available' && getExpiry(credit) > now

const soonestFirst = (a: ResetCredit, b: ResetCredit): number =>
  compare(getExpiry(a), getExpiry(b)) || compare(a.id, b.id)

const getExpiry = ({ expiresAt }: ResetCredit): number => expiresAt ?? Number.POSITIVE_INFINITY

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)
