/** Calendar days as people in a time zone have them, in milliseconds since epoch. */
import { DAY_MS } from './durations.ts'

export interface Day {
  /** YYYY-MM-DD */
  date: string
  /** ms since epoch, the first included and the second not; 23 to 25 hours apart. */
  from: number
  to: number
}

export const isZone = (zone: string): boolean => {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch {
    return false // what it is for: a RangeError says that there is no such zone
  }
}

/** The day on which `at` (ms since epoch) falls. */
export const localDate = (at: number, zone: string): string =>
  new Date(at + offsetsOf(zone)(at)).toISOString().slice(0, 10)

/** `length` days, the first of them `first` (YYYY-MM-DD). */
export const daysBetween = (first: string, length: number, zone: string): Day[] => {
  const offsetAt = offsetsOf(zone)
  const startOf = (place: number) => Date.parse(first) + place * DAY_MS
  const midnights = Array.from({ length: length + 1 }, (_, place) => midnight(startOf(place), offsetAt))
  return Array.from({ length }, (_, place) => ({
    date: new Date(startOf(place)).toISOString().slice(0, 10),
    from: midnights[place]!, // one more than days
    to: midnights[place + 1]!,
  }))
}

/** When clocks in `zone` show what clocks in UTC show at `wall` (ms since epoch); of two such times the first. */
export const startInZone = (wall: number, zone: string): number => midnight(wall, offsetsOf(zone))

/** From the first to the last of the `length` days before `first` (YYYY-MM-DD): as many hours as those days had. */
export const daysBefore = (first: string, length: number, zone: string): Pick<Day, 'from' | 'to'> => {
  const offsetAt = offsetsOf(zone)
  const end = Date.parse(first)
  return { from: midnight(end - length * DAY_MS, offsetAt), to: midnight(end, offsetAt) }
}

/**
 * When the day begins that begins at `utc` in UTC. The offset may change between the two; where clocks skip midnight itself,
 * the day begins with the change.
 */
const midnight = (utc: number, offsetAt: Offsets): number => {
  const first = utc - offsetAt(utc)
  const second = utc - offsetAt(first)
  return second < first && utc > second + offsetAt(second) ? first : second
}

/** Milliseconds that clocks are ahead of UTC at a time (ms since epoch). */
type Offsets = (at: number) => number

/** A format takes longer to make than a hundred times are to write (measured), so there is one for all times of `zone`. */
export const offsetsOf = (zone: string): Offsets => {
  if (zone === 'UTC') return () => 0
  const format = formatOf(zone)
  return (at) => {
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
    const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
    return local - Math.floor(at / 1000) * 1000
  }
}

const formatOf = (timeZone: string): Intl.DateTimeFormat =>
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
