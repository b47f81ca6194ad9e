/** The ticks of a time axis, at round local times. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { getOffsets } from '../../lib/zoned-days.ts'

export interface Tick {
  /** 0 to 1 along the axis. */
  place: number
  label: string
}

const STEPS_MS = [
  ...[5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 5, 7, 14, 30, 60, 90].map((days) => days * DAY_MS),
]
const MAX_TICKS = 8
/** A label closer to an end would be cut off. */
const MARGIN = 0.03

/** `from` and `to` are ms since epoch. Midnight is labelled with its date. */
export const getTicks = ({ from, to, zone }: { from: number; to: number; zone: string }): Tick[] => {
  const step = STEPS_MS.find((ms) => (to - from) / ms <= MAX_TICKS) ?? (to - from) / MAX_TICKS
  const offsetAt = getOffsets(zone)
  const first = Math.ceil((from + offsetAt(from)) / step) * step
  const ticks: Tick[] = []
  for (let local = first; local - offsetAt(from) < to; local += step) {
    const at = local - offsetAt(local - offsetAt(from))
    const place = (at - from) / (to - from)
    if (place > MARGIN && place < 1 - MARGIN) ticks.push({ place, label: getLabel(local) })
  }
  return ticks
}

/** Dates below bars of a day or more. */
export const ticksOfBars = (bars: readonly { from: number }[], zone: string): Tick[] => {
  const offsetAt = getOffsets(zone)
  const every = Math.ceil(bars.length / MAX_TICKS)
  return bars.flatMap(({ from }, n) => {
    const place = (n + 0.5) / bars.length
    const isShown = n % every === 0 && place > MARGIN && place < 1 - MARGIN
    return isShown ? [{ place, label: toDate(from + offsetAt(from)) }] : []
  })
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `local` is a local time as if it were UTC. */
const getLabel = (local: number): string => {
  if (local % DAY_MS === 0) return toDate(local)
  return new Date(local).toISOString().slice(11, 16)
}

const toDate = (local: number): string => {
  const date = new Date(local)
  return `${MONTHS[date.getUTCMonth()]} ${date.getUTCDate()}`
}
