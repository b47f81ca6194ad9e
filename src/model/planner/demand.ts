/** The expected demand per quarter of an hour, from the requests of the last 28 days. Pure. */
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import { type LocalTime, localTimes, type WorkingTime } from './working-time.ts'

export const SLOT_MS = 15 * MINUTE_MS
export const HISTORY_MS = 28 * DAY_MS
/** Fewer days of requests are no base for a plan. */
export const ENOUGH_DAYS = 14

export interface Slot {
  /** Capacity credits of five-hour windows. */
  demand: number
  requests: number
}

export interface ForecastSlot extends Slot {
  /** ms since epoch */
  start: number
  /** `history`: the same time of the week had requests; `calendar`: it had none. */
  source: 'history' | 'calendar'
}

interface History {
  /** By start of the slot; those without requests may be missing. */
  slots: ReadonlyMap<number, Slot>
  /** ms since epoch: when the first of them starts. */
  from: number
  now: number
}

const WEIGHTS = { sameSlot: 0.5, sameHour: 0.25, lastDay: 0.15, calendar: 0.1 }

/** Slots from the current one on. Slots of the history without requests count as zero. */
export const forecastDemand = (history: History, working: WorkingTime, count: number): ForecastSlot[] => {
  const first = Math.floor(history.now / SLOT_MS) * SLOT_MS
  const localAt = localTimes(working)
  const past = pastSlots(history, first).map((slot) => ({ ...slot, ...getKeys(localAt(slot.start)) }))
  const bySlot = Map.groupBy(past, ({ slotKey }) => slotKey)
  const byHour = Map.groupBy(past, ({ hourKey }) => hourKey)
  const byWork = Map.groupBy(past, ({ isWorking }) => isWorking)
  const lastDay = past.filter(({ start }) => start >= first - DAY_MS)
  return Array.from({ length: count }, (_, n) => {
    const start = first + n * SLOT_MS
    const keys = getKeys(localAt(start))
    const same = bySlot.get(keys.slotKey) ?? []
    const mix = (of: (slot: Slot) => number) =>
      WEIGHTS.sameSlot * percentile75(same.map(of)) +
      WEIGHTS.sameHour * percentile75((byHour.get(keys.hourKey) ?? []).map(of)) +
      WEIGHTS.lastDay * mean(lastDay.map(of)) +
      WEIGHTS.calendar * mean((byWork.get(keys.isWorking) ?? []).map(of))
    return {
      start,
      demand: mix(({ demand }) => demand),
      requests: mix(({ requests }) => requests),
      source: same.some(({ requests }) => requests > 0) ? 'history' : 'calendar',
    }
  })
}

const NO_DEMAND: Slot = { demand: 0, requests: 0 }

const pastSlots = ({ slots, from }: History, end: number): (Slot & { start: number })[] => {
  const first = Math.max(Math.floor(from / SLOT_MS) * SLOT_MS, end - HISTORY_MS)
  const count = Math.max(0, (end - first) / SLOT_MS)
  return Array.from({ length: count }, (_, n) => {
    const start = first + n * SLOT_MS
    return { start, ...(slots.get(start) ?? NO_DEMAND) }
  })
}

/** The same time of the week, and the same hour of days of the same kind. */
const getKeys = ({ weekday, minute, isWorkingDay, isWorking }: LocalTime) => ({
  slotKey: weekday * 1440 + Math.floor(minute / 15) * 15,
  hourKey: (isWorkingDay ? 24 : 0) + Math.floor(minute / 60),
  isWorking,
})

/** With linear interpolation; 0 without values. */
export const percentile75 = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * 0.75
  const below = sorted[Math.floor(place)] ?? 0
  const above = sorted[Math.ceil(place)] ?? 0
  return below + (above - below) * (place - Math.floor(place))
}

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
