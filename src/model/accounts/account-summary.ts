/** An upstream account as dashboard clients see it (`AccountSummary`): camelCase, ISO times, never a token. */
export { ACCOUNT_STATUSES, ROUTING_POLICIES } from '../../../db/schema/accounts.ts'

import { iso, isoOrNull } from '../../lib/iso.ts'
import type { TokenHealth } from './account-export.ts'
import type { AccountUse } from './account-totals.ts'
import { type AccountView, accountVersion } from './account-view.ts'
import type { AccountRow } from './accounts.ts'
import type { additionalQuotas } from './additional-quotas.ts'
import type { ResetCreditsView } from './reset-credits.ts'
import { capacityCredits, type UsageWindow, type WindowLength } from './usage-windows.ts'
import type { WindowStart } from './window-starts.ts'

export type AccountSummary = ReturnType<typeof summarise>

/** Primary, secondary and monthly are the five-hour, weekly and monthly window, whatever slot they came in. */
export const summarise = (view: AccountView, row: AccountRow, surroundings: SummaryContext) => {
  const { isEmailDuplicate, resetCredits, use, additional, tokens, windowStart } = surroundings
  const { fiveHour, weekly, monthly } = view.windows
  const left = (length: WindowLength) => remainingCredits(view, length)
  return {
    accountId: view.accountId,
    version: accountVersion(view),
    chatgptAccountId: row.chatgptAccountId,
    email: view.email,
    alias: view.alias,
    displayName: view.displayName,
    workspaceId: row.workspaceId,
    workspaceLabel: row.workspaceLabel,
    seatType: row.seatType,
    planType: view.planType,
    routingPolicy: view.routingPolicy,
    resetPolicy: view.resetPolicy,
    keepCredits: view.keepCredits,
    minBlockedMinutes: view.minBlockedMinutes,
    percent: view.percent,
    status: view.status,
    eligible: view.eligible,
    why: view.why,
    state: {
      cause: view.cause,
      evidence: view.evidence,
      since: isoOrNull(view.since),
      until: isoOrNull(view.until),
      nextCheckAt: isoOrNull(view.nextCheckAt),
    },
    tier: view.tier,
    lastError: view.lastError && { at: iso(view.lastError.at), evidence: view.lastError.evidence },
    inFlight: view.inFlight,
    securityWorkAuthorized: view.securityWorkAuthorized,
    maxUsedPercentPrimary: view.maxUsedPercentPrimary,
    maxUsedPercentSecondary: view.maxUsedPercentSecondary,
    ownerUserId: view.ownerUserId,
    reserveForOwner: view.reserveForOwner,
    tags: view.tags,
    position: view.position,
    usage: {
      primaryRemainingPercent: remaining(fiveHour),
      secondaryRemainingPercent: remaining(weekly),
      monthlyRemainingPercent: remaining(monthly),
    },
    resetAtPrimary: isoOrNull(fiveHour?.resetAt),
    resetAtSecondary: isoOrNull(weekly?.resetAt),
    resetAtMonthly: isoOrNull(monthly?.resetAt),
    windowMinutesPrimary: fiveHour?.windowMinutes ?? null,
    windowMinutesSecondary: weekly?.windowMinutes ?? null,
    windowMinutesMonthly: monthly?.windowMinutes ?? null,
    usageAt: isoOrNull(view.usageAt),
    lastRefreshAt: isoOrNull(view.lastRefreshAt),
    capacityCreditsPrimary: capacityCredits(view.planType, 'fiveHour'),
    capacityCreditsSecondary: capacityCredits(view.planType, 'weekly'),
    capacityCreditsMonthly: capacityCredits(view.planType, 'monthly'),
    remainingCreditsPrimary: left('fiveHour'),
    remainingCreditsSecondary: left('weekly'),
    remainingCreditsMonthly: left('monthly'),
    requestUsage: use,
    additionalQuotas: additional,
    creditsHas: view.credits?.hasCredits ?? null,
    creditsUnlimited: view.credits?.unlimited ?? null,
    creditsBalance: view.credits?.balance ?? null,
    paidCredits: view.paidCredits,
    deactivationReason: view.status === 'deactivated' || view.status === 'reauth_required' ? view.evidence : null,
    auth: tokens && { access: tokens.access, refresh: tokens.refresh, idToken: tokens.idToken },
    limitWarmupEnabled: row.windowStartEnabled,
    limitWarmup: windowStart && windowStartView(windowStart),
    isEmailDuplicate,
    availableResetCredits: resetCredits?.availableCount ?? null,
    resetCreditNearestExpiresAt: resetCredits?.nearestExpiresAt ?? null,
  }
}

/** The shape that existing dashboard clients read, with epoch seconds for `resetAt`. */
const windowStartView = (start: WindowStart) => ({
  window: start.window,
  resetAt: Math.floor(start.resetAt / 1000),
  status: start.result ?? 'unknown',
  model: start.model,
  attemptedAt: iso(start.startedAt),
  completedAt: isoOrNull(start.endedAt),
  errorCode: start.errorCode,
  errorMessage: start.errorMessage,
})

interface SummaryContext {
  isEmailDuplicate: boolean
  use: AccountUse
  additional: ReturnType<typeof additionalQuotas>
  /** null: hidden from the user. */
  tokens: TokenHealth | null
  /** null: there was none. */
  windowStart: WindowStart | null
  /** null: not fetched yet. */
  resetCredits: Pick<ResetCreditsView, 'availableCount' | 'nearestExpiresAt'> | null
}

/** For principals without `accounts:write`: enough to tell accounts apart, but no identifying data. */
export const masked = (summary: AccountSummary): AccountSummary => {
  const shown = { ...summary, ...maskedNames(summary), ...HIDDEN }
  return {
    ...shown,
    version: accountVersion(shown), // the version over hidden values would confirm guesses
    chatgptAccountId: null,
    workspaceId: null,
    workspaceLabel: null,
    state: { ...summary.state, evidence: null },
    lastError: summary.lastError && { ...summary.lastError, evidence: null },
    deactivationReason: null,
    limitWarmup: summary.limitWarmup && { ...summary.limitWarmup, errorMessage: null },
    auth: null,
  }
}

/** The same for the page view. */
export const maskedView = (view: AccountView): AccountView => ({
  ...view,
  ...maskedNames(view),
  ...HIDDEN,
  evidence: null,
  lastError: view.lastError && { ...view.lastError, evidence: null },
})

/** Tags are free text and can name people. */
const HIDDEN: Pick<AccountView, 'ownerUserId' | 'tags'> = { ownerUserId: null, tags: [] }

const maskedNames = ({ email, alias, displayName }: Pick<AccountView, 'email' | 'alias' | 'displayName'>) => ({
  email: maskEmails(email),
  alias: alias && maskEmails(alias),
  displayName: maskEmails(displayName),
})

/** Every e-mail address in `text`: `anna@example.com` becomes `a***@example.com`. */
export const maskEmails = (text: string): string => text.replace(/([^\s@])[^\s@]*@/g, '$1***@')

const remaining = (window: UsageWindow | null): number | null => window && 100 - window.usedPercent

/** Credits left in a window; null if not reported. */
export const remainingCredits = (
  { planType, windows }: Pick<AccountView, 'planType' | 'windows'>,
  length: WindowLength,
): number | null => {
  const percent = remaining(windows[length])
  return percent === null ? null : (capacityCredits(planType, length) * percent) / 100
}
