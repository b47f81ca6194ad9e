/** An upstream account as shown to users: what is known about it, and whether it would be chosen now. */
import { iso, isoOrNull } from '../../lib/iso.ts'
import type { Settings } from '../../settings/schema.ts'
import { getVersion } from '../edit-version.ts'
import type { SkipReason } from '../log/skip-reasons.ts'
import type { AccountState } from './account-state.ts'
import type { AccountRow } from './accounts.ts'
import { type Credits, perWindow, type UsageWindow, type UsageWindows, type WindowLength } from './usage-windows.ts'

/** `draining`: used last, to finish soon; `probing`: coming back, one request at a time. */
type AccountTier = 'healthy' | 'draining' | 'probing'

type ResetFields = 'resetPolicy' | 'keepCredits' | 'minBlockedMinutes' | 'percent'
type Caps = 'maxUsedPercentPrimary' | 'maxUsedPercentSecondary' | 'ownerUserId' | 'reserveForOwner'
type Editable = 'alias' | 'routingPolicy' | 'securityWorkAuthorized' | Caps | ResetFields
type Stored = 'email' | 'planType' | 'lastRefreshAt' | 'position' | Editable

/** All times are ms since epoch. */
export interface AccountView extends Pick<AccountRow, Stored>, Omit<AccountState, 'attempts'> {
  accountId: string
  /** Sorted. */
  tags: readonly string[]
  /** The alias, or the e-mail address. */
  displayName: string
  /** Would be chosen for an ordinary request now. */
  eligible: boolean
  /** Why it is not available, as a short sentence without the times in `until` and `nextCheckAt`; null when eligible. */
  why: string | null
  /** The routing reason behind `why`. */
  skipped: SkipReason | null
  /** As of now: a window past its reset is at 0 and has no reset time. */
  windows: UsageWindows
  /** Running requests. */
  inFlight: number
  tier: AccountTier
  /** The last error since it last served; `evidence` is null for users who do not manage accounts. */
  lastError: { at: number; evidence: string | null } | null
  credits: Credits | null
  /** How its paid credits are used after its included quota; null: quota is left, or there are no credits. */
  paidCredits: Settings['paidCredits'] | null
  /** When its usage was last reported; null: never. */
  usageAt: number | null
}

/** The same with ISO 8601 times, for API and pages. */
export interface WireAccount
  extends Omit<AccountView, 'since' | 'until' | 'nextCheckAt' | 'windows' | 'lastError' | 'lastRefreshAt' | 'usageAt'> {
  since: string | null
  until: string | null
  nextCheckAt: string | null
  lastError: { at: string; evidence: string | null } | null
  windows: Record<WindowLength, WireWindow | null>
  lastRefreshAt: string
  usageAt: string | null
  version: string
}

export interface WireWindow extends Omit<UsageWindow, 'resetAt'> {
  resetAt: string | null
}

/** The version of its editable members. */
export const accountVersion = (account: Pick<AccountView, Editable | 'tags'>): string =>
  getVersion([
    account.alias,
    account.routingPolicy,
    account.securityWorkAuthorized,
    account.maxUsedPercentPrimary,
    account.maxUsedPercentSecondary,
    account.ownerUserId,
    account.reserveForOwner,
    account.resetPolicy,
    account.keepCredits,
    account.minBlockedMinutes,
    account.percent,
    account.tags,
  ])

export const wireAccount = (account: AccountView): WireAccount => ({
  ...account,
  version: accountVersion(account),
  since: isoOrNull(account.since),
  until: isoOrNull(account.until),
  nextCheckAt: isoOrNull(account.nextCheckAt),
  lastError: account.lastError && { ...account.lastError, at: iso(account.lastError.at) },
  lastRefreshAt: iso(account.lastRefreshAt),
  usageAt: isoOrNull(account.usageAt),
  windows: perWindow((length) => wireWindow(account.windows[length])),
})

const wireWindow = (window: UsageWindow | null): WireWindow | null =>
  window && { ...window, resetAt: isoOrNull(window.resetAt) }
