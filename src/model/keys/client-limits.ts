/**
 * The limits a client is shown: of its key, of the pool or of one account. Response headers, socket events and every
 * usage document are formats of this one result, so that they agree.
 */

import { isInUse } from '../accounts/account-state.ts'
import {
  type AdditionalQuota,
  type Credits,
  nextReset,
  type UsageSnapshot,
  type UsageWindow,
  usedNow,
} from '../accounts/usage-windows.ts'
import { type PooledAccount, type PoolWindow, poolWindows } from '../overview/pool-usage.ts'
import type { KeyPolicy } from './key-ring.ts'
import { isInScope, type KeyScope } from './key-scope.ts'
import { type LiveLimit, rollOver } from './reservations.ts'

/** Percent are whole numbers, because native documents have only those; 100 means used up. */
export interface ShownWindow {
  usedPercent: number
  windowMinutes: number
  /** ms since epoch; null when unknown. */
  resetAt: number | null
}

export interface ShownLimit {
  primary: ShownWindow | null
  secondary: ShownWindow | null
  monthly: ShownWindow | null
  /** Whether a request would be served now, as far as quota decides. */
  allowed: boolean
  limitReached: boolean
}

export interface ClientLimits extends ShownLimit {
  credits: Credits | null
  /** Limits of single models or features. */
  additional: readonly (ShownLimit & { name: string; meteredFeature: string })[]
}

interface PoolFacts {
  accounts: readonly PooledAccount[]
  /** Account ids; null: all. */
  scope: KeyScope
  /** Whether any of them has quota left. */
  canServe: boolean
  /** Whether requests may use paid credits. */
  usesCredits: boolean
  now: number
}

/** The limits of the accounts in `scope` together, weighted by capacity. */
export const poolLimits = ({ accounts, scope, canServe, usesCredits, now }: PoolFacts): ClientLimits => {
  const inUse = accounts.filter((account) => isInScope(scope, account) && isInUse(account.state))
  const windows = poolWindows(inUse, null, now)
  const shown = (name: PoolWindow['window']) => {
    const window = windows.find(({ window }) => window === name)
    return window ? poolWindow(window) : null
  }
  return {
    primary: shown('5h'),
    secondary: shown('7d'),
    monthly: shown('monthly'),
    allowed: canServe,
    limitReached: !canServe && inUse.length > 0,
    credits: usesCredits ? getTogether(inUse.flatMap(({ usage }) => usage?.credits ?? [])) : null,
    additional: [],
  }
}

/**
 * The limits of the key itself, null without any. Of several limits in one window the one with the least left is shown;
 * limits of single models are listed separately.
 */
export const keyLimits = ({ limits }: Pick<KeyPolicy, 'limits'>, now: number): ClientLimits | null => {
  if (limits.length === 0) return null
  for (const limit of limits) rollOver(limit, now)
  const general = limits.filter(({ modelFilter }) => modelFilter === '')
  const byModel = Map.groupBy(
    limits.filter(({ modelFilter }) => modelFilter !== ''),
    ({ modelFilter }) => modelFilter,
  )
  return {
    ...shownLimit(general),
    credits: null,
    additional: [...byModel].map(([model, own]) => ({ name: model, meteredFeature: model, ...shownLimit(own) })),
  }
}

/** The limits of one account. */
export const accountLimits = (
  { usage, isUsable, isLimited }: { usage: UsageSnapshot | null; isUsable: boolean; isLimited: boolean },
  now: number,
): ClientLimits => ({
  primary: accountWindow(usage?.windows.fiveHour ?? null, now),
  secondary: accountWindow(usage?.windows.weekly ?? null, now),
  monthly: accountWindow(usage?.windows.monthly ?? null, now),
  allowed: isUsable,
  limitReached: isLimited,
  credits: usage?.credits ?? null,
  additional: (usage?.additional ?? []).map((quota) => additionalLimit(quota, now)),
})

const NOMINAL_MINUTES: Record<PoolWindow['window'], number> = { '5h': 300, '7d': 10_080, monthly: 43_200 }

const poolWindow = ({ window, usedCredits, capacityCredits, resetAt }: PoolWindow): ShownWindow => ({
  usedPercent: wholePercent((usedCredits / capacityCredits) * 100),
  windowMinutes: NOMINAL_MINUTES[window],
  resetAt,
})

/** Rounding must not show a window as used up before it is. */
const wholePercent = (percent: number): number => (percent >= 100 ? 100 : Math.min(99, Math.round(percent)))

/** Which slot of the native format shows a limit, and how long its window is. */
const SLOTS: Record<LiveLimit['window'], readonly ['primary' | 'secondary' | 'monthly', minutes: number]> = {
  '5h': ['primary', 300],
  daily: ['primary', 1440],
  '7d': ['secondary', 10_080],
  weekly: ['secondary', 10_080],
  monthly: ['monthly', 43_200],
}

const shownLimit = (limits: readonly LiveLimit[]): ShownLimit => {
  const shown: ShownLimit = { primary: null, secondary: null, monthly: null, allowed: true, limitReached: false }
  for (const limit of limits) {
    const [slot, windowMinutes] = SLOTS[limit.window]
    const usedPercent = wholePercent(limit.maxValue > 0 ? (limit.settled / limit.maxValue) * 100 : 100)
    if (usedPercent > (shown[slot]?.usedPercent ?? -1))
      shown[slot] = { usedPercent, windowMinutes, resetAt: limit.resetAt }
    if (usedPercent >= 100) Object.assign(shown, { allowed: false, limitReached: true })
  }
  return shown
}

const accountWindow = (window: UsageWindow | null, now: number): ShownWindow | null => {
  const usedPercent = usedNow(window, now)
  if (window === null || usedPercent === null) return null
  const { windowMinutes } = window
  return { usedPercent: wholePercent(usedPercent), windowMinutes, resetAt: nextReset(window, now) }
}

const additionalLimit = ({ limitName, meteredFeature, primary, secondary }: AdditionalQuota, now: number) => {
  const windows = { primary: accountWindow(primary, now), secondary: accountWindow(secondary, now), monthly: null }
  const limitReached = [windows.primary, windows.secondary].some((window) => window?.usedPercent === 100)
  return {
    name: limitName,
    meteredFeature: meteredFeature ?? limitName,
    ...windows,
    allowed: !limitReached,
    limitReached,
  }
}

const getTogether = (credits: readonly Credits[]): Credits | null => {
  if (credits.length === 0) return null
  const balances = credits.flatMap(({ balance }) => balance ?? [])
  return {
    hasCredits: credits.some(({ hasCredits }) => hasCredits),
    unlimited: credits.some(({ unlimited }) => unlimited),
    balance: balances.length === 0 ? null : balances.reduce((sum, balance) => sum + balance, 0),
  }
}
