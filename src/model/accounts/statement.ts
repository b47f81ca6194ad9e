/** Account statement: how much of a quota went to requests through Sluice, and how much was used elsewhere. */
import { DAY_MS } from '../../lib/durations.ts'
import { addWork, NO_WORK, type Span, type StoredReading, toSpans, toSteps, type Work } from './meter-spans.ts'
import {
  estimatePrice,
  getExcess,
  getResolution,
  getTolerance,
  isEven,
  isPriceable,
  type PercentPrice,
} from './percent-price.ts'

export interface Attribution {
  /** Percent by which the meter moved. */
  usedPercent: number
  here: Work & { percent: number; spread: number }
  /** Null if requests were running at the last reading. */
  elsewherePercent: number | null
  price: PercentPrice | null
  weeks: WeekPrice[]
}

export interface WeekPrice {
  /** ms since epoch */
  from: number
  price: PercentPrice | null
}

/** If the period has too little for a price of its own, the price is estimated from this long before its end. */
const PRICE_MS = 28 * DAY_MS
const ENOUGH_PERCENT = 5
const ENOUGH_SPANS = 10
export const WEEK_MS = 7 * DAY_MS
const WEEKS = 8
/** How long before the end of the period readings are needed. */
export const HISTORY_MS = WEEKS * WEEK_MS

/**
 * Splits the movement of a meter into use here and elsewhere. `readings` are of one meter until `to`, oldest first. A
 * span belongs to the period in which it ends.
 */
export const attribute = (
  readings: readonly StoredReading[],
  { from, to }: { from: number; to: number },
): Attribution => {
  const spans = toSpans(toSteps(readings))
  const resolution = getResolution(readings.map(({ usedPercent }) => usedPercent))
  const shown = spans.filter(({ at }) => at > from && at <= to)
  const own = estimatePrice(shown, resolution)
  const price =
    own && own.moved >= ENOUGH_PERCENT && shown.filter(isPriceable).length >= ENOUGH_SPANS
      ? own
      : (estimatePrice(
          spans.filter(({ at }) => at > to - PRICE_MS),
          resolution,
        ) ?? own)
  const usedPercent = shown.reduce((sum, { moved }) => sum + moved, 0)
  const percent = Math.min(usedPercent, getPercentHere(shown, price, resolution))
  const isSettled = shown.every(({ isClosed, moved }) => isClosed || moved === 0)
  return {
    usedPercent,
    here: {
      ...shown.reduce<Work>(addWork, NO_WORK),
      percent,
      spread: getSpread(shown, { percent, price, resolution }),
    },
    elsewherePercent: isSettled ? usedPercent - percent : null,
    price,
    weeks: getWeeks(spans, resolution, to),
  }
}

/** Percent used through Sluice. The rest, which no requests here account for, was used elsewhere. */
const getPercentHere = (spans: readonly Span[], price: PercentPrice | null, resolution: number): number => {
  const worked = spans.filter(({ requests }) => requests > 0)
  if (price === null) return worked.reduce((sum, { moved }) => sum + moved, 0)
  const others = worked.filter((span) => !isPriceable(span)).map((span) => getUnpricedHere(span, price))
  const isAllHere = isEven(spans, price, resolution)
  const explained = worked.filter(isPriceable).map((span) => {
    if (isAllHere) return span.moved
    const excess = getExcess(span, price.micros)
    return excess > getTolerance(span, price, resolution) ? span.moved - excess : span.moved
  })
  return [...others, ...explained].reduce((sum, percent) => sum + percent, 0)
}

/** For spans without a usable price: a request has no known price, ran before a reset, or is still running. */
const getUnpricedHere = ({ moved, micros, unpriced }: Span, price: PercentPrice): number =>
  unpriced > 0 || micros === 0 ? moved : Math.min(moved, micros / price.micros)

/** How many standard errors of the price the spread covers. */
const STANDARD_ERRORS = 4

/**
 * How far the estimate can be off: the meter's rounding and the uncertainty of the price. It does not cover use elsewhere
 * that is too small for the meter to show in each span, or that runs along with every request.
 */
const getSpread = (
  spans: readonly Span[],
  { percent, price, resolution }: { percent: number; price: PercentPrice | null; resolution: number },
): number => {
  if (!spans.some(({ requests, moved }) => requests > 0 && moved > 0)) return 0
  return resolution + (price ? (STANDARD_ERRORS * percent * price.spread) / price.micros : 0)
}

/** The calendar weeks (Monday to Sunday, UTC) up to the one with `to`, oldest first. */
const getWeeks = (spans: readonly Span[], resolution: number, to: number): WeekPrice[] => {
  const last = startOfWeek(to)
  const weeks = Array.from({ length: WEEKS }, (_, index) => last - (WEEKS - 1 - index) * WEEK_MS)
  const first = spans[0]?.at ?? to
  return weeks
    .filter((from) => from + WEEK_MS > first)
    .map((from) => ({ from, price: estimatePrice(inWeek(spans, from), resolution) }))
}

export const inWeek = (spans: readonly Span[], from: number): Span[] =>
  spans.filter(({ at }) => at >= from && at < from + WEEK_MS)

/** The first Monday after the epoch. */
const FIRST_MONDAY = 4 * DAY_MS

export const startOfWeek = (at: number): number => at - ((((at - FIRST_MONDAY) % WEEK_MS) + WEEK_MS) % WEEK_MS)
