/** How much allowance a logged request used: in units that compare requests, and in credits of the windows. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { capacityCredits } from '../accounts/usage-windows.ts'

/**
 * Units of a request, the largest of three estimates: tokens in thousands with output fourfold and cached input a
 * quarter, 100 per dollar, and 5. Assumed: ChatGPT does not publish how it counts.
 */
export const requestUnits = (use: {
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costMicros: number | null
}): number => {
  const uncached = Math.max(0, use.inputTokens - use.cachedInputTokens)
  const tokens = (uncached + use.cachedInputTokens / 4 + use.outputTokens * 4) / 1000
  return Math.max(tokens, (use.costMicros ?? 0) / 10_000, LEAST_UNITS)
}

export const LEAST_UNITS = 5

/** The same in SQL. Null: the request reported no tokens. */
export const UNITS: SQL<number | null> = sql`CASE WHEN ${requests.inputTokens} IS NOT NULL THEN max(
  (max(0, ${requests.inputTokens} - coalesce(${requests.cachedInputTokens}, 0))
    + coalesce(${requests.cachedInputTokens}, 0) / 4.0 + coalesce(${requests.outputTokens}, 0) * 4) / 1000.0,
  coalesce(${requests.costMicros}, 0) / 10000.0, ${LEAST_UNITS}) END`

/** Model requests that wanted quota of accounts: served, cancelled, or rejected because none was available. */
export const DEMAND: SQL = sql`${requests.kind} IN ('normal', 'compaction', 'image', 'audio')
  AND ${requests.sourceId} IS NULL AND (${requests.status} <> 'error' OR ${requests.phase} = 'select')`

/** Credits per unit, for the five-hour window and for the weekly or monthly one. */
export interface CreditRates {
  short: number
  long: number
  /** Compared with the accounts' own meters; otherwise assumed to be 1. */
  isMeasured: boolean
}

/** Percent that the meters must have moved in total. */
const ENOUGH_PERCENT = 5

/**
 * Compares how far the meters of the accounts moved within each hour with the units served in it. Hours in which a
 * window was reset are left out.
 */
export const creditRates = (db: Db, from: number, to: number): CreditRates => {
  const rows = db.all<MeterHour>(sql`
    WITH work AS (
      SELECT account_id AS account, started_at / ${HOUR_MS} * ${HOUR_MS} AS hour, sum(${UNITS}) AS units
      FROM ${requests} WHERE ${requests.startedAt} >= ${from} AND ${requests.startedAt} < ${to}
        AND ${requests.accountId} IS NOT NULL AND ${DEMAND}
      GROUP BY account, hour HAVING units > 0
    )
    SELECT a.plan_type AS planType, work.units AS units,
      s.five_hour_used - p.five_hour_used AS short,
      s.weekly_used - p.weekly_used AS weekly,
      s.monthly_used - p.monthly_used AS monthly
    FROM work
    JOIN accounts a ON a.id = work.account
    JOIN usage_samples s ON s.account_id = work.account AND s.hour = work.hour
    JOIN usage_samples p ON p.account_id = work.account AND p.hour = work.hour - ${HOUR_MS}`)
  const short = getRate(rows, ({ planType, short }) => [short, capacityCredits(planType, 'fiveHour')])
  const long = getRate(rows, ({ planType, weekly, monthly }) =>
    weekly === null ? [monthly, capacityCredits(planType, 'monthly')] : [weekly, capacityCredits(planType, 'weekly')],
  )
  return { short: short ?? long ?? 1, long: long ?? short ?? 1, isMeasured: short !== null || long !== null }
}

interface MeterHour {
  planType: string
  units: number
  /** Percent that each window moved; null: not reported. */
  short: number | null
  weekly: number | null
  monthly: number | null
}

type Moved = (row: MeterHour) => [percent: number | null, capacity: number]

const getRate = (rows: readonly MeterHour[], moved: Moved): number | null => {
  const sums = { percent: 0, credits: 0, units: 0 }
  for (const row of rows) {
    const [percent, capacity] = moved(row)
    if (percent === null || percent < 0 || capacity === 0) continue
    sums.percent += percent
    sums.credits += (percent * capacity) / 100
    sums.units += row.units
  }
  return sums.percent >= ENOUGH_PERCENT ? sums.credits / sums.units : null
}

/** When the first such request since `from` arrived (ms since epoch); null: none did. */
export const firstArrival = (db: Db, from: number): number | null => {
  const [first] = db.all<{ at: number }>(
    sql`SELECT ${requests.startedAt} AS at FROM ${requests} WHERE ${requests.startedAt} >= ${from} AND ${DEMAND}
      ORDER BY ${requests.startedAt} LIMIT 1`,
  )
  return first?.at ?? null
}
