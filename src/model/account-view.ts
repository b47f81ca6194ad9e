/** An upstream account as people are shown it: what is known about it, and, apart from that, whether it would be chosen now. */
import { iso, isoOrNull } from '../lib/iso.ts'
import type { Settings } from '../settings/schema.ts'
import type { AccountState } from './account-state.ts'
import type { AccountRow } from './accounts.ts'
import { versionOf } from './edit-version.ts'
import type { SkipReason } from './skip-reasons.ts'
import { type Credits, perWindow, type UsageWindow, type UsageWindows, type WindowLength } from './usage-windows.ts'

/** `draining`: asked last, to finish soon; `probing`: coming back, one request at a time. */
type AccountTier = 'healthy' | 'draining' | 'probing'

type Stored = 'email' | 'alias' | 'planType' | 'routingPolicy' | 'securityWorkAuthorized' | 'lastRefreshAt'

/** All times are ms since epoch. */
export interface AccountView extends Pick<AccountRow, Stored>, Omit<AccountState, 'attempts'> {
  accountId: string
  /** The alias, or else the e-mail address. */
  displayName: string
  /** Would be chosen for an ordinary turn at this moment. */
  eligible: boolean
  /** Why not, as a short sentence without the times, which stand in `until` and `nextCheckAt`; null when eligible. */
  why: string | null
  /** The same as the word of whoever chooses. */
  skipped: SkipReason | null
  /** As of now: a window whose reset has passed stands at 0, and names no reset. */
  windows: UsageWindows
  /** Turns under way. */
  inFlight: number
  tier: AccountTier
  /** What failed at it since it last served; `evidence` is null for those who do not manage accounts. */
  lastError: { at: number; evidence: string | null } | null
  credits: Credits | null
  /** How its paid credits are used now that its included quota is used up; null: it has included quota, or no credits. */
  paidCredits: Settings['paidCredits'] | null
  /** When its usage was last reported; null: never. */
  usageAt: number | null
}

/** The same with ISO 8601 times, as it goes over the wire and into pages. */
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

/** Of what people decide about it. */
export const accountVersion = ({
  alias,
  routingPolicy,
  securityWorkAuthorized,
}: Pick<AccountView, 'alias' | 'routingPolicy' | 'securityWorkAuthorized'>): string =>
  versionOf([alias, routingPolicy, securityWorkAuthorized])

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
