/** When Sluice starts an account's five-hour window: at a confirmed reset, or at set hours. Pure. */
import { DAY_MS, MINUTE_MS } from '../lib/durations.ts'
import { localDate, startInZone } from '../lib/zoned-days.ts'
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
  const passed = hours.flatMap((hour) => {
    const at = lastTime(hour, zone, now)
    return now - at < LATE_MS ? at : []
  })
  return passed.length > 0 ? Math.max(...passed) : null
}

/** When clocks in `zone` last showed `hour`. */
const lastTime = (hour: string, zone: string, now: number): number => {
  const on = (date: string) => startInZone(Date.parse(`${date}T${hour}:00Z`), zone)
  const today = on(localDate(now, zone))
  return today <= now ? today : on(localDate(now - DAY_MS, zone))
}
