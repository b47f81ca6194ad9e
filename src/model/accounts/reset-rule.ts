/** When a rule uses a reset credit of an account. Pure, so that the page shows what the job will do. */
import type { ResetPolicy } from '../../../db/schema/accounts.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Settings } from '../../settings/schema.ts'
import { type AccountState, isBlocked } from './account-state.ts'
import type { AccountRow } from './accounts.ts'
import type { ResetAttempts } from './reset-attempts.ts'
import { type ResetCredit, redeemable } from './reset-credits.ts'
import { nextReset, type UsageSnapshot, usedNow } from './usage-windows.ts'

export interface ResetRule {
  policy: ResetPolicy
  keepCredits: number
  minBlockedMinutes: number
  percent: number
}

type OwnRule = Pick<AccountRow, 'resetPolicy' | 'keepCredits' | 'minBlockedMinutes' | 'percent'>

/** The account's own values, and otherwise the settings. */
export const ruleFor = (row: OwnRule, settings: Readonly<Settings>): ResetRule => ({
  policy: row.resetPolicy ?? settings.resetPolicy,
  keepCredits: row.keepCredits ?? settings.resetKeepCredits,
  minBlockedMinutes: row.minBlockedMinutes ?? settings.resetMinBlockedMinutes,
  percent: row.percent ?? settings.resetPercent,
})

/** A credit in its last day is used at the last sensible moment. */
const EXPIRY_AHEAD_MS = DAY_MS
/** Time for more attempts of the job before the credit is gone. */
const EXPIRY_MARGIN_MS = 10 * MINUTE_MS

export type ResetPlan =
  /** `at` (ms): when it is used, as things are now; `left`: how many remain then. */
  { kind: 'planned'; creditId: string; at: number; left: number } | { kind: 'waiting'; for: Reason }

type Reason =
  | 'never'
  | 'no_credit'
  | 'kept'
  | 'exhausted'
  | 'percent'
  | 'expiry'
  | 'reset_soon'
  /** Every credit was attempted. */
  | 'attempted'
  /** ChatGPT had nothing to reset, and the windows have not changed since. */
  | 'nothing_to_reset'

interface Standing {
  credits: readonly ResetCredit[]
  attempts: ResetAttempts
  usage: UsageSnapshot | null
  state: AccountState
}

/**
 * What the rule does next. Credits are used soonest expiry first, and `keepCredits` of them never. A credit whose attempt
 * failed is left to the operator.
 */
export const planReset = (rule: ResetRule, standing: Standing, now: number): ResetPlan => {
  if (rule.policy === 'never') return { kind: 'waiting', for: 'never' }
  const { credits, attempts, usage, state } = standing
  const available = redeemable(credits, now)
  if (available.length === 0) return { kind: 'waiting', for: 'no_credit' }
  if (available.length <= rule.keepCredits) return { kind: 'waiting', for: 'kept' }
  const print = windowsPrint(usage)
  if (available.some(({ id }) => attempts.get(id)?.nothingToReset === print))
    return { kind: 'waiting', for: 'nothing_to_reset' }
  const credit = available.find(({ id }) => attempts.get(id)?.nothingToReset !== null)
  if (!credit) return { kind: 'waiting', for: 'attempted' }
  const at = momentFor(rule, { credit, full: (percent) => fullWindows({ usage, state }, percent, now) }, now)
  return typeof at === 'number'
    ? { kind: 'planned', creditId: credit.id, at, left: available.length - 1 }
    : { kind: 'waiting', for: at }
}

interface Question {
  credit: ResetCredit
  /** When the windows with at least this percent used reset (ms). */
  full: (percent: number) => number[]
}

const momentFor = (rule: ResetRule, { credit, full }: Question, now: number): number | Reason => {
  switch (rule.policy) {
    case 'never':
      return 'never'
    case 'when_exhausted':
      return atOnce(full(100), rule, now) ?? (full(100).length > 0 ? 'reset_soon' : 'exhausted')
    case 'at_percent':
      return atOnce(full(rule.percent), rule, now) ?? (full(rule.percent).length > 0 ? 'reset_soon' : 'percent')
    case 'before_expiry':
      return beforeExpiry(rule, { credit, full }, now)
  }
}

/** Now, if the last of the windows resets late enough on its own. */
const atOnce = (resets: readonly number[], { minBlockedMinutes }: ResetRule, now: number): number | null =>
  resets.length > 0 && Math.max(...resets) - now >= minBlockedMinutes * MINUTE_MS ? now : null

/**
 * The last moment at which a window holds enough use and does not reset soon, but ten minutes before the credit expires at the
 * latest; then also with less use, because the credit would be lost.
 */
const beforeExpiry = (rule: ResetRule, { credit, full }: Question, now: number): number | Reason => {
  const { expiresAt } = credit
  if (expiresAt === null || expiresAt - now > EXPIRY_AHEAD_MS) return 'expiry'
  const deadline = expiresAt - EXPIRY_MARGIN_MS
  const lastMoment = (resets: readonly number[]) =>
    resets.length === 0 ? null : Math.max(...resets) - rule.minBlockedMinutes * MINUTE_MS
  const sensible = lastMoment(full(rule.percent))
  if (sensible !== null && sensible >= now - MISSED_MS) return Math.max(now, Math.min(deadline, sensible))
  const any = lastMoment(full(LEAST_PERCENT))
  return any !== null && any >= Math.max(now, deadline) - MISSED_MS ? Math.max(now, deadline) : 'reset_soon'
}

/** The job looks once a minute, so it sees a moment up to this late. */
const MISSED_MS = 2 * MINUTE_MS
const LEAST_PERCENT = 1

/** A window without a known reset is never full: whether it resets soon is unknown. A block counts as a full window. */
const fullWindows = ({ usage, state }: Pick<Standing, 'usage' | 'state'>, percent: number, now: number): number[] => {
  const resets = Object.values(usage?.windows ?? {}).flatMap((window) =>
    (usedNow(window, now) ?? 0) >= percent ? (nextReset(window, now) ?? []) : [],
  )
  const isOutOfQuota = isBlocked(state) && (state.status === 'quota_exceeded' || state.cause === 'usage_limit_reached')
  return isOutOfQuota && state.until !== null && state.until > now ? [...resets, state.until] : resets
}

/** Names the windows' contents, so that a change is seen. */
export const windowsPrint = (usage: UsageSnapshot | null): string =>
  JSON.stringify(Object.values(usage?.windows ?? {}).map((window) => window && [window.usedPercent, window.resetAt]))
