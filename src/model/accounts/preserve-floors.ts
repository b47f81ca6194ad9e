/** How much of an account of the policy `preserve` must be left before requests that can wait may use it. */
import type { RoutingPolicy } from '../../../db/schema/accounts.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { getPercentLeft, type UsageSnapshot, type UsageWindow } from './usage-windows.ts'

/** Usage is polled every minute, and after a rejected poll in five. */
const FRESH_MS = 10 * MINUTE_MS
/** After a foreground request an account keeps more back for this long. */
export const JUST_USED_MS = 30 * MINUTE_MS
/** An account is behind pace when it has used this much less than the elapsed share of its week. */
const PACE_PERCENT = 5

interface Preserved {
  readonly usage: UsageSnapshot | null
  /** ms since epoch */
  readonly lastForegroundAt: number
}

/** `isOnly`: no other account has the policy. False without fresh and complete figures. */
export const isAboveFloors = (
  { usage, lastForegroundAt }: Preserved,
  { isOnly, now }: { isOnly: boolean; now: number },
): boolean => {
  if (!usage || now - usage.at > FRESH_MS) return false
  const { fiveHour, weekly } = usage.windows
  const [shortLeft, weeklyLeft] = [getPercentLeft(fiveHour, now), getPercentLeft(weekly, now)]
  if (shortLeft === null || weeklyLeft === null) return false
  const isJustUsed = now - lastForegroundAt < JUST_USED_MS
  return (
    weeklyLeft > weeklyFloor(weekly, isJustUsed, now) && shortLeft > shortFloor(fiveHour, { isOnly, isJustUsed, now })
  )
}

interface Startable extends Preserved {
  readonly routingPolicy: RoutingPolicy
}

/** Why the five-hour window of `account` cannot be started; null: it can. `all`: the accounts of the pool. */
export const windowStartRefusal = (
  account: Startable,
  all: readonly Pick<Startable, 'routingPolicy'>[],
  now: number,
): string | null => {
  if (!account.usage?.windows.fiveHour) return 'ChatGPT has reported no five-hour window for this account.'
  if (account.routingPolicy !== 'preserve') return null
  const isOnly = all.filter(({ routingPolicy }) => routingPolicy === 'preserve').length === 1
  return isAboveFloors(account, { isOnly, now })
    ? null
    : 'This account is a last resort, and too little of its quota is left.'
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
