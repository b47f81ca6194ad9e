/**
 * Redeems reset credits: one at a time per account, and once per request id, however often it is sent. Results are kept
 * in memory for a day; the upstream knows the request ids too.
 */
import { AppError } from '../errors.ts'
import { type AccountEvent, type AccountState, isInUse } from '../model/accounts/account-state.ts'
import { type Redemption, type ResetCredit, type ResetCredits, redeemable } from '../model/accounts/reset-credits.ts'
import type { UsageSnapshot } from '../model/accounts/usage-windows.ts'
import type { AccountCallDeps } from './account-call.ts'
import { fetchResetCredits, type Redeemed, redeemResetCredit } from './reset-credits.ts'
import { fetchUsage } from './usage.ts'

interface RedeemDeps extends AccountCallDeps {
  resetCredits: ResetCredits
  pool: {
    get(id: string): { readonly state: AccountState; readonly row: { readonly chatgptAccountId: string | null } } | null
    apply(id: string, event: AccountEvent): void
    observe(id: string, snapshot: UsageSnapshot): void
  }
}

interface RedeemRequest {
  accountId: string
  /** Null: the one that expires first. */
  creditId: string | null
  /** Sending it twice redeems once. */
  requestId: string
  /** Sends it again if there was nothing to reset before: then no credit was used. */
  mayRepeatNothing?: boolean
}

/**
 * Lists the current credits, redeems one, and fetches the usage, which ends an expired block. Throws
 * `account_not_found`, `account_not_reset_credit_applicable`, `no_available_reset_credit`,
 * `target_reset_credit_changed`, `reset_credit_redeem_in_progress`, `busy`, and what `ask` throws.
 */
export const redeem = async (deps: RedeemDeps, wish: RedeemRequest): Promise<Redemption> => {
  requireApplicable(deps, wish.accountId)
  const { redemptions } = deps.resetCredits
  const known = redemptions.known(wish, deps.clock.now())
  const isSettled = !(wish.mayRepeatNothing && known?.result?.code === 'nothing_to_reset')
  if (known?.result && isSettled) return known.result
  const finish = redemptions.begin(wish.accountId)
  try {
    const creditId = known?.creditId ?? (await choose(deps, wish)).id
    redemptions.note(wish, { creditId, result: null, at: deps.clock.now() })
    const redeemed = await redeemResetCredit(deps, wish.accountId, { creditId, requestId: wish.requestId })
    const at = deps.clock.now()
    deps.resetCredits.forget(wish.accountId)
    await takeIn(deps, wish.accountId, redeemed)
    const result: Redemption = { ...redeemed, creditId, at }
    redemptions.note(wish, { creditId, result, at: deps.clock.now() })
    return result
  } finally {
    finish()
  }
}

const requireApplicable = ({ pool }: RedeemDeps, accountId: string): void => {
  const account = pool.get(accountId)
  if (!account) throw new AppError('account_not_found')
  if (!isInUse(account.state) || account.row.chatgptAccountId === null)
    throw new AppError('account_not_reset_credit_applicable')
}

/** Lists again, because credits may have been redeemed elsewhere. */
const choose = async (deps: RedeemDeps, { accountId, creditId }: RedeemRequest): Promise<ResetCredit> => {
  const credits = await fetchResetCredits(deps, accountId)
  deps.resetCredits.set(accountId, credits)
  const available = redeemable(credits, deps.clock.now())
  const chosen = creditId === null ? available[0] : available.find(({ id }) => id === creditId)
  if (!chosen) throw new AppError(creditId === null ? 'no_available_reset_credit' : 'target_reset_credit_changed')
  return chosen
}

/** The credit is spent: later failures must not make it look otherwise. */
const takeIn = async (deps: RedeemDeps, accountId: string, { code }: Redeemed): Promise<void> => {
  const refreshed = fetchResetCredits(deps, accountId).then(
    (credits) => deps.resetCredits.set(accountId, credits),
    () => {}, // the job polls again within a minute
  )
  const usage = fetchUsage(deps, accountId).then(
    (snapshot) => deps.pool.observe(accountId, snapshot),
    () => {}, // and so does the usage job
  )
  await Promise.all([usage, refreshed])
  if (code === 'reset')
    deps.pool.apply(accountId, { kind: 'checked', at: deps.clock.now(), ok: true, by: 'reset_credit' })
}
