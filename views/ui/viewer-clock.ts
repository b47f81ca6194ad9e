/** The viewer's time zone and 12- or 24-hour format. */
import { createContext } from 'hono/jsx'

export interface ViewerClock {
  /** IANA name. */
  zone: string
  hours: 12 | 24
  /** False until the browser has reported a zone: times are then in UTC and say so. */
  isKnown: boolean
  /** The parts of a time (ms since epoch) in the zone, with leading zeros. */
  getParts: (at: number) => Readonly<Record<Part, string>>
}

type Part = 'year' | 'month' | 'day' | 'hour' | 'minute' | 'second' | 'weekday'

/** `zone` must be known to this runtime. Creating a format is slow, so one serves all times of a page. */
export const createClock = (zone: string | null, hours: 12 | 24 = 24): ViewerClock => {
  let format: Intl.DateTimeFormat | null = null
  return {
    zone: zone ?? 'UTC',
    hours,
    isKnown: zone !== null,
    getParts(at) {
      format ??= new Intl.DateTimeFormat('en', {
        timeZone: zone ?? 'UTC',
        hourCycle: 'h23',
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
        weekday: 'short',
      })
      // as: the options above request all these parts
      return Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value])) as Record<
        Part,
        string
      >
    },
  }
}

/** Provided around every page and fragment; see `src/http/viewer-clock.ts`. */
export const ViewerClockContext = createContext<ViewerClock>(createClock(null))
