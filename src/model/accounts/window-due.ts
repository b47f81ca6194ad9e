/** When Sluice starts an account's five-hour window: at a confirmed reset, or at set hours. Pure. */
import { WEEKDAYS } from '../../../db/schema/automations.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { latestSlot } from '../automations/schedule.ts'
import { isUnstarted, type UsageSnapshot, type UsageWindow } from './usage-windows.ts'

/** After a restart, hours that have just passed still count. */
const LATE_MS = 10 * MINUTE_MS
/** The upstream moves the reset of an unused window with the time, and others by a second or two. */
const MOVED_MS = MINUTE_MS

/**
 * When the window was reset (ms), or null. A reset needs 0 % used and a later next reset, and the old reset must have passed
 * or the percentage must have been above 0. A lower percentage alone is a correction by ChatGPT.
 */
export const confirmedReset = (before: UsageWindow | null, after: UsageWindow | null, now: number): number | null => {
  if (!before || !after || before.windowMinutes !== after.windowMinutes) return null
  if (before.resetAt === null || after.resetAt === null || after.usedPercent !== 0) return null
  const isLater = after.resetAt - before.resetAt >= MOVED_MS
  return isLater && (before.resetAt <= now || before.usedPercent > 0) ? before.resetAt : null
}

/** The last of the `hours` (HH:MM) that has just passed in `zone` (ms), if the window has not started; null: none. */
export const dueHour = (
  usage: UsageSnapshot | null,
  { hours, zone }: { hours: readonly string[]; zone: string },
  now: number,
): number | null => {
  if (!isUnstarted(usage, now)) return null
  const passed = hours.flatMap((time) => {
    const at = latestSlot({ time, zone, days: WEEKDAYS }, now)
    return at !== null && now - at < LATE_MS ? at : []
  })
  return passed.length > 0 ? Math.max(...passed) : null
}
