/** Caps on the use of an account: the rest of its quota is reserved, for its owner if so set. */
import { nextReset, usedNow } from '../../model/accounts/usage-windows.ts'
import { type Candidate, longWindow } from './policies.ts'

/**
 * When the caps that the account has reached end (ms, null: unknown); undefined: it is not reserved for a key of this
 * owner. A cap holds even when no other account is left.
 */
export const reservedUntil = (
  candidate: Candidate,
  keyOwnerId: string | null | undefined,
  now: number,
): number | null | undefined => {
  const { usage, maxUsedPercentPrimary, maxUsedPercentSecondary, exemptOwnerId } = candidate
  if (maxUsedPercentPrimary === null && maxUsedPercentSecondary === null) return undefined
  if (exemptOwnerId !== null && exemptOwnerId === keyOwnerId) return undefined
  const reached = [
    { window: usage?.windows.fiveHour ?? null, cap: maxUsedPercentPrimary },
    { window: longWindow(usage), cap: maxUsedPercentSecondary },
  ].filter(({ window, cap }) => cap !== null && (usedNow(window, now) ?? 0) >= cap)
  if (reached.length === 0) return undefined
  const resets = reached.map(({ window }) => nextReset(window, now))
  return resets.some((reset) => reset === null) ? null : Math.max(...resets.map(Number))
}
