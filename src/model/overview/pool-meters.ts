/** The combined allowances of all accounts, as bars: use, elapsed time, and when they run out at the current pace. */
import { MINUTE_MS } from '../../lib/durations.ts'
import type { AccountView } from '../accounts/account-view.ts'
import { capacityCredits, type WindowLength } from '../accounts/usage-windows.ts'
import { type PooledAccount, type PoolWindow, poolWindows } from './pool-usage.ts'

export interface PoolMeter {
  window: PoolWindow['window']
  capacityCredits: number
  usedCredits: number
  usedPercent: number
  /** Percent of the windows' time, weighted; null: unknown. */
  pacePercent: number | null
  /** The next reset of an account, ms; null: unknown. */
  resetAt: number | null
  /** At the current pace, ms; null: lasts until the resets. */
  usedUpAt: number | null
}

const LENGTHS: Record<PoolWindow['window'], WindowLength> = {
  '5h': 'fiveHour',
  '7d': 'weekly',
  monthly: 'monthly',
}

/**
 * One per window length that an account reports. Paused and deactivated accounts and those that need sign-in do not
 * count.
 */
export const poolMeters = (accounts: readonly AccountView[], now: number): PoolMeter[] =>
  poolWindows(accounts.map(pooled), null, now).map(({ window, capacityCredits: capacity, usedCredits, resetAt }) => {
    const inPool = accounts.filter((account) =>
      poolWindows([pooled(account)], null, now).some((one) => one.window === window),
    )
    return {
      window,
      capacityCredits: capacity,
      usedCredits,
      usedPercent: (usedCredits / capacity) * 100,
      resetAt,
      ...forecast(
        inPool.map((account) => getShare(account, LENGTHS[window])),
        now,
      ),
    }
  })

const pooled = ({ accountId, tags, planType, status, windows, credits, usageAt }: AccountView): PooledAccount => ({
  id: accountId,
  tags,
  planType,
  state: { status },
  usage: { at: usageAt ?? 0, windows, credits, planType },
})

const getShare = ({ planType, windows }: AccountView, length: WindowLength): Share => {
  const capacity = capacityCredits(planType, length)
  const window = windows[length]
  return {
    capacity,
    used: (capacity * (window?.usedPercent ?? 0)) / 100,
    resetAt: window?.resetAt ?? null,
    windowMs: (window?.windowMinutes ?? 0) * MINUTE_MS,
  }
}

/** One account's share of a pooled window, in credits. */
export interface Share {
  capacity: number
  used: number
  /** ms since epoch; null: unknown. */
  resetAt: number | null
  windowMs: number
}

interface Forecast {
  /** Percent of the windows' time that has passed, weighted by size; null: unknown. */
  pacePercent: number | null
  /** When nothing is left at the current pace (ms); null: the resets come first. */
  usedUpAt: number | null
}

/** A window that has just begun says little about pace. */
const MIN_ELAPSED_MS = 15 * MINUTE_MS

/**
 * Steps from reset to reset: the pool shrinks at the combined pace, and each reset returns what the account has used by
 * then, including its share of later use.
 */
export const forecast = (shares: readonly Share[], now: number): Forecast => {
  const timed = shares.filter(isTimed(now))
  const timedCapacity = sum(timed, ({ capacity }) => capacity)
  if (timedCapacity === 0) return { pacePercent: null, usedUpAt: null }
  const gone = sum(timed, (share) => (share.capacity * elapsedMs(share, now)) / share.windowMs)
  return { pacePercent: (gone / timedCapacity) * 100, usedUpAt: usedUpAt(shares, timed, now) }
}

type Timed = Share & { resetAt: number }

const isTimed =
  (now: number) =>
  (share: Share): share is Timed =>
    share.resetAt !== null && share.resetAt > now && share.capacity > 0 && share.windowMs > 0

const elapsedMs = ({ resetAt, windowMs }: Timed, now: number): number =>
  Math.min(windowMs, Math.max(0, windowMs - (resetAt - now)))

const usedUpAt = (shares: readonly Share[], timed: readonly Timed[], now: number): number | null => {
  const capacity = sum(shares, (share) => share.capacity)
  const creditsPerMs = sum(timed, (share) => share.used / Math.max(MIN_ELAPSED_MS, elapsedMs(share, now)))
  let left = capacity - sum(shares, ({ used }) => used)
  if (left <= 0) return now
  if (creditsPerMs <= 0) return null
  let at = now
  for (const share of timed.toSorted((a, b) => a.resetAt - b.resetAt)) {
    const lasts = left / creditsPerMs
    if (at + lasts < share.resetAt) return Math.round(at + lasts)
    left -= creditsPerMs * (share.resetAt - at)
    const usedByThen = share.used + (creditsPerMs * (share.resetAt - now) * share.capacity) / capacity
    left = Math.min(capacity, left + Math.min(share.capacity, usedByThen))
    at = share.resetAt
  }
  return null
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)
