/** When an automation runs: a local time on chosen weekdays. Pure. */
import { createHash } from 'node:crypto'
import { type RunAccount, WEEKDAYS, type Weekday } from '../../../db/schema/automations.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { isZone, localDate, startInZone } from '../../lib/zoned-days.ts'

export const SERVER_ZONE = 'server_default'

/** A time that was missed by more than this is skipped. */
export const LATE_MS = HOUR_MS

export interface Schedule {
  /** HH:MM */
  time: string
  /** IANA name. */
  zone: string
  days: readonly Weekday[]
}

/** The time zone of the machine, or of the environment variable TZ. */
export const serverZone = (): string => new Intl.DateTimeFormat().resolvedOptions().timeZone

/** `zone` of a row as an IANA name. */
export const namedZone = (zone: string): string => (zone === SERVER_ZONE ? serverZone() : zone)

/** The last scheduled time up to `now`; null if there is none. All times are ms since epoch. */
export const latestSlot = (schedule: Schedule, now: number): number | null =>
  slotsAround(schedule, now, [0, -1, -2, -3, -4, -5, -6, -7]).find((at) => at <= now) ?? null

/** The first scheduled time after `now`; null if there is none. */
export const nextSlot = (schedule: Schedule, now: number): number | null =>
  slotsAround(schedule, now, [0, 1, 2, 3, 4, 5, 6, 7]).find((at) => at > now) ?? null

/** Lazily, because each needs the time zone database. `places` are days from the local date of `now`. */
const slotsAround = (schedule: Schedule, now: number, places: readonly number[]): IteratorObject<number> => {
  const { time, zone, days } = schedule
  if (!isZone(zone)) return [].values()
  const today = Date.parse(localDate(now, zone))
  return places
    .values()
    .map((place) => today + place * DAY_MS)
    .filter((midnight) => days.includes(getWeekday(midnight)))
    .map((midnight) => startInZone(midnight + toMinutes(time) * MINUTE_MS, zone))
}

const toMinutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3))

/** 1970-01-01 was a Thursday. `midnight` in UTC. */
const getWeekday = (midnight: number): Weekday => {
  const place = (Math.floor(midnight / DAY_MS) + 3) % 7
  return WEEKDAYS[(place + 7) % 7] ?? 'mon' // the place is 0 to 6
}

/**
 * The accounts of a run with the time of each: the first at `start`, the others at offsets within `spreadMinutes` that
 * depend on `seed` alone.
 */
export const planAccounts = (
  ids: readonly string[],
  { seed, start, spreadMinutes }: { seed: string; start: number; spreadMinutes: number },
): RunAccount[] =>
  ids
    .map((accountId, index) => ({
      accountId,
      status: 'pending' as const,
      scheduledFor:
        index === 0 ? start : start + Math.floor(fraction(`${seed} ${accountId}`) * spreadMinutes * MINUTE_MS),
      startedAt: null,
      finishedAt: null,
      errorCode: null,
      errorMessage: null,
    }))
    .toSorted((a, b) => a.scheduledFor - b.scheduledFor)

/** In [0, 1), the same for the same text. */
const fraction = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE() / 2 ** 32
