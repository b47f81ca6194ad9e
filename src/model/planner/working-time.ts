/** Working days and hours in a time zone, for the quota planner. Pure. */
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { getOffsets, localDate, startInZone } from '../../lib/zoned-days.ts'
import type { Settings } from '../../settings/schema.ts'

export interface WorkingTime {
  zone: string
  /** 0 is Monday. */
  days: ReadonlySet<number>
  /** Minutes of the local day; an end that is not after the start is on the next day. */
  startMinute: number
  endMinute: number
}

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const

export const getWorkingTime = (
  settings: Pick<
    Settings,
    'plannerZone' | 'plannerWorkingDays' | 'plannerWorkingHoursStart' | 'plannerWorkingHoursEnd'
  >,
): WorkingTime => ({
  zone: settings.plannerZone,
  days: new Set(dayNumbers(settings.plannerWorkingDays)),
  startMinute: getMinute(settings.plannerWorkingHoursStart),
  endMinute: getMinute(settings.plannerWorkingHoursEnd),
})

/** Parses a list of days like `mon tue`. */
export const dayNumbers = (text: string): number[] =>
  WEEKDAYS.flatMap((name, day) => (text.split(' ').includes(name) ? day : []))

const getMinute = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))

export interface LocalTime {
  /** 0 is Monday. */
  weekday: number
  minute: number
  isWorkingDay: boolean
  isWorking: boolean
}

/** What clocks and calendars show at a time (ms since epoch). */
export const localTimes = (working: WorkingTime): ((at: number) => LocalTime) => {
  const offsetAt = getOffsets(working.zone)
  return (at) => {
    const local = at + offsetAt(at)
    const day = Math.floor(local / DAY_MS)
    const weekday = (((day + EPOCH_WEEKDAY) % 7) + 7) % 7
    const minute = Math.floor((local - day * DAY_MS) / MINUTE_MS)
    return {
      weekday,
      minute,
      isWorkingDay: working.days.has(weekday),
      isWorking: isWorkingAt(working, weekday, minute),
    }
  }
}

const DAY_MS = 24 * HOUR_MS
/** 1 January 1970 was a Thursday. */
const EPOCH_WEEKDAY = 3

const isWorkingAt = ({ days, startMinute, endMinute }: WorkingTime, weekday: number, minute: number): boolean => {
  if (endMinute > startMinute) return days.has(weekday) && minute >= startMinute && minute < endMinute
  const isLate = days.has(weekday) && minute >= startMinute
  return isLate || (days.has((weekday + 6) % 7) && minute < endMinute)
}

/** The working day that the time belongs to by its date: YYYY-MM-DD, and when its work starts and ends (ms). */
export const getWorkingDay = (working: WorkingTime, at: number): { date: string; from: number; to: number } => {
  const date = localDate(at, working.zone)
  const wall = Date.parse(date)
  const from = startInZone(wall + working.startMinute * MINUTE_MS, working.zone)
  const endDay = working.endMinute > working.startMinute ? wall : wall + DAY_MS
  return { date, from, to: startInZone(endDay + working.endMinute * MINUTE_MS, working.zone) }
}
