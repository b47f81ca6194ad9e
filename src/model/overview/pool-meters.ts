/** The combined allowances of all accounts, as bars: use, elapsed time, and when they run out at the current pace. */
import { MINUTE_MS } from '../../lib/durations.ts'
import type { AccountView } from '../accounts/account-view.ts'
import { capacityCredits, type WindowLength } from '../accounts/usage-windows.ts'
import { forecast, type Share } from './forecast.ts'
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
