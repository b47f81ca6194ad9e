/** What is and was left of the pool's windows, by account, and what it did in a week. */
import { and, count, desc, eq, gte, ne, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { usageSamples } from '../../../db/schema/history.ts'
import { requestHours, requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { isoOrNull } from '../../lib/iso.ts'
import { isInUse } from '../accounts/account-state.ts'
import { capacityCredits, usedNow, type WindowLength } from '../accounts/usage-windows.ts'
import { counted } from '../log/counted-requests.ts'
import { HOUR_SUMS } from '../sums.ts'
import { type PooledAccount, type PoolWindow, poolWindows, remainingPercent } from './pool-usage.ts'

const WEEK_MS = 7 * DAY_MS

export const HistoryQuery = z.object({
  hours: z.coerce.number().int().min(1).max(168).default(24).describe('How far back, 1 to 168.'),
})
export const WindowQuery = z.object({
  window: z.enum(['primary', 'secondary']).default('primary').describe('The five-hour or the weekly window.'),
})

/** Sums of the last seven days, in whole hours, and the most frequent error code. */
export const poolWeek = async (db: Db, now: number) => {
  const since = now - WEEK_MS
  const sums = await db.select(HOUR_SUMS).from(requestHours).where(gte(requestHours.hour, since)).get()
  const top = await db
    .select({ code: requests.errorCode, count: count() })
    .from(requests)
    .where(and(gte(requests.startedAt, since), ne(requests.status, 'ok'), eq(requests.status, 'error'), counted()))
    .groupBy(requests.errorCode)
    .orderBy(desc(count()), sql`${requests.errorCode} NULLS FIRST`)
    .limit(1)
    .get()
  return { ...sums, topError: top?.code ?? null }
}

export const poolSummary = (
  accounts: readonly PooledAccount[],
  week: Awaited<ReturnType<typeof poolWeek>>,
  now: number,
) => {
  const windows = poolWindows(accounts, null, now)
  const of = (name: PoolWindow['window'], windowMinutes: number) => {
    const window = windows.find((one) => one.window === name)
    return window ? getWindow(window, windowMinutes) : null
  }
  const { requests: asked = 0, errors = 0, cancelled = 0, inputTokens = 0, outputTokens = 0 } = week
  return {
    primaryWindow: of('5h', 300),
    secondaryWindow: of('7d', 10_080),
    monthlyWindow: of('monthly', 43_200),
    cost: { currency: 'USD', totalUsd7d: (week.costMicros ?? 0) / 1e6 },
    metrics: {
      requests7d: asked,
      tokensSecondaryWindow: inputTokens + outputTokens,
      cachedTokensSecondaryWindow: week.cachedInputTokens ?? 0,
      errorRate7d: asked === 0 ? null : errors / asked,
      topError: week.topError,
      cancelled7d: cancelled,
    },
  }
}

const getWindow = (window: PoolWindow, windowMinutes: number) => ({
  remainingPercent: remainingPercent(window),
  capacityCredits: window.capacityCredits,
  remainingCredits: window.capacityCredits - window.usedCredits,
  resetAt: isoOrNull(window.resetAt),
  windowMinutes,
})

/** Average percent used of the five-hour window in the last `hours`, by account; accounts without a sample are missing. */
export const sampledUse = async (
  db: Db,
  { hours, now }: { hours: number; now: number },
): Promise<Map<string, number>> =>
  new Map(
    (
      await db
        .select({ id: usageSamples.accountId, used: sql<number | null>`avg(${usageSamples.fiveHourUsed})` })
        .from(usageSamples)
        // By account, to use the index.
        .where(
          and(
            sql`${usageSamples.accountId} IN (SELECT id FROM accounts)`,
            gte(usageSamples.hour, now - hours * HOUR_MS),
          ),
        )
        .groupBy(usageSamples.accountId)
        .all()
    ).flatMap(({ id, used }) => (used === null ? [] : [[id, used] as const])),
  )

/** `used`: percent used, by account. */
export const accountsLeft = (
  accounts: readonly PooledAccount[],
  length: WindowLength,
  used: (account: PooledAccount) => number | null,
) =>
  accounts
    .filter(({ state }) => isInUse(state))
    .map((account) => {
      const percent = used(account)
      const capacity = capacityCredits(account.planType, length)
      const left = percent === null ? null : Math.max(0, 100 - percent)
      return {
        accountId: account.id,
        remainingPercentAvg: left,
        capacityCredits: capacity,
        remainingCredits: left === null ? null : (capacity * left) / 100,
      }
    })

export const getUsed =
  (length: WindowLength, now: number) =>
  ({ usage }: PooledAccount): number | null =>
    usedNow(usage?.windows[length] ?? null, now)
