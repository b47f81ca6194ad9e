/** Estimates the price of one percent of a quota: the list price of the requests that move the meter by one percent. */
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Span } from './meter-spans.ts'

/** An estimate with its standard error, in micro-dollars per percent. */
export interface PercentPrice {
  micros: number
  spread: number
  /** The typical error of a span beyond rounding, as a share of its cost, if nothing was used elsewhere. */
  noise: number
  /** The percent of the meter that the estimate is based on. */
  moved: number
}

/** The resolution of the meter in percent: 1, 0.1 or 0.01. */
export const getResolution = (percents: readonly number[]): number => {
  const isMultiple = (step: number) =>
    percents.every((percent) => Math.abs(percent / step - Math.round(percent / step)) < 1e-6)
  return isMultiple(1) ? 1 : isMultiple(0.1) ? 0.1 : 0.01
}

/**
 * Whether the span can be used for a price: it has ended, has no reset, and the prices of all its requests are known.
 */
export const isPriceable = ({ requests, micros, unpriced, isRestart, isClosed }: Span): boolean =>
  requests > 0 && micros > 0 && unpriced === 0 && !isRestart && isClosed

/** The estimate begins with the median, because most of the time nothing is used elsewhere. */
const FIRST_QUANTILE = 0.5
const ROUNDS = 20

/**
 * Whether requests here explain every movement of the meter at this price: the totals of the meter and of the requests
 * never differ by more than rounding and the error of the price. Use elsewhere would add up and show, even if each piece
 * is smaller than the meter's resolution.
 */
export const isEven = (
  spans: readonly Span[],
  { micros, spread }: Pick<PercentPrice, 'micros' | 'spread'>,
  resolution: number,
): boolean => {
  const compared = spans.filter(isComparable)
  let [excess, lowest, highest] = [0, 0, 0]
  for (const span of compared) {
    if (span.requests === 0 && span.moved > 0) return false
    excess += getExcess(span, micros)
    lowest = Math.min(lowest, excess)
    highest = Math.max(highest, excess)
  }
  const drift = (sum(compared, (span) => span.micros) / micros) * (spread / micros)
  return highest - lowest <= getMostRounding(compared, micros, resolution) + drift + 1e-9
}

const isComparable = ({ isClosed, isRestart, unpriced }: Span): boolean => isClosed && !isRestart && unpriced === 0

const getMostRounding = (spans: readonly Span[], price: number, resolution: number): number =>
  spans.reduce((most, span) => Math.max(most, getRounding(span, price, resolution)), 0)

/** Fewer spans, or spans that moved the meter by little more than its rounding, fit almost any price. */
const MIN_EVEN_SPANS = 5
const MIN_EVEN_ROUNDINGS = 10

/** The price at which the spans are even, if there is one and they are enough to tell. */
const getEvenPrice = (spans: readonly Span[], resolution: number): PercentPrice | null => {
  const compared = spans.filter(isComparable)
  const moved = sum(compared, (span) => span.moved)
  const micros = sum(compared, (span) => span.micros) / moved
  if (compared.filter(isPriceable).length < MIN_EVEN_SPANS || !(micros > 0)) return null
  const rounding = getMostRounding(compared, micros, resolution)
  const price = { micros, spread: (micros * rounding) / moved, noise: 0, moved }
  return moved >= MIN_EVEN_ROUNDINGS * rounding && isEven(compared, price, resolution) ? price : null
}

/**
 * Use elsewhere makes a percent look cheaper in some spans. So the price is the mean of the spans close to it, found by
 * repetition from the median. Null if the meter has not moved enough.
 */
export const estimatePrice = (spans: readonly Span[], resolution: number): PercentPrice | null => {
  const even = getEvenPrice(spans, resolution)
  if (even) return even
  const priceable = spans.filter(isPriceable)
  const first = getQuantile(priceable.map(toRate), FIRST_QUANTILE)
  let price: PercentPrice | null = first ? { micros: 1 / first, spread: 0, noise: 0, moved: 0 } : null
  for (let round = 0; price && round < ROUNDS; round++) {
    const next = improve(priceable, price.micros, resolution)
    const isFound = next?.micros === price.micros
    price = next
    if (isFound) break
  }
  return price && price.moved >= resolution ? price : null
}

const improve = (spans: readonly Span[], micros: number, resolution: number): PercentPrice | null => {
  const noise = getNoise(spans, micros, resolution)
  const clean = spans.filter(
    (span) => Math.abs(getExcess(span, micros)) <= getTolerance(span, { micros, noise }, resolution),
  )
  const moved = sum(clean, (span) => span.moved)
  if (moved === 0) return null
  const price = sum(clean, (span) => span.micros) / moved
  const error = Math.sqrt(sum(clean, (span) => getExcess(span, price) ** 2)) / moved
  return { micros: price, spread: price * Math.max(error, resolution / 2 / moved), noise, moved }
}

/**
 * The noise, measured only on spans that moved the meter less than expected, because use elsewhere cannot cause that.
 */
const getNoise = (spans: readonly Span[], micros: number, resolution: number): number => {
  const below = spans.filter((span) => getExcess(span, micros) < 0)
  const beyond = below.map((span) => ({
    value: Math.max(0, -getExcess(span, micros) - getRounding(span, micros, resolution)) / (span.micros / micros),
    weight: span.micros,
  }))
  return NORMAL * (getQuantile(beyond, 0.5) ?? 0)
}

/** Percent by which the meter moved more than the requests account for. Negative if it moved less. */
export const getExcess = ({ micros, moved }: Pick<Span, 'micros' | 'moved'>, price: number): number =>
  moved - micros / price

/** Percent by which a span may differ although nothing was used elsewhere. */
export const getTolerance = (
  span: Span,
  { micros, noise }: Pick<PercentPrice, 'micros' | 'noise'>,
  resolution: number,
): number => getRounding(span, micros, resolution) + (3 * noise * span.micros) / micros + 1e-9

/**
 * The rounding error of a span in percent: less than one step. With whole percents it is also less than the meter moves
 * between two polls, because spans begin and end with the poll that saw a step.
 */
const getRounding = ({ micros, requests, from, at }: Span, price: number, resolution: number): number => {
  if (resolution < 1) return resolution
  if (requests === 0) return 0
  const perPoll = Math.max(1 / requests, Math.min(1, MINUTE_MS / Math.max(1, at - from)))
  return Math.min(resolution, (micros / price) * perPoll)
}

/** The standard deviation of a normal distribution, in median absolute deviations. */
const NORMAL = 1.4826

interface Weighted {
  value: number
  weight: number
}

/** The rate of a span in percent per micro-dollar, weighted by its cost. */
const toRate = ({ micros, moved }: Span): Weighted => ({ value: moved / micros, weight: micros })

const getQuantile = (values: readonly Weighted[], quantile: number): number | null => {
  const sorted = values.toSorted((a, b) => a.value - b.value)
  const end = sum(sorted, ({ weight }) => weight) * quantile
  let reached = 0
  for (const { value, weight } of sorted) {
    reached += weight
    if (reached >= end) return value
  }
  return null
}

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0)
