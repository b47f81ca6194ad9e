/** The accounts as shown in the dashboard: whether each would be chosen now, and if not, a sentence saying why. */
import { type AccountStatus, nextState } from '../../model/accounts/account-state.ts'
import type { AccountView } from '../../model/accounts/account-view.ts'
import { nextReset, perWindow, type UsageWindow, usedNow, usesPaidCredits } from '../../model/accounts/usage-windows.ts'
import { type Considered, type SkipReason, skipText } from '../../model/log/skip-reasons.ts'
import type { Settings } from '../../settings/schema.ts'
import type { LiveAccount } from './live-account.ts'
import type { Pool } from './pool.ts'
import type { SelectionNeeds } from './selection-needs.ts'

/** Needs of an ordinary turn: any model, any account, no conversation. */
export const ORDINARY: Omit<SelectionNeeds, 'streamCap'> = {
  model: null,
  tried: new Set(),
  scope: null,
  owner: null,
  restricted: false,
}

/**
 * All accounts in order. Availability comes from the routing function itself, so the two cannot disagree; an account
 * that is merely less preferred counts as available.
 */
export const describeAccounts = (
  pool: Pick<Pool, 'all' | 'explain'>,
  { now, settings }: Circumstances,
): AccountView[] => {
  const { considered } = pool.explain({ ...ORDINARY, streamCap: settings.proxyAccountStreamLimit })
  const verdicts = new Map(considered.map((verdict) => [verdict.id, verdict]))
  // A pinned account rules out all others; otherwise a skipped class of accounts is only used later.
  const isPinned = settings.routingStrategy === 'single_account'
  const behind: readonly SkipReason[] = isPinned
    ? ['paid_credits_last']
    : ['lower_tier', 'policy_class', 'paid_credits_last']
  return pool
    .all()
    .map((account) => describe(account, verdicts.get(account.id), { now, behind, paidCredits: settings.paidCredits }))
}

interface Circumstances {
  /** ms since epoch */
  now: number
  settings: Pick<Settings, 'proxyAccountStreamLimit' | 'routingStrategy' | 'paidCredits'>
}

const describe = (
  account: LiveAccount,
  verdict: Considered | undefined,
  { now, behind, paidCredits }: { now: number; behind: readonly SkipReason[]; paidCredits: Settings['paidCredits'] },
): AccountView => {
  const { row, usage, health } = account
  const state = nextState(account.state, { kind: 'tick', at: now })
  const skipped = verdict?.skipped ?? null
  const eligible = skipped === null || behind.includes(skipped)
  return {
    accountId: account.id,
    email: row.email,
    alias: row.alias,
    displayName: account.displayName,
    planType: account.planType,
    routingPolicy: account.routingPolicy,
    resetPolicy: row.resetPolicy,
    keepCredits: row.keepCredits,
    minBlockedMinutes: row.minBlockedMinutes,
    percent: row.percent,
    status: state.status,
    eligible,
    why: eligible ? null : sentenceFor(skipped, state),
    skipped: eligible ? null : skipped,
    cause: state.cause,
    evidence: state.evidence,
    since: state.since,
    until: state.until ?? (eligible || state.nextCheckAt !== null ? null : (verdict?.until ?? null)),
    nextCheckAt: state.nextCheckAt,
    windows: perWindow((length) => windowAt(usage?.windows[length] ?? null, now)),
    inFlight: account.inFlight,
    tier: health.tier,
    lastError: health.lastError,
    credits: usage?.credits ?? null,
    paidCredits: usesPaidCredits(usage, now) ? paidCredits : null,
    securityWorkAuthorized: account.securityWorkAuthorized,
    maxUsedPercentPrimary: row.maxUsedPercentPrimary,
    maxUsedPercentSecondary: row.maxUsedPercentSecondary,
    ownerUserId: row.ownerUserId,
    reserveForOwner: row.reserveForOwner,
    tags: account.tags,
    position: row.position,
    lastRefreshAt: row.lastRefreshAt,
    usageAt: usage?.at ?? null,
  }
}

const sentenceFor = (
  skipped: SkipReason | null,
  { status, cause }: { status: AccountStatus; cause: string | null },
) => {
  if (skipped === null) return null
  const isLimit = cause === 'limit_reached' || (status === 'rate_limited' && cause === 'usage_limit_reached')
  if (isLimit) return 'Usage limit reached'
  const text = skipText(skipped)
  return text.charAt(0).toUpperCase() + text.slice(1)
}

const windowAt = (window: UsageWindow | null, now: number): UsageWindow | null =>
  window && { ...window, usedPercent: usedNow(window, now) ?? window.usedPercent, resetAt: nextReset(window, now) }
