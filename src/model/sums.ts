/** SQL sums that are zero without rows, and other expressions that SQLite and PostgreSQL share. */
import { type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { requestHours } from '../../db/schema/requests.ts'

export const total = (of: SQLWrapper) => sql<number>`coalesce(sum(${of}), 0)`

/** Counts the rows that match the condition. */
export const countIf = (condition: SQL | undefined) => sql<number>`count(*) FILTER (WHERE ${condition})`

/** The smaller value. Null if either is null. */
export const smaller = (a: SQLWrapper, b: SQLWrapper) =>
  sql`(CASE WHEN ${a} <= ${b} THEN ${a} WHEN ${b} < ${a} THEN ${b} END)`

/** The larger value, for values that are not null. */
export const larger = (a: SQLWrapper, b: SQLWrapper) => sql`(CASE WHEN ${a} > ${b} THEN ${a} ELSE ${b} END)`

/** The counts of an hour without requests. */
export const NO_COUNTS = Object.freeze({
  requests: 0,
  errors: 0,
  cancelled: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costMicros: 0,
  unpriced: 0,
  moves: 0,
  avoidableMoves: 0,
  movedTokens: 0,
})

/** Sums of the hourly totals. */
export const HOUR_SUMS = {
  requests: total(requestHours.requests),
  errors: total(requestHours.errors),
  cancelled: total(requestHours.cancelled),
  inputTokens: total(requestHours.inputTokens),
  cachedInputTokens: total(requestHours.cachedInputTokens),
  outputTokens: total(requestHours.outputTokens),
  costMicros: total(requestHours.costMicros),
  unpriced: total(requestHours.unpriced),
  moves: total(requestHours.moves),
  avoidableMoves: total(requestHours.avoidableMoves),
  movedInputTokens: total(requestHours.movedTokens),
}
