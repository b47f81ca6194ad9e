/** The sums of a report, independent of their source. */
import type { Dimension } from './request-spans.ts'

export interface Sums {
  requests: number
  errors: number
  cancelled: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costUsd: number
  /** Requests whose model has no price, missing from the cost. */
  unpriced: number
  /** Requests that moved their conversation to another account. */
  moves: number
  /** Moves whose previous account could have served the request for less. */
  avoidableMoves: number
  /** Cached tokens that moves lost. */
  movedInputTokens: number
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
  moves: 0,
  avoidableMoves: 0,
  movedInputTokens: 0,
})

/** Written out, because a report calls it a hundred thousand times. */
export const addSums = (sums: Sums, row: Sums): void => {
  sums.requests += row.requests
  sums.errors += row.errors
  sums.cancelled += row.cancelled
  sums.inputTokens += row.inputTokens
  sums.cachedInputTokens += row.cachedInputTokens
  sums.outputTokens += row.outputTokens
  sums.costUsd += row.costUsd
  sums.unpriced += row.unpriced
  sums.moves += row.moves
  sums.avoidableMoves += row.avoidableMoves
  sums.movedInputTokens += row.movedInputTokens
}

/** In ms since epoch, end excluded; contains the hours that begin in it. */
export interface Span {
  from: number
  to: number
}

export interface Range {
  /** Consecutive days. */
  days: readonly Span[]
  /** The same number of days before the first. */
  before: Span
}

/** By id; the empty id is for requests without one. */
export type Shares = readonly ({ id: string } & Sums)[]

export interface Use {
  /** One per day, in order. */
  days: readonly Sums[]
  /** Accounts that served on each day. */
  activeAccounts: readonly number[]
  /** The same number of days before. */
  before: Sums
  /** Over all days. */
  by: Readonly<Record<Exclude<Dimension, 'all'>, Shares>>
}

/** From the first to the last of consecutive days. */
export const getWhole = (days: readonly Span[]): Span => ({ from: days[0]?.from ?? 0, to: days.at(-1)?.to ?? 0 })

const COLUMNS = {
  requests: 'requests',
  errors: 'errors',
  cancelled: 'cancelled',
  input_tokens: 'inputTokens',
  cached_input_tokens: 'cachedInputTokens',
  output_tokens: 'outputTokens',
  cost_micros: 'costUsd',
  unpriced: 'unpriced',
  moves: 'moves',
  avoidable_moves: 'avoidableMoves',
  moved_tokens: 'movedInputTokens',
} as const

/** The columns of the totals tables. */
export const KEPT_COLUMNS = Object.keys(COLUMNS).join()

const select = (read: (column: string) => string): string =>
  Object.entries(COLUMNS)
    .map(([column, name]) => `${read(column)}${column === 'cost_micros' ? ' / 1e6' : ''} AS "${name}"`)
    .join()

/** Columns as `Sums`, row by row. */
export const SELECTED = select((column) => column)

/** The same, summed. */
export const TOTALS = select((column) => `coalesce(sum(${column}), 0)`)
