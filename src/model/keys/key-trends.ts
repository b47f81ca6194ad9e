/** The last seven days of an API key from the hourly totals: cost per hour, and use by account. */
import { and, desc, eq, gte, max, ne } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { requestHours } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { HOUR_SUMS } from '../sums.ts'

const WEEK_HOURS = 168

/** Every hour has a value; unused hours are zero. */
export interface KeyWeek {
  /** Start of the first hour, ms since epoch. */
  from: number
  requests: number[]
  /** Input and output. */
  tokens: number[]
  /** Millionths of a US dollar. */
  costMicros: number[]
  totals: { requests: number; errors: number; tokens: number; cachedInputTokens: number; costMicros: number }
  /** Most expensive first. */
  accounts: AccountShare[]
}

export interface AccountShare {
  accountId: string
  /** null: the account was deleted. */
  email: string | null
  requests: number
  costMicros: number
}

/** 168 hours including that of `now`. All zero for an unknown key. */
export const keyWeek = async (db: Db, keyId: string, now: number): Promise<KeyWeek> => {
  const from = Math.floor(now / HOUR_MS) * HOUR_MS - (WEEK_HOURS - 1) * HOUR_MS
  const rows = await db
    .select({ hour: requestHours.hour, ...HOUR_SUMS })
    .from(requestHours)
    .where(and(gte(requestHours.hour, from), eq(requestHours.keyId, keyId)))
    .groupBy(requestHours.hour)
    .all()
  const byHour = new Map(rows.map((row) => [row.hour, row]))
  const series = (value: (row: (typeof rows)[number]) => number) =>
    Array.from({ length: WEEK_HOURS }, (_, index) => {
      const row = byHour.get(from + index * HOUR_MS)
      return row ? value(row) : 0
    })
  const total = (value: (row: (typeof rows)[number]) => number) => rows.reduce((sum, row) => sum + value(row), 0)
  return {
    from,
    requests: series((row) => row.requests),
    tokens: series(getTokens),
    costMicros: series((row) => row.costMicros),
    totals: {
      requests: total((row) => row.requests),
      errors: total((row) => row.errors),
      tokens: total(getTokens),
      cachedInputTokens: total((row) => row.cachedInputTokens),
      costMicros: total((row) => row.costMicros),
    },
    accounts: await getShares(db, keyId, from),
  }
}

/** `GET /api/api-keys/:id/trends`: dollars and tokens, one point per hour. */
export const keyTrends = (keyId: string, week: KeyWeek) => ({
  keyId,
  cost: week.costMicros.map((micros, index) => ({ t: timeOf(week, index), v: micros / 1e6 })),
  tokens: week.tokens.map((v, index) => ({ t: timeOf(week, index), v })),
})

/** `GET /api/api-keys/:id/usage-7d`. */
export const keyUsage7d = (keyId: string, { totals, accounts: shares }: KeyWeek) => ({
  keyId,
  totalTokens: totals.tokens,
  totalCostUsd: totals.costMicros / 1e6,
  totalRequests: totals.requests,
  cachedInputTokens: totals.cachedInputTokens,
  accountCosts: shares.map(({ accountId, email, costMicros }) => ({
    accountId,
    email,
    costUsd: costMicros / 1e6,
    isDeleted: email === null,
  })),
})

const timeOf = ({ from }: KeyWeek, index: number): string => iso(from + index * HOUR_MS)

const getTokens = (row: { inputTokens: number; outputTokens: number }): number => row.inputTokens + row.outputTokens

const getShares = (db: Db, keyId: string, from: number): Promise<AccountShare[]> =>
  db
    .select({
      accountId: requestHours.accountId,
      email: max(accounts.email),
      requests: HOUR_SUMS.requests,
      costMicros: HOUR_SUMS.costMicros,
    })
    .from(requestHours)
    .leftJoin(accounts, eq(accounts.id, requestHours.accountId))
    .where(and(gte(requestHours.hour, from), eq(requestHours.keyId, keyId), ne(requestHours.accountId, '')))
    .groupBy(requestHours.accountId)
    .orderBy(desc(HOUR_SUMS.costMicros), requestHours.accountId)
    .all()
