/** Readings of an account's usage meters, and the check whether a reading is new. */
import type { MeterWindow } from '../../../db/schema/meter.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import type { UsageSnapshot, UsageWindow, WindowLength } from './usage-windows.ts'

export { METER_WINDOWS, type MeterWindow } from '../../../db/schema/meter.ts'

export interface MeterReading {
  window: MeterWindow
  /** When ChatGPT reported it, ms since epoch. */
  at: number
  usedPercent: number
  windowMinutes: number
  /** ms since epoch */
  resetAt: number | null
  /** The number of requests that the meter may not fully include yet: they were running, or had just ended. */
  running: number
}

/** Assumed: the meter counts a request at most this long after its end. */
export const METER_DELAY_MS = 30_000

export const METER_LENGTHS = {
  five_hour: 'fiveHour',
  weekly: 'weekly',
  monthly: 'monthly',
} as const satisfies Record<MeterWindow, WindowLength>

/** The readings in a snapshot, without windows that were not reported. */
export const toReadings = ({ at, windows }: UsageSnapshot, running: number): MeterReading[] =>
  METER_WINDOWS_WITH_LENGTH.flatMap(([window, length]) => {
    const meter: UsageWindow | null = windows[length]
    return meter ? [{ window, at, running, ...meter }] : []
  })

const METER_WINDOWS_WITH_LENGTH = Object.entries(METER_LENGTHS) as [MeterWindow, WindowLength][] // as: its entries

/**
 * Whether the reading must be stored. While requests are running, a meter with decimals moves with every response, so
 * changes within one percent are stored at most once a minute. No requests are lost: they are added to the next
 * reading.
 */
export const isNewReading = (
  last: Omit<MeterReading, 'window'> | null,
  next: Omit<MeterReading, 'window'>,
): boolean => {
  if (last === null || last.windowMinutes !== next.windowMinutes || isResetMoved(last, next)) return true
  if (last.running > 0 && next.running === 0) return true // the meter now includes every earlier request
  if (last.usedPercent === next.usedPercent) return false
  const isSameStep = Math.floor(last.usedPercent) === Math.floor(next.usedPercent)
  return !(isSameStep && last.running > 0 && next.at - last.at < MINUTE_MS)
}

/**
 * Ignores small differences, because reports give slightly different times for the same reset. The reset of an unused
 * window always moves.
 */
const isResetMoved = (
  last: Pick<MeterReading, 'usedPercent' | 'resetAt'>,
  next: Pick<MeterReading, 'usedPercent' | 'resetAt'>,
): boolean => {
  if (last.resetAt === null || next.resetAt === null) return last.resetAt === null && next.resetAt !== null
  if (last.usedPercent === 0 && next.usedPercent === 0) return false
  return Math.abs(last.resetAt - next.resetAt) >= MINUTE_MS
}
