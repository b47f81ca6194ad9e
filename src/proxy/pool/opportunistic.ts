/**
 * Which accounts requests of opportunistic keys may use, so that they spend what foreground requests leave over. Routing,
 * the routing simulator and `GET /backend-api/codex/opportunistic/admission` all use `heldForForeground`.
 */
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { type UsageWindow, usedNow } from '../../model/usage-windows.ts'
import type { Candidate } from '../policies.ts'

/** What a normal account must have left in both windows when no other account could serve foreground requests. */
const RESERVE_PERCENT = 5
/** Usage is polled every minute, and after a rejected poll in five. */
const FRESH_MS = 10 * MINUTE_MS
const JUST_USED_MS = 30 * MINUTE_MS
/** An account is behind pace when it has used this much less than the elapsed share of its week. */
const PACE_PERCENT = 5

/**
 * The ids of accounts held for foreground requests, among the `candidates` that the key may use. `able`: ids of those
 * that could serve a foreground request now. Pure.
 */
export const heldForForeground = (
  candidates: readonly Candidate[],
  { able, now }: { able: ReadonlySet<string>; now: number },
): ReadonlySet<string> => {
  const preserved = candidates.filter(({ routingPolicy }) => routingPolicy === 'preserve').length
  const held = candidates.filter((candidate) =>
    candidate.routingPolicy === 'preserve'
      ? !isAboveFloors(candidate, { isOnly: preserved === 1, now })
      : !hasReserve(candidate, now) && !isReplaceable(candidate, able),
  )
  return new Set(held.map(({ id }) => id))
}

const isReplaceable = ({ id }: Candidate, able: ReadonlySet<string>): boolean => able.size > (able.has(id) ? 1 : 0)

/** Windows that the account does not have are no limit, but one must be known. */
const hasReserve = ({ usage }: Candidate, now: number): boolean => {
  const { fiveHour = null, weekly = null, monthly = null } = usage?.windows ?? {}
  const left = [fiveHour, weekly ?? monthly].flatMap((window) => leftIn(window, now) ?? [])
  return left.length > 0 && left.every((percent) => percent > RESERVE_PERCENT)
}

const isAboveFloors = (candidate: Candidate, { isOnly, now }: { isOnly: boolean; now: number }): boolean => {
  const { usage, lastForegroundAt } = candidate
  if (!usage || now - usage.at > FRESH_MS) return false
  const { fiveHour, weekly } = usage.windows
  const [shortLeft, weeklyLeft] = [leftIn(fiveHour, now), leftIn(weekly, now)]
  if (shortLeft === null || weeklyLeft === null) return false
  const isJustUsed = now - lastForegroundAt < JUST_USED_MS
  return (
    weeklyLeft > weeklyFloor(weekly, isJustUsed, now) && shortLeft > shortFloor(fiveHour, { isOnly, isJustUsed, now })
  )
}

/** An account behind pace would leave some of its week unused, so more of it may be spent. */
const weeklyFloor = (weekly: UsageWindow | null, isJustUsed: boolean, now: number): number => {
  if (isJustUsed) return 25
  return isBehindPace(weekly, now) ? 5 : 15
}

/** A window whose reset is unknown or past is not behind. */
const isBehindPace = (window: UsageWindow | null, now: number): boolean => {
  if (window?.resetAt == null || window.resetAt <= now) return false
  const lengthMs = window.windowMinutes * MINUTE_MS
  const elapsedPercent = (100 * (lengthMs - (window.resetAt - now))) / lengthMs
  return window.usedPercent + PACE_PERCENT < elapsedPercent
}

const shortFloor = (
  window: UsageWindow | null,
  { isOnly, isJustUsed, now }: { isOnly: boolean; isJustUsed: boolean; now: number },
): number => {
  if (isJustUsed) return 30
  if (isOnly) return 25
  return (window?.resetAt ?? Number.POSITIVE_INFINITY) - now > HOUR_MS ? 20 : 10
}

const leftIn = (window: UsageWindow | null, now: number): number | null => {
  const used = usedNow(window, now)
  return used === null ? null : 100 - used
}
