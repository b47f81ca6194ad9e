/** How much allowance a logged request used: in units that compare requests, and in credits of the windows. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { capacityCredits } from '../accounts/usage-windows.ts'
import { costMicros, uncachedCostMicros } from '../catalog/pricing.ts'
import { larger } from '../sums.ts'

/**
 * Units of a request, the largest of three estimates: tokens in thousands with output fourfold and cached input a
 * quarter, 100 per dollar, and 5. Assumed: ChatGPT does not publish how it counts.
 */
export const requestUnits = (use: Used): number => Math.max(tokenUnits(use), LEAST_UNITS)

interface Used {
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costMicros: number | null
}

const tokenUnits = ({ inputTokens, cachedInputTokens, outputTokens, costMicros: micros }: Used): number => {
  const uncached = Math.max(0, inputTokens - cachedInputTokens)
  const tokens = (uncached + cachedInputTokens / 4 + outputTokens * 4) / 1000
  return Math.max(tokens, (micros ?? 0) / 10_000)
}

type Tokens = Omit<Used, 'costMicros'>

interface Priced {
  model: string | null
  serviceTier: string | null
}

/** Units of the whole request if nothing was cached. */
export const movedUnits = (tokens: Tokens, { model, serviceTier }: Priced): number => {
  const usage = { ...tokens, cachedInputTokens: 0 }
  return requestUnits({ ...usage, costMicros: model === null ? null : costMicros(usage, model, serviceTier) })
}

/** Units of the cached input of a request if it was not cached: what moving its conversation costs. */
export const uncachedUnits = (
  { inputTokens, cachedInputTokens, outputTokens }: Tokens,
  { model, serviceTier }: Priced,
): number => {
  const cached = Math.min(inputTokens, cachedInputTokens)
  const usage = { inputTokens, cachedInputTokens, outputTokens }
  const micros = model === null ? null : uncachedCostMicros(usage, model, serviceTier)
  return tokenUnits({ inputTokens: cached, cachedInputTokens: 0, outputTokens: 0, costMicros: micros })
}

export const LEAST_UNITS = 5

const { inputTokens, outputTokens } = requests
const CACHED = sql`coalesce(${requests.cachedInputTokens}, 0)`
const TOKENS = sql`(${larger(sql`${inputTokens} - ${CACHED}`, sql`0`)} + ${CACHED} / 4.0 + coalesce(${outputTokens}, 0) * 4) / 1000.0`
const DOLLARS = larger(sql`coalesce(${requests.costMicros}, 0) / 10000.0`, sql.raw(String(LEAST_UNITS)))

/** The same in SQL. Null: the request reported no tokens. */
export const UNITS: SQL<number | null> = sql`CASE WHEN ${inputTokens} IS NOT NULL THEN ${larger(TOKENS, DOLLARS)} END`

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

/** Until the accounts' meters have moved enough. */
export const ASSUMED_RATES: CreditRates = Object.freeze({ short: 1, long: 1, isMeasured: false })

/** Percent that the meters must have moved in total. */
const ENOUGH_PERCENT = 5

/**
 * Compares how far the meters of the accounts moved within each hour with the units served in it. Hours in which a
 * window was reset are left out.
 */
export const creditRates = async (db: Db, from: number, to: number): Promise<CreditRates> => {
  const rows = await db.all<MeterHour>(sql`
    WITH work AS (
      SELECT account_id AS account, started_at / ${HOUR_MS} * ${HOUR_MS} AS hour, sum(${UNITS}) AS units
      FROM ${requests} WHERE ${requests.startedAt} >= ${from} AND ${requests.startedAt} < ${to}
        AND ${requests.accountId} IS NOT NULL AND ${DEMAND}
      GROUP BY account, hour
    )
    SELECT a.plan_type AS "planType", work.units AS units,
      s.five_hour_used - p.five_hour_used AS short,
      s.weekly_used - p.weekly_used AS weekly,
      s.monthly_used - p.monthly_used AS monthly
    FROM work
    JOIN accounts a ON a.id = work.account
    JOIN usage_samples s ON s.account_id = work.account AND s.hour = work.hour
    JOIN usage_samples p ON p.account_id = work.account AND p.hour = work.hour - ${HOUR_MS}
    WHERE work.units > 0`)
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
export const firstArrival = async (db: Db, from: number): Promise<number | null> => {
  const [first] = await db.all<{ at: number }>(
    sql`SELECT ${requests.startedAt} AS at FROM ${requests} WHERE ${requests.startedAt} >= ${from} AND ${DEMAND}
      ORDER BY ${requests.startedAt} LIMIT 1`,
  )
  return first?.at ?? null
}
