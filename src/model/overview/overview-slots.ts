/** The periods of the overview, and how each one is divided into slots. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'

export const PERIODS = ['1h', '24h', '7d', '30d'] as const
export type Period = (typeof PERIODS)[number]

export interface Slicing {
  slotMs: number
  /** Slots of the period; the last one is still running. */
  slots: number
  /** The same number of slots before the period is read for comparison. */
  hasBefore: boolean
}

export const SLOT_MS = 30 * MINUTE_MS
export const SLOTS_A_DAY = DAY_MS / SLOT_MS

/** Slots of an hour or more are read from the hourly totals. */
export const SLICINGS: Record<Period, Slicing> = {
  '1h': { slotMs: MINUTE_MS, slots: 60, hasBefore: true },
  '24h': { slotMs: SLOT_MS, slots: SLOTS_A_DAY, hasBefore: true },
  '7d': { slotMs: 3 * HOUR_MS, slots: 56, hasBefore: true },
  '30d': { slotMs: 12 * HOUR_MS, slots: 60, hasBefore: true },
}

/** For longer periods on the first day: half an hour after the first request, half-hour slots would show one bar. */
export const FIRST_DAY: Slicing = { slotMs: 5 * MINUTE_MS, slots: DAY_MS / (5 * MINUTE_MS), hasBefore: false }

/** `firstAt`: the first known request (ms since epoch); null: none yet. */
export const getSlicing = (period: Period, firstAt: number | null, now: number): Slicing =>
  period !== '1h' && (firstAt === null || now - firstAt < DAY_MS - FIRST_DAY.slotMs) ? FIRST_DAY : SLICINGS[period]
