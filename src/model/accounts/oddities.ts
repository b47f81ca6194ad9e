/**
 * Finds unexpected behavior of a usage meter: jumps without requests, moved resets, short windows, and price changes.
 */
import type { MeterWindow } from '../../../db/schema/meter.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { windowName } from './account-words.ts'
import { RESET_TOLERANCE_MS, type Span, type Step } from './meter-spans.ts'
import { estimatePrice, isPriceable, type PercentPrice } from './percent-price.ts'
import { inWeek, startOfWeek, WEEK_MS } from './statement.ts'

export const ODDITY_KINDS = ['jump', 'reset_moved', 'short_window', 'price_doubled', 'price_halved'] as const
export type OddityKind = (typeof ODDITY_KINDS)[number]

export interface Oddity {
  /** The time of the reading that showed it, ms since epoch. */
  at: number
  kind: OddityKind
  window: MeterWindow
  /** A description in one or two sentences. */
  text: string
}

interface Meter {
  window: MeterWindow
  spans: readonly Span[]
  resolution: number
  /** When reset credits were used on the account, ms since epoch. */
  resets: readonly number[]
}

/**
 * The oddities of a meter, oldest first. Their time and text stay the same when readings are added, so that each is
 * recorded once.
 */
export const findOddities = (meter: Meter): Oddity[] => {
  const steps = meter.spans.flatMap((span) => span.steps)
  const price = estimatePrice(meter.spans, meter.resolution)
  return [
    ...meter.spans.flatMap((span) => findJump(meter, span, price)),
    ...steps.flatMap((step) => findReset(meter, step)),
    ...findPriceChanges(meter),
  ].toSorted((a, b) => a.at - b.at)
}

/**
 * A rise of this many percent between two polls is a jump. For the 5-hour window it is higher, because a few messages
 * elsewhere can use several percent.
 */
const JUMP_PERCENT: Record<MeterWindow, number> = { five_hour: 10, weekly: 2, monthly: 2 }

/** Finds jumps, even if a few requests ran: a meter in whole percents shows small requests only at its next step. */
const findJump = ({ window }: Meter, span: Span, price: PercentPrice | null): Oddity[] => {
  const { requests, isRestart, isClosed, moved, steps, from, at } = span
  const first = steps[0]?.before
  const last = steps.at(-1)?.reading
  const explained = requests === 0 ? 0 : price && isPriceable(span) ? span.micros / price.micros : moved
  const rest = moved - explained
  if (!first || !last || isRestart || !isClosed || rest < JUMP_PERCENT[window] || rest < moved / 2) return []
  const range = `from ${percentText(first.usedPercent)} to ${percentText(last.usedPercent)}`
  const why =
    requests === 0 ? ' without a request through Sluice' : ', much more than the requests through Sluice account for'
  const text = `The ${windowName(window)} meter rose ${range} within ${spanText(at - from)}${why}.`
  return [{ at, kind: 'jump', window, text }]
}

const findReset = (meter: Meter, { before, reading, isRestart }: Step): Oddity[] => {
  const { window, resets } = meter
  const { at } = reading
  if (before.resetAt === null || reading.resetAt === null || before.windowMinutes !== reading.windowMinutes) return []
  if (before.usedPercent === 0) return [] // its reset moves along until it starts
  if (resets.some((used) => used >= before.at - MINUTE_MS && used <= at)) return []
  const shift = reading.resetAt - before.resetAt
  const early = before.resetAt - at
  const name = windowName(window)
  if (isRestart && shift <= RESET_TOLERANCE_MS) return [] // only a lower figure
  if (isRestart && early > RESET_TOLERANCE_MS) {
    const text = `The ${name} window started over ${spanText(early)} before its announced reset.`
    return [{ at, kind: 'short_window', window, text }]
  }
  if (isRestart) {
    const missing = reading.windowMinutes * MINUTE_MS - shift
    if (missing <= RESET_TOLERANCE_MS || reading.usedPercent === 0) return []
    const text = `The new ${name} window ends ${spanText(missing)} earlier than its announced length.`
    return [{ at, kind: 'short_window', window, text }]
  }
  if (Math.abs(shift) <= RESET_TOLERANCE_MS) return []
  const text = `The reset of the ${name} window moved ${spanText(Math.abs(shift))} ${shift > 0 ? 'later' : 'earlier'}.`
  return [{ at, kind: 'reset_moved', window, text }]
}

/** A week's price is compared with the previous week's after the meter has moved by this many percent. */
const ENOUGH_PERCENT = 5

const findPriceChanges = ({ window, spans, resolution }: Meter): Oddity[] => {
  const first = spans[0] && startOfWeek(spans[0].at)
  const last = spans.at(-1)?.at
  // A price change also shows in the longer windows, so the 5-hour window is not checked.
  if (first === undefined || last === undefined || window === 'five_hour') return []
  const found: Oddity[] = []
  for (let from = first + WEEK_MS; from <= last; from += WEEK_MS) {
    const before = estimatePrice(inWeek(spans, from - WEEK_MS), resolution)
    const now = firstPrice(inWeek(spans, from), resolution)
    if (!before || !now || before.moved < ENOUGH_PERCENT) continue
    const ratio = now.price.micros / before.micros
    if (ratio < 2 && ratio > 0.5) continue
    const [kind, size] =
      ratio >= 2 ? (['price_doubled', 'at least twice'] as const) : (['price_halved', 'at most half'] as const)
    const text = `One percent of the ${windowName(window)} quota is worth about ${dollars(now.price)} of requests at list prices, ${size} the ${dollars(before)} of the week before.`
    found.push({ at: now.at, kind, window, text })
  }
  return found
}

/** The first price estimate of a week, made as soon as the meter has moved enough. */
const firstPrice = (spans: readonly Span[], resolution: number): { at: number; price: PercentPrice } | null => {
  let moved = 0
  let enough = ENOUGH_PERCENT
  for (const [index, span] of spans.entries()) {
    if (span.requests > 0) moved += span.moved
    if (moved < enough) continue
    const price = estimatePrice(spans.slice(0, index + 1), resolution)
    if (price && price.moved >= ENOUGH_PERCENT) return { at: span.at, price }
    enough *= 2 // an estimate after every span would be slow
  }
  return null
}

const dollars = ({ micros }: PercentPrice): string => `$${(micros / 1e6).toFixed(2)}`

export const percentText = (percent: number): string => `${percent.toFixed(1)} %`

const spanText = (ms: number): string => {
  const minutes = Math.max(1, Math.round(ms / MINUTE_MS))
  if (ms >= DAY_MS) return `${Math.floor(ms / DAY_MS)} d ${Math.round((ms % DAY_MS) / HOUR_MS)} h`
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
