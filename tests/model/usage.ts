/** Usage values for tests. */
import type { UsageSnapshot, UsageWindow } from '../../src/model/accounts/usage-windows.ts'

export const AT = Date.UTC(2026, 10, 20, 12)

/** A five-hour window that resets in a minute, by default. */
export const aWindow = (
  usedPercent: number,
  windowMinutes = 300,
  resetAt: number | null = AT + 60_000,
): UsageWindow => ({
  usedPercent,
  windowMinutes,
  resetAt,
})

/** Without any window but `windows`. */
export const aSnapshot = (
  windows: Partial<UsageSnapshot['windows']>,
  rest: Partial<UsageSnapshot> = {},
): UsageSnapshot => ({
  at: AT,
  windows: { fiveHour: null, weekly: null, monthly: null, ...windows },
  credits: null,
  planType: null,
  ...rest,
})
