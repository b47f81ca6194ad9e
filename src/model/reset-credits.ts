/** The reset credits of the accounts, as last reported: each resets the limits of its account at once when redeemed. Memory only. */

export interface ResetCredit {
  /** What redeeming it is asked with. */
  id: string
  /** The upstream's word; only `available` ones can be redeemed. */
  status: string
  /** ms since epoch; null: it does not say. */
  expiresAt: number | null
}

interface Holder {
  readonly id: string
  readonly row: { readonly email: string }
}

export class ResetCredits {
  readonly #credits = new Map<string, readonly ResetCredit[]>()

  /** What the account has now; replaces what was known of it. */
  set(accountId: string, credits: readonly ResetCredit[]): void {
    this.#credits.set(accountId, credits)
  }

  /** Forgets all other accounts. */
  keepOnly(accountIds: ReadonlySet<string>): void {
    for (const id of this.#credits.keys()) if (!accountIds.has(id)) this.#credits.delete(id)
  }

  /**
   * What can be redeemed at `now` on those of `accounts` that are in `scope` (null: all), soonest expiry first, those that
   * never expire last. The wire shape of proxy-surface §3.9, with its one member in camel case.
   */
  listFor(scope: ReadonlySet<string> | null, accounts: readonly Holder[], now: number) {
    return accounts
      .filter(({ id }) => scope?.has(id) ?? true)
      .flatMap((account) => (this.#credits.get(account.id) ?? []).map((credit) => ({ account, credit })))
      .filter(({ credit }) => credit.status === 'available' && expiryOf(credit) > now)
      .toSorted((a, b) => compare(expiryOf(a.credit), expiryOf(b.credit)) || compare(a.credit.id, b.credit.id))
      .map(({ account, credit }) => ({
        account_id: account.id,
        email: account.row.email,
        redeem_id: credit.id,
        expiredAt: credit.expiresAt === null ? null : new Date(credit.expiresAt).toISOString(),
      }))
  }
}

const expiryOf = ({ expiresAt }: ResetCredit): number => expiresAt ?? Number.POSITIVE_INFINITY

const compare = <T extends string | number>(a: T, b: T): number => (a < b ? -1 : a > b ? 1 : 0)
