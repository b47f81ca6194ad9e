/** Quiet hours of a channel: alerts wait until they end. */
import type { QuietHours } from '../../../db/schema/alerts.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import { getOffsets, startInZone } from '../../lib/zoned-days.ts'

/** When the quiet hours at `now` end (ms since epoch); null: there are none now. */
export const quietUntil = (quiet: QuietHours | null, now: number): number | null => {
  if (quiet === null) return null
  const wall = now + getOffsets(quiet.timezone)(now)
  const midnight = wall - (wall % DAY_MS)
  const [from, to] = [minutesOf(quiet.from), minutesOf(quiet.to)]
  const minute = Math.floor((wall - midnight) / MINUTE_MS)
  const isOvernight = to < from
  const isQuiet = isOvernight ? minute >= from || minute < to : minute >= from && minute < to
  if (!isQuiet) return null
  const day = isOvernight && minute >= from ? midnight + DAY_MS : midnight
  return startInZone(day + to * MINUTE_MS, quiet.timezone)
}

const minutesOf = (time: string): number => {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}
