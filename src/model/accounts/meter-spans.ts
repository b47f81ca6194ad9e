/**
 * The movement of a usage meter: steps from one reading to the next, and spans between readings that include every
 * request so far.
 */
import type { MeterReading } from './meter-readings.ts'

/** The requests through Sluice that ended. */
export interface Work {
  requests: number
  tokens: number
  /** Their cost at list prices, in micro-dollars. */
  micros: number
  /** Requests whose price is not known. */
  unpriced: number
}

/** A stored reading with the requests that ended since the previous one. */
export interface StoredReading extends MeterReading, Work {
  id: number
}

export interface Step extends Work {
  /** The readings at the start and the end of the step. */
  before: StoredReading
  reading: StoredReading
  /** Percent used between them, according to the meter. */
  moved: number
  /**
   * Whether the window started over in between. The requests are then from before and after the reset, but `moved`
   * counts only from the reset.
   */
  isRestart: boolean
}

/** Steps between two readings that each include every request so far. */
export interface Span extends Work {
  /** ms since epoch */
  from: number
  at: number
  moved: number
  isRestart: boolean
  /** False for the last span if requests were still running at its end. */
  isClosed: boolean
  steps: readonly Step[]
}

export const NO_WORK: Work = Object.freeze({ requests: 0, tokens: 0, micros: 0, unpriced: 0 })

export const addWork = (a: Work, b: Work): Work => ({
  requests: a.requests + b.requests,
  tokens: a.tokens + b.tokens,
  micros: a.micros + b.micros,
  unpriced: a.unpriced + b.unpriced,
})

/** The steps between `readings` of one meter, oldest first. */
export const toSteps = (readings: readonly StoredReading[]): Step[] =>
  readings.slice(1).map((reading, index) => {
    const before = readings[index]! // the slice starts one later
    const { requests, tokens, micros, unpriced } = reading
    return { before, reading, requests, tokens, micros, unpriced, ...getMove(before, reading) }
  })

/** If the reset time moves by less than this, it is still the same reset. */
export const RESET_TOLERANCE_MS = 300_000

const getMove = (before: StoredReading, next: StoredReading): Pick<Step, 'moved' | 'isRestart'> => {
  // A different window length means that the plan changed, and the meter with it.
  if (before.windowMinutes !== next.windowMinutes) return { moved: 0, isRestart: true }
  const isLater = before.resetAt !== null && (next.resetAt ?? 0) > before.resetAt + RESET_TOLERANCE_MS
  const isOver = before.resetAt !== null && next.at >= before.resetAt
  if (isLater && (isOver || next.usedPercent < before.usedPercent)) return { moved: next.usedPercent, isRestart: true }
  if (next.usedPercent < before.usedPercent) return { moved: 0, isRestart: true }
  return { moved: next.usedPercent - before.usedPercent, isRestart: false }
}

/** A reading while requests are running ends a span only if at least this many ended for each one that is running. */
const SETTLED_PER_RUNNING = 10

export const toSpans = (steps: readonly Step[]): Span[] => {
  const spans: Span[] = []
  let open: Step[] = []
  let requests = 0
  for (const step of steps) {
    open.push(step)
    requests += step.requests
    const { running } = step.reading
    if (running > 0 && requests < SETTLED_PER_RUNNING * running) continue
    spans.push(toSpan(open, true))
    open = []
    requests = 0
  }
  return open.length > 0 ? [...spans, toSpan(open, false)] : spans
}

const toSpan = (steps: readonly Step[], isClosed: boolean): Span => ({
  ...steps.reduce<Work>(addWork, NO_WORK),
  from: steps[0]!.before.at, // never empty
  at: steps.at(-1)!.reading.at,
  moved: steps.reduce((sum, { moved }) => sum + moved, 0),
  isRestart: steps.some(({ isRestart }) => isRestart),
  isClosed,
  steps,
})
