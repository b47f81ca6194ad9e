/** What a report adds up, whatever it is read from. */
import type { Dimension } from './request-spans.ts'

export interface Sums {
  requests: number
  errors: number
  cancelled: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costUsd: number
  /** Requests whose model has no price: they are missing from the cost. */
  unpriced: number
}

export const NOTHING: Sums = Object.freeze({
  requests: 0,
  errors: 0,
  cancelled: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  unpriced: 0,
})

/** Written out, because a report goes through it a hundred thousand times. */
export const addTo = (sums: Sums, row: Sums): void => {
  sums.requests += row.requests
  sums.errors += row.errors
  sums.cancelled += row.cancelled
  sums.inputTokens += row.inputTokens
  sums.cachedInputTokens += row.cachedInputTokens
  sums.outputTokens += row.outputTokens
  sums.costUsd += row.costUsd
  sums.unpriced += row.unpriced
}

/** In ms since epoch, the end not included; hours that begin in it belong to it. */
export interface Span {
  from: number
  to: number
}

/** What a report is about. */
export interface Range {
  /** They follow one another. */
  days: readonly Span[]
  /** As many days before the first. */
  before: Span
}

/** By the id of each; by an empty one what had none. */
export type Shares = readonly ({ id: string } & Sums)[]

export interface Use {
  /** Of each day, in their order. */
  days: readonly Sums[]
  /** Accounts that served on each day. */
  activeAccounts: readonly number[]
  /** As many days before the first. */
  before: Sums
  /** Of all days together. */
  by: Readonly<Record<Exclude<Dimension, 'all'>, Shares>>
}

/** From the first to the last of days that follow one another. */
export const wholeOf = (days: readonly Span[]): Span => ({ from: days[0]?.from ?? 0, to: days.at(-1)?.to ?? 0 })

const COLUMNS = {
  requests: 'requests',
  errors: 'errors',
  cancelled: 'cancelled',
  input_tokens: 'inputTokens',
  cached_input_tokens: 'cachedInputTokens',
  output_tokens: 'outputTokens',
  cost_micros: 'costUsd',
  unpriced: 'unpriced',
} as const

/** The columns of the tables of sums, as they are kept. */
export const KEPT_COLUMNS = Object.keys(COLUMNS).join()

const select = (read: (column: string) => string): string =>
  Object.entries(COLUMNS)
    .map(([column, name]) => `${read(column)}${column === 'cost_micros' ? ' / 1e6' : ''} AS "${name}"`)
    .join()

/** The same as `Sums`, row by row. */
export const SELECTED = select((column) => column)

/** The same added up. */
export const TOTALS = select((column) => `coalesce(sum(${column}), 0)`)
