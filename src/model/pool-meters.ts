/** The allowances of all accounts together, as bars: what is used, how far the time is, and when it is used up at this pace. */
import { MINUTE_MS } from '../lib/durations.ts'
import type { AccountView } from './account-view.ts'
import { forecast, type Share } from './forecast.ts'
import { type PooledAccount, type PoolWindow, poolWindows } from './pool-usage.ts'
import { capacityCredits, type WindowLength } from './usage-windows.ts'

export interface PoolMeter {
  window: PoolWindow['window']
  capacityCredits: number
  usedCredits: number
  usedPercent: number
  /** Of the time of the windows, weighted; null: unknown. */
  pacePercent: number | null
  /** The next reset of one of its accounts, ms; null: unknown. */
  resetAt: number | null
  /** At this pace, ms; null: it lasts until the resets. */
  usedUpAt: number | null
}

const LENGTHS: Record<PoolWindow['window'], WindowLength> = {
  '5h': 'fiveHour',
  '7d': 'weekly',
  monthly: 'monthly',
}

/** One for each length that an account reports. Accounts that are paused, deactivated or must sign in are no part of the pool. */
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
        inPool.map((account) => shareOf(account, LENGTHS[window])),
        now,
      ),
    }
  })

const pooled = ({ accountId, planType, status, windows, credits, usageAt }: AccountView): PooledAccount => ({
  id: accountId,
  planType,
  state: { status },
  usage: { at: usageAt ?? 0, windows, credits, planType },
})

const shareOf = ({ planType, windows }: AccountView, length: WindowLength): Share => {
  const capacity = capacityCredits(planType, length)
  const window = windows[length]
  return {
    capacity,
    used: (capacity * (window?.usedPercent ?? 0)) / 100,
    resetAt: window?.resetAt ?? null,
    windowMs: (window?.windowMinutes ?? 0) * MINUTE_MS,
  }
}
