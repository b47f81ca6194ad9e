/** Calendar days as people in a time zone have them, in milliseconds since epoch. */

export interface Day {
  /** YYYY-MM-DD */
  date: string
  /** ms since epoch, the first included and the second not; 23 to 25 hours apart. */
  from: number
  to: number
}

const DAY_MS = 86_400_000

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
  new Date(at + offsetAt(at, zone)).toISOString().slice(0, 10)

/** `length` days, the first of them `first` (YYYY-MM-DD). */
export const daysBetween = (first: string, length: number, zone: string): Day[] =>
  Array.from({ length }, (_, place) => {
    const start = Date.parse(first) + place * DAY_MS
    return {
      date: new Date(start).toISOString().slice(0, 10),
      from: midnight(start, zone),
      to: midnight(start + DAY_MS, zone),
    }
  })

/** When the day begins that begins at `utc` in UTC. The offset may change between the two. */
const midnight = (utc: number, zone: string): number => {
  const first = utc - offsetAt(utc, zone)
  return utc - offsetAt(first, zone)
}

/** Milliseconds that clocks in `zone` are ahead of UTC. */
const offsetAt = (at: number, zone: string): number => {
  if (zone === 'UTC') return 0
  const parts = new Map(
    formatOf(zone)
      .formatToParts(at)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
  const local = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  return local - Math.floor(at / 1000) * 1000
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
