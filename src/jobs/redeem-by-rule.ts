/** Uses reset credits by the rule of their account, right after they were listed. */
import { type CommitAgainDeps, commitClaim, commitResult } from '../../db/commit-again.ts'
import { AppError } from '../errors.ts'
import { recordAccountEvent } from '../model/accounts/account-events.ts'
import type { AccountEvent, AccountState } from '../model/accounts/account-state.ts'
import type { AccountRow } from '../model/accounts/accounts.ts'
import { recordRedemption } from '../model/accounts/redemption-record.ts'
import {
  claimResetAttempt,
  endResetAttempt,
  getResetAttempts,
  type ResetWish,
  ruleRequestId,
} from '../model/accounts/reset-attempts.ts'
import type { ResetCredits } from '../model/accounts/reset-credits.ts'
import { planReset, ruleFor, windowsPrint } from '../model/accounts/reset-rule.ts'
import type { UsageSnapshot } from '../model/accounts/usage-windows.ts'
import type { Settings } from '../settings/schema.ts'
import { redeem } from '../upstream/redeem.ts'
import { type JobDeps, toAccountCallDeps } from './context.ts'

interface RuledAccount {
  readonly state: AccountState
  readonly row: AccountRow
  readonly usage: UsageSnapshot | null
}

export interface RedeemByRuleDeps
  extends CommitAgainDeps,
    Pick<JobDeps, 'db' | 'upstream' | 'credentials' | 'clock' | 'log'> {
  resetCredits: ResetCredits
  settings: { current(): Readonly<Settings> }
  pool: {
    get(id: string): RuledAccount | null
    apply(id: string, event: AccountEvent): void
    observe(id: string, snapshot: UsageSnapshot): void
  }
}

/** Never rejects: what happened is in the account's history, or in the log if the database cannot be written. */
export const redeemByRule = async (deps: RedeemByRuleDeps, accountId: string): Promise<void> => {
  const { db, clock, pool, resetCredits, settings, log } = deps
  const account = pool.get(accountId)
  const credits = resetCredits.of(accountId)
  if (!account || !credits) return
  const now = clock.now()
  const rule = ruleFor(account.row, settings.current())
  const { usage, state } = account
  try {
    const plan = planReset(rule, { credits, usage, state, attempts: await getResetAttempts(db, accountId) }, now)
    if (plan.kind !== 'planned' || plan.at > now) return
    const wish = { accountId, creditId: plan.creditId, rule: rule.policy }
    const print = windowsPrint(usage)
    const claim = { at: now, print, usageAt: usage?.at ?? 0 }
    if (await commitClaim(deps, (tx, mayBeStored) => claimResetAttempt(tx, wish, claim, mayBeStored)))
      await redeemClaimed(deps, wish, print)
  } catch (err) {
    log.warn('a reset credit could not be used by rule', { account: accountId, err })
  }
}

const redeemClaimed = async (deps: RedeemByRuleDeps, wish: ResetWish, print: string): Promise<void> => {
  const { clock, pool, resetCredits, log } = deps
  const { accountId } = wish
  const requestId = ruleRequestId(wish)
  const given = { ...wish, requestId, mayRepeatNothing: true }
  const redemption = await redeem({ ...toAccountCallDeps(deps), pool, resetCredits }, given).catch(AppError.from)
  const at = clock.now()
  if (redemption instanceof AppError) {
    const { code, message } = redemption
    log.warn('a reset credit could not be used by rule', { account: accountId, code })
    const event = { accountId, at, kind: 'reset', result: 'failed', detail: message } as const
    return commitResult(deps, async (tx) => {
      if (await endResetAttempt(tx, wish, { code, print })) await recordAccountEvent(tx, event)
    })
  }
  const printAfter = windowsPrint(pool.get(accountId)?.usage ?? null)
  await commitResult(deps, async (tx) => {
    if (await endResetAttempt(tx, wish, { code: redemption.code, print: printAfter }))
      await recordRedemption(tx, byRule(at), { ...redemption, accountId, requestId, rule: wish.rule })
  })
}

const byRule = (at: number) => ({ id: 'system', method: null, address: null, at })
