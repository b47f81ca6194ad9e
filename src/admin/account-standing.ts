/** How an account stands at this moment, for answers that tell before from after. */
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import type { AccountStatus } from '../model/account-state.ts'
import { usedNow } from '../model/usage-windows.ts'

interface Standing {
  status: AccountStatus
  /** Percent used of the five-hour window; null: not reported. */
  primary: number | null
  /** The same of the weekly one. */
  secondary: number | null
}

/** Throws `account_not_found`. */
export const standing = (c: Ctx, id: string): Standing => {
  const account = c.env.pool.get(id)
  if (!account) throw new AppError('account_not_found')
  const now = c.env.clock.now()
  const windows = account.usage?.windows
  return {
    status: account.state.status,
    primary: usedNow(windows?.fiveHour ?? null, now),
    secondary: usedNow(windows?.weekly ?? null, now),
  }
}

/** What changed between two of them, as the answers name it. */
export const fromTo = (before: Standing, after: Standing) => ({
  primaryUsedPercentBefore: before.primary,
  primaryUsedPercentAfter: after.primary,
  secondaryUsedPercentBefore: before.secondary,
  secondaryUsedPercentAfter: after.secondary,
  accountStatusBefore: before.status,
  accountStatusAfter: after.status,
})
