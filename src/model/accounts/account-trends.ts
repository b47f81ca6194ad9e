/** The last seven days of an account: how full its windows were, hour by hour, and what it was spent on. */
import { and, eq, gte, max, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { usageSamples } from '../../../db/schema/history.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requestHours } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { perWindow, type UsageWindow, type UsageWindows, type WindowLength } from './usage-windows.ts'

export const TREND_HOURS = 168

/** Percent used at each hour's last sample, oldest first; null: no sample, which is a gap and not zero. */
export interface Trend extends Record<WindowLength, (number | null)[]> {
  /** Start of the first hour, ms since epoch. */
  from: number
}

/** 168 hours up to and including that of `now`. */
export const accountTrend = async (db: Db, accountId: string, now: number): Promise<Trend> => {
  const from = Math.floor(now / HOUR_MS) * HOUR_MS - (TREND_HOURS - 1) * HOUR_MS
  const rows = await db
    .select()
    .from(usageSamples)
    .where(and(eq(usageSamples.accountId, accountId), gte(usageSamples.hour, from)))
    .all()
  const byHour = new Map(rows.map((row) => [row.hour, row]))
  const series = (window: WindowLength) =>
    Array.from({ length: TREND_HOURS }, (_, index) => byHour.get(from + index * HOUR_MS)?.[`${window}Used`] ?? null)
  return { from, ...perWindow(series) }
}

/** Ends the trend with the current values if they were reported in the hour of `now` (`usageAt`, ms). */
export const withCurrentUsage = (trend: Trend, windows: UsageWindows, usageAt: number | null): Trend => {
  if (usageAt === null || usageAt < trend.from + (TREND_HOURS - 1) * HOUR_MS) return trend
  const ended = (length: WindowLength) => {
    const window = windows[length]
    return window === null ? trend[length] : [...trend[length].slice(0, -1), window.usedPercent]
  }
  return { from: trend.from, ...perWindow(ended) }
}

interface Point {
  /** ISO 8601 */
  t: string
  v: number
}

/**
 * For dashboard clients: percent left. Hours without a sample have no point. `secondaryScheduled` is the remaining part
 * of the weekly window, which even use would follow.
 */
export const trendPoints = (trend: Trend, weekly: UsageWindow | null) => {
  const left = (series: readonly (number | null)[]): Point[] =>
    series.flatMap((used, index) => (used === null ? [] : { t: timeOf(trend, index), v: rounded(100 - used) }))
  return {
    primary: left(trend.fiveHour),
    secondary: left(trend.weekly),
    monthly: left(trend.monthly),
    secondaryScheduled: scheduled(trend, weekly),
  }
}

const scheduled = (trend: Trend, weekly: UsageWindow | null): Point[] => {
  const { resetAt = null, windowMinutes = 0 } = weekly ?? {}
  const length = windowMinutes * 60_000
  if (resetAt === null || length <= 0) return []
  return Array.from({ length: TREND_HOURS }, (_, index) => {
    const ahead = resetAt - (trend.from + index * HOUR_MS)
    const left = ahead - Math.floor(ahead / length) * length
    return { t: timeOf(trend, index), v: rounded((100 * left) / length) }
  })
}

const timeOf = ({ from }: Trend, index: number): string => iso(from + index * HOUR_MS)

const rounded = (percent: number): number => Math.round(percent * 100) / 100

export interface Spend {
  /** null: without a key, or the key was deleted. */
  name: string | null
  requests: number
  errors: number
  /** Input and output. */
  tokens: number
  costMicros: number
  /** Requests whose model has no known price. */
  unpriced: number
}

export interface AccountSpend {
  total: Spend
  /** Largest first. */
  byModel: Spend[]
  byKey: Spend[]
}

const MOST = 8

/** What the account served since `since` (ms), by model and by key; long lists end with "other". */
export const accountSpend = async (db: Db, accountId: string, since: number): Promise<AccountSpend> => {
  const from = and(eq(requestHours.accountId, accountId), gte(requestHours.hour, since))
  const byModel = await db
    .select({ name: sql<string | null>`nullif(${requestHours.model}, '')`, ...SUMS })
    .from(requestHours)
    .where(from)
    .groupBy(requestHours.model)
    .all()
  const byKey = await db
    .select({ name: max(apiKeys.name), ...SUMS })
    .from(requestHours)
    .leftJoin(apiKeys, eq(apiKeys.id, requestHours.keyId))
    .where(from)
    .groupBy(requestHours.keyId)
    .all()
  return { total: together(byModel, null), byModel: largest(byModel), byKey: largest(byKey) }
}

const SUMS = {
  requests: sql<number>`sum(${requestHours.requests})`,
  errors: sql<number>`sum(${requestHours.errors})`,
  tokens: sql<number>`sum(${requestHours.inputTokens} + ${requestHours.outputTokens})`,
  costMicros: sql<number>`sum(${requestHours.costMicros})`,
  unpriced: sql<number>`sum(${requestHours.unpriced})`,
}

const largest = (rows: readonly Spend[]): Spend[] => {
  const sorted = rows.toSorted((a, b) => b.costMicros - a.costMicros || b.tokens - a.tokens)
  return sorted.length <= MOST ? sorted : [...sorted.slice(0, MOST - 1), together(sorted.slice(MOST - 1), 'other')]
}

const together = (rows: readonly Spend[], name: string | null): Spend => {
  const sum = (member: Exclude<keyof Spend, 'name'>) => rows.reduce((total, row) => total + row[member], 0)
  return {
    name,
    requests: sum('requests'),
    errors: sum('errors'),
    tokens: sum('tokens'),
    costMicros: sum('costMicros'),
    unpriced: sum('unpriced'),
  }
}
