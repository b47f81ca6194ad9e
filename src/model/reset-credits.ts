/** The reset credits of the accounts, as last reported: each resets the limits of its account at once when redeemed. Memory only. */
import { isoOrNull } from '../lib/iso.ts'
import { Redemptions } from './redemptions.ts'

/** Times are ms since epoch; null: the upstream does not say. */
export interface ResetCredit {
  /** What redeeming it is asked with. */
  id: string
  /** The upstream's word; only `available` ones can be redeemed. */
  status: string
  expiresAt: number | null
  resetType?: string | null
  title?: string | null
  description?: string | null
  grantedAt?: number | null
  redeemStartedAt?: number | null
  redeemedAt?: number | null
}

/** What came of asking for a reset. */
export interface Redemption {
  /** `reset` is the only one that changed something. */
  code: 'reset' | 'nothing_to_reset' | 'no_credit' | 'already_redeemed'
  windowsReset: number
  /** ms since epoch */
  redeemedAt: number | null
  creditId: string
  /** The answer to a request that was made before. */
  isRepeated: boolean
}

interface Holder {
  readonly id: string
  readonly row: { readonly email: string }
}

export class ResetCredits {
  readonly #credits = new Map<string, readonly ResetCredit[]>()
  readonly redemptions = new Redemptions<Redemption>()

  /** What the account has now; replaces what was known of it. */
  set(accountId: string, credits: readonly ResetCredit[]): void {
    this.#credits.set(accountId, credits)
  }

  /** Forgets all other accounts. */
  keepOnly(accountIds: ReadonlySet<string>): void {
    for (const id of this.#credits.keys()) if (!accountIds.has(id)) this.#credits.delete(id)
  }

  /** Everything last reported of the account; null: nothing was yet. */
  of(accountId: string): readonly ResetCredit[] | null {
    return this.#credits.get(accountId) ?? null
  }

  /** What was known of the account is out of date. */
  forget(accountId: string): void {
    this.#credits.delete(accountId)
  }

  /**
   * What can be redeemed at `now` on those of `accounts` that are in `scope` (null: all), soonest expiry first, those that
   * never expire last. The wire shape of proxy-surface §3.9, with its one member in camel case.
   */
  listFor(scope: ReadonlySet<string> | null, accounts: readonly Holder[], now: number) {
    return accounts
      .filter(({ id }) => scope?.has(id) ?? true)
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

/** Soonest expiry first, those that never expire last. */
export const redeemable = (credits: readonly ResetCredit[], now: number): ResetCredit[] =>
  credits.filter((credit) => isRedeemable(credit, now)).toSorted(soonestFirst)

/** As dashboard clients read them (dashboard API §1.5, `rate-limit-reset-credits`). */
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
  credit.status === 'available' && expiryOf(credit) > now

const soonestFirst = (a: ResetCredit, b: ResetCredit): number =>
  compare(expiryOf(a), expiryOf(b)) || compare(a.id, b.id)

const expiryOf = ({ expiresAt }: ResetCredit): number => expiresAt ?? Number.POSITIVE_INFINITY

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)
