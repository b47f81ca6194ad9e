/** How busy the accounts of a key were and how many conversations they keep (`GET /api/fleet/observability`). */

import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { affinity } from '../../../db/schema/accounts.ts'
import { requests } from '../../../db/schema/requests.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { counted } from '../log/counted-requests.ts'

export interface ActivityQuestion {
  /** ms since epoch */
  now: number
  /** null: all accounts, and requests that reached none. */
  accountIds: readonly string[] | null
  /** Conversations unused for longer count as stale. */
  staleSeconds: number
}

export interface ActivitySums {
  requestCount: number
  errorCount: number
  cancelledCount: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costUsd: number
}

type Named = ActivitySums & { name: string }

export const PRESSURE_WINDOWS = [
  { key: '30m', label: 'Last 30 minutes', seconds: 1800 },
  { key: '2h', label: 'Last 2 hours', seconds: 7200 },
] as const

/** Newest requests read for a window; more would take over a tenth of a second. */
const MAX_READ = 100_000
const MAX_LISTED = 10
const MAX_NAME_CHARS = 64

export type FleetActivity = Awaited<ReturnType<typeof fleetActivity>>

export const fleetActivity = async (db: Db, question: ActivityQuestion) => ({
  windows: await mapInOrder(PRESSURE_WINDOWS, async (window) => ({
    ...window,
    ...(await pressure(db, window.seconds, question)),
  })),
  sticky: await sticky(db, question),
})

const pressure = async (db: Db, seconds: number, { now, accountIds }: ActivityQuestion) => {
  const recent = sql`(
    SELECT * FROM ${requests}
    WHERE started_at >= ${now - seconds * 1000} AND ${counted()} AND ${isIn(accountIds)}
    ORDER BY started_at DESC LIMIT ${MAX_READ}) AS recent`
  const by = (name: SQL) =>
    db.all<Named>(sql`
      SELECT coalesce(${name}, '') AS name, ${SUMS} FROM ${recent}
      GROUP BY 1 ORDER BY "requestCount" DESC, 1 LIMIT ${MAX_LISTED + 1}`)
  const [totals] = await db.all<ActivitySums>(sql`SELECT ${SUMS} FROM ${recent}`)
  const [top] = await db.all<{ code: string }>(sql`
    SELECT error_code AS code FROM ${recent} WHERE status = 'error' AND error_code IS NOT NULL
    GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 1`)
  const lists = { byAccount: await by(sql`account_id`), byKind: await by(sql`kind`), byClient: await by(CLIENT) }
  const sums = totals! // without GROUP BY there is always one row
  return {
    ...sums,
    truncated: sums.requestCount >= MAX_READ || Object.values(lists).some(({ length }) => length > MAX_LISTED),
    topErrorCode: top?.code ?? null,
    byAccount: lists.byAccount.slice(0, MAX_LISTED),
    byKind: lists.byKind.slice(0, MAX_LISTED),
    byClient: lists.byClient.slice(0, MAX_LISTED),
  }
}

const SUMS = sql`
  count(*) AS "requestCount",
  count(*) FILTER (WHERE status = 'error') AS "errorCount",
  count(*) FILTER (WHERE status = 'cancelled') AS "cancelledCount",
  coalesce(sum(input_tokens), 0) AS "inputTokens",
  coalesce(sum(cached_input_tokens), 0) AS "cachedInputTokens",
  coalesce(sum(output_tokens), 0) AS "outputTokens",
  coalesce(sum(cost_micros), 0) / 1e6 AS "costUsd"`

/** The part of `text` before the first `end`. */
const upTo = (end: string, text: SQL): SQL => {
  const mark = sql.raw(`'${end}'`)
  return sql`substr(${text}, 1, instr(${text} || ${mark}, ${mark}) - 1)`
}

/** The program of a user agent, as `clientName` names it. */
const CLIENT = sql`substr(${upTo(' ', upTo('/', sql`user_agent`))}, 1, ${sql.raw(String(MAX_NAME_CHARS))})`

const sticky = async (db: Db, { now, accountIds, staleSeconds }: ActivityQuestion) => {
  const fresh = now - staleSeconds * 1000
  const rows = await db.all<{
    accountId: string
    kind: string
    total: number
    recent: number
    lastUpdatedAt: number
  }>(sql`
    SELECT account_id AS "accountId", kind, count(*) AS total, count(*) FILTER (WHERE used_at >= ${fresh}) AS recent,
      max(used_at) AS "lastUpdatedAt"
    FROM ${affinity}
    WHERE account_id IN (SELECT id FROM accounts) AND ${isIn(accountIds)} GROUP BY 1, 2`)
  const accounts = [...Map.groupBy(rows, ({ accountId }) => accountId)]
    .map(([accountId, own]) => ({
      accountId,
      totals: own.reduce((sum, { total }) => sum + total, 0),
      kinds: Object.fromEntries(own.map(({ kind, total }) => [kind, total])),
      lastUpdatedAt: Math.max(...own.map(({ lastUpdatedAt }) => lastUpdatedAt)),
    }))
    .toSorted((a, b) => b.totals - a.totals || (a.accountId < b.accountId ? -1 : 1))
  const total = rows.reduce((sum, row) => sum + row.total, 0)
  const recentCount = rows.reduce((sum, { recent }) => sum + recent, 0)
  return {
    total,
    recentCount,
    staleCount: total - recentCount,
    staleThresholdSeconds: staleSeconds,
    truncated: accounts.length > MAX_LISTED,
    byAccount: accounts.slice(0, MAX_LISTED),
  }
}

const isIn = (accountIds: readonly string[] | null): SQL =>
  accountIds === null ? sql`TRUE` : sql`account_id IN (SELECT value FROM json_each(${JSON.stringify(accountIds)}))`
