/** The expected demand of the next hours, and what the windows can serve of it, by replay. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { creditRates, DEMAND, firstArrival, LEAST_UNITS, UNITS } from '../../model/log/request-units.ts'
import { ENOUGH_DAYS, type ForecastSlot, forecastDemand, HISTORY_MS, SLOT_MS } from '../../model/planner/demand.ts'
import { getWorkingTime } from '../../model/planner/working-time.ts'
import { readSettings } from '../../settings/store.ts'
import { type Arrival, Replay, type ReplayWorld } from './simulate.ts'
import { storedAccounts, storedPolicy } from './stored-world.ts'

export interface Forecast {
  generatedAt: string
  horizonHours: number
  slotSeconds: number
  /** Whether the log covers at least 14 days; otherwise nothing is planned. */
  sufficient: boolean
  coveredDays: number
  totalDemandUnits: number
  /** ISO 8601; null: no demand is expected. */
  peakSlotStart: string | null
  peakDemandUnits: number
  /** Credits: demand that is rejected, and credits of five-hour windows that are unused when they end. */
  simulation: { unmetDemand: number; wastedCapacity: number }
  slots: ForecastSlotView[]
}

interface ForecastSlotView {
  slotStart: string
  demandUnits: number
  /** Credits left in the windows when the slot begins. */
  servableUnits: number
  requestCount: number
  source: ForecastSlot['source']
}

export interface ForecastQuestion {
  horizonHours: number
  /** ms since epoch */
  now: number
}

export const forecast = async (db: Db, { horizonHours, now }: ForecastQuestion): Promise<Forecast> => {
  const { slots, world, coveredDays } = await expectedWorld(db, { horizonHours, now })
  const { rejectedUnits, servable, wasted } = replaySlots(world, slots)
  const peak = slots.reduce<ForecastSlot | null>(
    (best, slot) => (slot.demand > (best?.demand ?? 0) ? slot : best),
    null,
  )
  return {
    generatedAt: iso(now),
    horizonHours,
    slotSeconds: SLOT_MS / 1000,
    sufficient: coveredDays >= ENOUGH_DAYS,
    coveredDays: Math.floor(coveredDays * 10) / 10,
    totalDemandUnits: rounded(slots.reduce((sum, { demand }) => sum + demand, 0)),
    peakSlotStart: peak && iso(peak.start),
    peakDemandUnits: rounded(peak?.demand ?? 0),
    simulation: { unmetDemand: rounded(rejectedUnits), wastedCapacity: rounded(wasted) },
    slots: slots.map(({ start, demand, requests: count, source }, n) => ({
      slotStart: iso(start),
      demandUnits: rounded(demand),
      servableUnits: rounded(servable[n] ?? 0),
      requestCount: rounded(count),
      source,
    })),
  }
}

export interface ExpectedWorld {
  slots: ForecastSlot[]
  world: ReplayWorld
  coveredDays: number
}

/** The accounts as they are now, and the expected requests. */
export const expectedWorld = async (db: Db, { horizonHours, now }: ForecastQuestion): Promise<ExpectedWorld> => {
  const since = now - HISTORY_MS
  const from = (await firstArrival(db, since)) ?? now
  const rates = await creditRates(db, since, now)
  const rows = await db.all<{ slot: number; units: number; count: number }>(sql`
    SELECT ${requests.startedAt} / ${SLOT_MS} * ${SLOT_MS} AS slot, sum(coalesce(${UNITS}, ${LEAST_UNITS})) AS units,
      count(*) AS count
    FROM ${requests} WHERE ${requests.startedAt} >= ${since} AND ${requests.startedAt} < ${now} AND ${DEMAND}
    GROUP BY slot`)
  const history = new Map(
    rows.map(({ slot, units, count }) => [slot, { demand: units * rates.short, requests: count }]),
  )
  const working = getWorkingTime((await readSettings(db)).values)
  const slots = forecastDemand({ slots: history, from, now }, working, (horizonHours * HOUR_MS) / SLOT_MS)
  const arrivals = arrivalsIn(slots, { now, longPerShort: rates.long / rates.short })
  const accounts = await storedAccounts(db, { at: now, asOf: 'now' })
  const world: ReplayWorld = {
    accounts,
    arrivals,
    from: now,
    to: getEnd(slots, now),
    ...(await storedPolicy(db, rates)),
  }
  return { slots, world, coveredDays: (now - from) / DAY_MS }
}

const getEnd = (slots: readonly ForecastSlot[], now: number): number => (slots.at(-1)?.start ?? now) + SLOT_MS

/** More would only take longer. */
const MAX_PER_SLOT = 8
const REQUEST_MS = 20_000

/**
 * The demand of each slot in equal requests at equal distances. What has passed of the current slot is left out, and so
 * are times of the week without requests: the little that is expected then would start windows too early.
 */
const arrivalsIn = (
  slots: readonly ForecastSlot[],
  { now, longPerShort }: { now: number; longPerShort: number },
): Arrival[] =>
  slots.flatMap(({ start, demand, requests: expected, source }) => {
    const count = Math.min(MAX_PER_SLOT, Math.max(1, Math.round(expected)))
    const credits = demand / count
    const times = Array.from({ length: count }, (_, n) => start + Math.floor(((n + 0.5) * SLOT_MS) / count))
    return source === 'calendar'
      ? []
      : times
          .filter((at) => at >= now)
          .map((at) => ({
            at,
            durationMs: REQUEST_MS,
            conversation: null,
            model: null,
            key: null,
            short: credits,
            long: credits * longPerShort,
          }))
  })

export interface ReplayedSlots {
  /** Credits served per slot. */
  served: number[]
  /** Credits left at the start of each slot. */
  servable: number[]
  rejectedUnits: number
  wasted: number
}

/** Replays the world slot by slot. Draws depend on the request alone, so that worlds can be compared. */
export const replaySlots = (world: ReplayWorld, slots: readonly ForecastSlot[]): ReplayedSlots => {
  const draw = { request: 0, count: 0 }
  const replay = new Replay(world, () => fraction(draw.request * 1000 + draw.count++))
  const result: ReplayedSlots = { served: [], servable: [], rejectedUnits: 0, wasted: 0 }
  let next = 0
  for (const { start } of slots) {
    let served = 0
    result.servable.push(replay.creditsLeft(Math.max(start, world.from)))
    for (
      let arrival = world.arrivals[next];
      arrival && arrival.at < start + SLOT_MS;
      arrival = world.arrivals[++next]
    ) {
      draw.request = next
      draw.count = 0
      if (replay.arrive(arrival) === null) result.rejectedUnits += arrival.short
      else served += arrival.short
    }
    result.served.push(served)
  }
  result.wasted = replay.end().fiveHour.unused
  return result
}

/** The fractional parts of the multiples of the golden ratio spread evenly over [0, 1). */
const fraction = (n: number): number => (n * 0.618_033_988_749_894_9) % 1

const rounded = (value: number): number => Math.round(value * 100) / 100
