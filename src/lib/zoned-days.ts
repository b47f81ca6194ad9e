/** Calendar days in a time zone, in ms since epoch. */
import { DAY_MS, HOUR_MS } from './durations.ts'

export interface Day {
  /** YYYY-MM-DD */
  date: string
  /** ms since epoch, end excluded; 23 to 25 hours apart. */
  from: number
  to: number
}

/** A check takes milliseconds, and settings, which have time zones, are checked each time they are read. */
const zones = new Set<string>()
/** About 600 names exist. Each can be written in upper or lower case. */
const MAX_ZONES = 1000

export const isZone = (zone: string): boolean => {
  if (zones.has(zone)) return true
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    if (zones.size < MAX_ZONES) zones.add(zone)
    return true
  } catch {
    return false // expected: a RangeError means an unknown zone
  }
}

/** The local date at `at` (ms since epoch). */
export const localDate = (at: number, zone: string): string =>
  new Date(at + getOffsets(zone)(at)).toISOString().slice(0, 10)

/** `length` days starting with `first` (YYYY-MM-DD). */
export const daysBetween = (first: string, length: number, zone: string): Day[] => {
  const offsetAt = getOffsets(zone)
  const getStart = (place: number) => Date.parse(first) + place * DAY_MS
  const midnights = Array.from({ length: length + 1 }, (_, place) => wallTime(getStart(place), offsetAt))
  return Array.from({ length }, (_, place) => ({
    date: new Date(getStart(place)).toISOString().slice(0, 10),
    from: midnights[place]!, // there is one more midnight than days
    to: midnights[place + 1]!,
  }))
}

/**
 * When clocks in `zone` show what UTC clocks show at `wall` (ms since epoch): the first of two such times. Where clocks
 * skip the time, the end of the gap.
 */
export const startInZone = (wall: number, zone: string): number => wallTime(wall, getOffsets(zone))

/** The span of the `length` days before `first` (YYYY-MM-DD). */
export const daysBefore = (first: string, length: number, zone: string): Pick<Day, 'from' | 'to'> => {
  const offsetAt = getOffsets(zone)
  const end = Date.parse(first)
  return { from: wallTime(end - length * DAY_MS, offsetAt), to: wallTime(end, offsetAt) }
}

/** No offset from UTC is larger: -12 to +14 hours. */
const MAX_OFFSET_MS = 15 * HOUR_MS

const wallTime = (wall: number, offsetAt: Offsets): number => {
  const [from, to] = [wall - MAX_OFFSET_MS, wall + MAX_OFFSET_MS]
  const [before, after] = [offsetAt(from), offsetAt(to)]
  if (before === after) return wall - before
  const shown = [wall - before, wall - after].filter((at) => at + offsetAt(at) === wall)
  return shown.length > 0 ? Math.min(...shown) : changeBetween(from, to, offsetAt)
}

/** The first time with another offset than at `from`. */
const changeBetween = (from: number, to: number, offsetAt: Offsets): number => {
  const before = offsetAt(from)
  let [last, first] = [from, to]
  while (first - last > 1) {
    const middle = Math.floor((last + first) / 2)
    if (offsetAt(middle) === before) last = middle
    else first = middle
  }
  return first
}

/** Offset from UTC at a time, in ms. */
type Offsets = (at: number) => number

/** Cached: creating a format takes longer than a hundred uses (Bun 1.4.5). */
export const getOffsets = (zone: string): Offsets => {
  if (zone === 'UTC') return () => 0
  const format = getFormat(zone)
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
    const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
    return local - Math.floor(at / 1000) * 1000
  }
}

const getFormat = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
