/** The request log as the dashboard reads it: pages, one request with its attempts, and what can be filtered by. */

import { and, asc, desc, eq, getTableColumns, isNotNull, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { attempts, requests } from '../../db/schema/requests.ts'
import { iso, isoOrNull } from '../lib/iso.ts'
import {
  afterCursor,
  cursorOf,
  filtersWhere,
  LOG_STATUSES,
  type LogFilters,
  type LogQuery,
  type LogStatus,
  logStatus,
  queryWhere,
} from './request-log-query.ts'
import { type Blinders, blindedRow, type RecentRequest } from './request-view.ts'

/** `sensitive`: the caller holds `conversations:read`; only then are conversations, addresses and user agents shown and searched. */
export interface Sight extends Partial<Blinders> {
  sensitive: boolean
}

export type LogEntry = ReturnType<typeof toEntry>
export type LogAttempt = ReturnType<typeof toAttempt>

export interface LogPage {
  requests: LogEntry[]
  /** Of all pages; null: more than 10,000. */
  total: number | null
  hasMore: boolean
  nextCursor: string | null
}

export interface LogOptions {
  accountIds: string[]
  modelOptions: { model: string; reasoningEffort: string | null }[]
  apiKeys: { id: string; name: string | null; keyPrefix: string | null }[]
  statuses: LogStatus[]
}

/** Counting stops here: it reads every row it counts. */
const MAX_COUNTED = 10_000

/** The newest `limit` requests. */
export const recentRequests = (db: Db, limit: number): RecentRequest[] =>
  select(db)
    .orderBy(...NEWEST_FIRST)
    .limit(limit)
    .all()
    .map(({ row, account, key }) => ({
      id: row.id,
      requestId: row.requestId,
      startedAt: row.startedAt,
      keyName: key?.name ?? null,
      accountName: nameOf(account),
      model: row.model,
      status: row.status,
      errorCode: row.errorCode,
      phase: row.phase,
      httpStatus: row.httpStatus,
      firstEventMs: row.firstEventMs,
      totalMs: row.totalMs,
      inputTokens: row.inputTokens,
      outputTokens: row.outputTokens,
      costMicros: row.costMicros,
      attempts: row.attempts,
    }))

/** One page, newest first. Following `nextCursor` shows no row twice and leaves none out, whatever is added meanwhile. */
export const requestLogs = (db: Db, query: LogQuery, sight: Sight): LogPage => {
  const where = queryWhere(query, sight)
  const found = select(db)
    .where(and(where, afterCursor(query.cursor)))
    .orderBy(...NEWEST_FIRST)
    .limit(query.limit + 1)
    .offset(query.cursor ? 0 : query.offset)
    .all()
  const shown = found.slice(0, query.limit)
  const last = shown.at(-1)
  const hasMore = found.length > shown.length
  return {
    requests: shown.map((joined) => blindedRow(toEntry(joined, sight.sensitive), blindersOf(sight))),
    total: countUpTo(db, where, MAX_COUNTED),
    hasMore,
    nextCursor: hasMore && last ? cursorOf(last.row) : null,
  }
}

/** The request with row id `id` and its attempts in order; null: it is not, or no longer, in the log. */
export const requestLog = (db: Db, id: string, sight: Sight): (LogEntry & { attempts: LogAttempt[] }) | null => {
  const joined = select(db).where(eq(requests.id, id)).get()
  if (!joined) return null
  const rows = db
    .select({ row: getTableColumns(attempts), account: ACCOUNT })
    .from(attempts)
    .leftJoin(accounts, eq(accounts.id, attempts.accountId))
    .where(eq(attempts.requestRowId, id))
    .orderBy(asc(attempts.n))
    .all()
  const blinders = blindersOf(sight)
  return {
    ...blindedRow(toEntry(joined, sight.sensitive), blinders),
    attempts: rows.map((row) => blindedRow(toAttempt(row), blinders)),
  }
}

const blindersOf = ({ hidesAccounts = false, hidesKeys = false }: Sight): Blinders => ({ hidesAccounts, hidesKeys })

/** What occurs in the log under `filters`. */
export const requestLogOptions = (db: Db, filters: LogFilters): LogOptions => {
  const where = filtersWhere(filters)
  const { accountId, keyId, model, reasoningEffort, status, errorCode } = requests
  const seen = db.selectDistinct({ status, errorCode }).from(requests).where(where).all().map(logStatus)
  return {
    accountIds: db
      .selectDistinct({ accountId })
      .from(requests)
      .where(and(where, isNotNull(accountId)))
      .orderBy(asc(accountId))
      .all()
      .flatMap((row) => row.accountId ?? []),
    modelOptions: db
      .selectDistinct({ model: sql<string>`${model}`, reasoningEffort })
      .from(requests)
      .where(and(where, isNotNull(model)))
      .orderBy(asc(model), asc(reasoningEffort))
      .all(),
    apiKeys: db
      .selectDistinct({ id: sql<string>`${keyId}`, name: apiKeys.name, keyPrefix: apiKeys.keyPrefix })
      .from(requests)
      .leftJoin(apiKeys, eq(apiKeys.id, keyId))
      .where(and(where, isNotNull(keyId)))
      .orderBy(asc(apiKeys.name), asc(keyId))
      .all(),
    statuses: LOG_STATUSES.filter((status) => seen.includes(status)),
  }
}

const NEWEST_FIRST = [desc(requests.startedAt), desc(requests.id)] as const

const ACCOUNT = { email: accounts.email, alias: accounts.alias, planType: accounts.planType }

/**
 * Of the last attempt, by the primary key, so it costs little even for a page of a thousand. A selection that found
 * nobody stands among the attempts without an account.
 */
const lastAttempt = (column: 'upstream_status' | 'code') =>
  sql`(SELECT ${sql.raw(column)} FROM attempts
    WHERE request_row_id = ${requests.id} AND account_id IS NOT NULL ORDER BY n DESC LIMIT 1)`

const select = (db: Db) =>
  db
    .select({
      row: getTableColumns(requests),
      account: ACCOUNT,
      key: { name: apiKeys.name },
      upstreamStatus: lastAttempt('upstream_status').mapWith(attempts.upstreamStatus) as SQL<number | null>, // as: mapWith forgets null
      upstreamCode: lastAttempt('code').mapWith(attempts.code) as SQL<string | null>, // as: the same
    })
    .from(requests)
    .leftJoin(accounts, eq(accounts.id, requests.accountId))
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))

type Joined = ReturnType<ReturnType<typeof select>['all']>[number]

const countUpTo = (db: Db, where: SQL | undefined, most: number): number | null => {
  const some = db
    .select({ id: requests.id })
    .from(requests)
    .leftJoin(accounts, eq(accounts.id, requests.accountId))
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))
    .where(where)
    .limit(most + 1)
    .as('some')
  const count = db.select({ count: sql<number>`count(*)` }).from(some).get()?.count ?? 0
  return count > most ? null : count
}

/** Phases are milliseconds from the arrival of the request, so that each contains the one before. */
const toEntry = ({ row, account, key, upstreamStatus, upstreamCode }: Joined, sensitive: boolean) => {
  const outputTokens = row.outputTokens ?? row.reasoningTokens
  return {
    id: row.id,
    requestId: row.requestId,
    responseId: row.responseId,
    requestedAt: iso(row.startedAt),
    route: row.route,
    requestKind: row.kind,
    transport: row.transport,
    upstreamTransport: row.upstreamTransport,
    accountId: row.accountId,
    accountName: nameOf(account),
    planType: account?.planType ?? null,
    apiKeyId: row.keyId,
    apiKeyName: key?.name ?? null,
    model: row.model,
    reasoningEffort: row.reasoningEffort,
    serviceTier: row.serviceTier,
    conversationId: sensitive ? row.conversationHash : null,
    useragent: sensitive ? row.userAgent : null,
    useragentGroup: row.userAgent?.match(/^[^\s/]+/)?.[0] ?? null,
    clientIp: sensitive ? row.clientIp : null,
    movedAccount: row.moved,
    status: logStatus(row),
    httpStatus: row.httpStatus,
    errorCode: row.errorCode,
    errorMessage: row.errorMessage,
    failurePhase: row.status === 'ok' ? null : row.phase,
    upstreamStatusCode: upstreamStatus,
    upstreamErrorCode: upstreamCode,
    attemptCount: row.attempts,
    tokens: row.inputTokens === null && outputTokens === null ? null : (row.inputTokens ?? 0) + (outputTokens ?? 0),
    inputTokens: row.inputTokens,
    cachedInputTokens: row.cachedInputTokens === null ? null : Math.min(row.cachedInputTokens, row.inputTokens ?? 0),
    outputTokens,
    outputTokensRaw: row.outputTokens,
    reasoningTokens: row.reasoningTokens,
    costUsd: row.costMicros === null ? null : row.costMicros / 1e6,
    latencyMs: row.totalMs,
    latencyFirstTokenMs: row.firstEventMs,
    latencyQueueMs: row.selectMs,
    phases: {
      admitMs: row.admitMs,
      selectMs: row.selectMs,
      connectMs: row.connectMs,
      firstEventMs: row.firstEventMs,
      totalMs: row.totalMs,
    },
  }
}

/** As `proxy/select.ts` wrote it, maybe in an earlier version. */
const Considered = z.object({
  id: z.string(),
  score: z.number().nullable().catch(null),
  skipped: z.string().nullable().catch(null),
  until: z.number().nullable().catch(null),
})

interface JoinedAttempt {
  row: typeof attempts.$inferSelect
  account: { email: string; alias: string | null } | null
}

const toAttempt = ({ row, account }: JoinedAttempt) => ({
  n: row.n,
  accountId: row.accountId,
  accountName: nameOf(account),
  startedAt: iso(row.startedAt),
  durationMs: row.durationMs,
  outcome: row.outcome,
  upstreamStatus: row.upstreamStatus,
  code: row.code,
  message: row.message,
  considered: (row.considered ?? []).flatMap((entry) => {
    const { data } = Considered.safeParse(entry)
    if (!data) return []
    const { id: accountId, score, skipped, until } = data
    return [{ accountId, score, skipped, until: isoOrNull(until) }]
  }),
})

const nameOf = (account: { email: string; alias: string | null } | null): string | null =>
  account ? (account.alias ?? account.email) : null
