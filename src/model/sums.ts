/** SQL sums that are zero without rows. */
import { type SQLWrapper, sql } from 'drizzle-orm'
import { requestHours } from '../../db/schema/requests.ts'

export const total = (of: SQLWrapper) => sql<number>`coalesce(sum(${of}), 0)`

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
}
