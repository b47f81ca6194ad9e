/** Uses reset credits by the rule of their account, right after they were listed. */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import { recordAccountEvent } from '../model/accounts/account-events.ts'
import type { AccountEvent, AccountState } from '../model/accounts/account-state.ts'
import type { AccountRow } from '../model/accounts/accounts.ts'
import { recordRedemption } from '../model/accounts/redemption-record.ts'
import {
  claimResetAttempt,
  endResetAttempt,
  getResetAttempts,
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

export interface RedeemByRuleDeps extends Pick<JobDeps, 'db' | 'upstream' | 'credentials' | 'clock' | 'log'> {
  db: Db
  resetCredits: ResetCredits
  settings: { current(): Readonly<Settings> }
  pool: {
    get(id: string): RuledAccount | null
    apply(id: string, event: AccountEvent): void
    observe(id: string, snapshot: UsageSnapshot): void
  }
}

/** Never rejects: what happened is in the account's history. */
export const redeemByRule = async (deps: RedeemByRuleDeps, accountId: string): Promise<void> => {
  const { db, clock, pool, resetCredits, settings } = deps
  const account = pool.get(accountId)
  const credits = resetCredits.of(accountId)
  if (!account || !credits) return
  const now = clock.now()
  const rule = ruleFor(account.row, settings.current())
  const { usage, state } = account
  const plan = planReset(rule, { credits, usage, state, attempts: await getResetAttempts(db, accountId) }, now)
  if (plan.kind !== 'planned' || plan.at > now) return
  const wish = { accountId, creditId: plan.creditId, rule: rule.policy }
  const print = windowsPrint(usage)
  const usageAt = usage?.at ?? 0
  if (!(await commit<boolean>(db, (tx) => claimResetAttempt(tx, wish, { at: now, print, usageAt })))) return
  try {
    const requestId = ruleRequestId(wish)
    const redemption = await redeem(
      { ...toAccountCallDeps(deps), pool, resetCredits },
      { ...wish, requestId, mayRepeatNothing: true },
    )
    const printAfter = windowsPrint(pool.get(accountId)?.usage ?? null)
    await commit(db, async (tx) => {
      const { code } = redemption
      await endResetAttempt(tx, wish, { code, print: printAfter })
      await recordRedemption(tx, byRule(clock.now()), { ...redemption, accountId, requestId, rule: rule.policy })
    })
  } catch (err) {
    const { code, message } = AppError.from(err)
    deps.log.warn('a reset credit could not be used by rule', { account: accountId, code })
    const event = { accountId, at: clock.now(), kind: 'reset', result: 'failed', detail: message } as const
    await commit(db, async (tx) => {
      await endResetAttempt(tx, wish, { code, print })
      await recordAccountEvent(tx, event)
    })
  }
}

const byRule = (at: number) => ({ id: 'system', method: null, address: null, at })
