/** A request log row with account, key and attempts, for API clients and pages. */
import { desc, eq, getTableColumns, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { attempts, requests } from '../../../db/schema/requests.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { clientName, programName } from '../../lib/user-agent.ts'
import type { CandidateView } from './explain.ts'
import { logStatus } from './request-log-query.ts'
import { getCause, resultText } from './request-result.ts'
import { skipText } from './skip-reasons.ts'

export type LogEntry = ReturnType<typeof toEntry>
export type LogAttempt = ReturnType<typeof toAttempt>

export const NEWEST_FIRST = [desc(requests.startedAt), desc(requests.id)] as const

/**
 * The last attempt, by primary key and therefore cheap for a page of a thousand. Failed selections are attempts without
 * an account.
 */
const lastAttempt = (column: 'upstream_status' | 'code') =>
  sql`(SELECT ${sql.raw(column)} FROM attempts
    WHERE request_row_id = ${requests.id} AND account_id IS NOT NULL ORDER BY n DESC LIMIT 1)`

/** Distinct accounts: several attempts may use the same one. */
const accountsTried = sql<number>`(SELECT count(DISTINCT account_id) FROM attempts WHERE request_row_id = ${requests.id})`

export const selectJoined = (db: Db) =>
  db
    .select({
      row: getTableColumns(requests),
      account: { planType: accounts.planType },
      key: { name: apiKeys.name },
      // as: mapWith loses null
      upstreamStatus: lastAttempt('upstream_status').mapWith(attempts.upstreamStatus) as SQL<number | null>,
      upstreamCode: lastAttempt('code').mapWith(attempts.code) as SQL<string | null>, // as: the same
      accountsTried,
    })
    .from(requests)
    .leftJoin(accounts, eq(accounts.id, requests.accountId))
    .leftJoin(apiKeys, eq(apiKeys.id, requests.keyId))

/** All account names by id. */
type Names = ReadonlyMap<string, string>

interface Visible {
  names: Names
  /** Whether the user may also see sensitive fields. */
  sensitive: boolean
}

type Joined = Awaited<ReturnType<typeof selectJoined>>[number]

/** Phases are in ms since the request arrived, so each includes the previous ones. */
export const toEntry = (
  { row, account, key, upstreamStatus, upstreamCode, accountsTried }: Joined,
  { names, sensitive }: Visible,
) => {
  const outputTokens = row.outputTokens ?? row.reasoningTokens
  const useragentGroup = clientName(row.userAgent)
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
    accountName: nameIn(names, row.accountId),
    planType: account?.planType ?? null,
    apiKeyId: row.keyId,
    apiKeyName: key?.name ?? null,
    unrecognizedKey: row.unrecognizedKey,
    model: row.model,
    reasoningEffort: row.reasoningEffort,
    serviceTier: row.serviceTier,
    conversationId: sensitive ? row.conversationHash : null,
    useragent: sensitive ? row.userAgent : null,
    useragentGroup,
    /** As people know it: `Claude Code`. */
    clientName: useragentGroup === null ? null : programName(useragentGroup),
    clientIp: sensitive ? row.clientIp : null,
    movedAccount: row.moved,
    moveAvoidable: row.moveAvoidable,
    paidCredits: row.paidCredits,
    borrowed: row.borrowed,
    status: logStatus(row),
    /** The cause, as text and as a stable name. */
    result: resultText(row, accountsTried),
    cause: getCause(row),
    httpStatus: row.httpStatus,
    errorCode: row.errorCode,
    errorMessage: row.errorMessage,
    egressReason: row.egressReason,
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

/** null: deleted, or there was none. */
const nameIn = (names: Names, id: string | null): string | null => (id === null ? null : (names.get(id) ?? null))

/** As written by `proxy/pool/select.ts`, possibly in an earlier version. */
const Considered = z.object({
  id: z.string(),
  score: z.number().nullable().catch(null),
  skipped: z.string().nullable().catch(null),
  until: z.number().nullable().catch(null),
  resetDays: z.number().nullable().catch(null),
  stayPercent: z.number().nullable().catch(null),
  movePercent: z.number().nullable().catch(null),
  egressReason: z.string().nullable().catch(null),
})

export const toAttempt = (row: typeof attempts.$inferSelect, names: Names) => ({
  n: row.n,
  accountId: row.accountId,
  accountName: nameIn(names, row.accountId),
  startedAt: iso(row.startedAt),
  durationMs: row.durationMs,
  outcome: row.outcome,
  upstreamStatus: row.upstreamStatus,
  code: row.code,
  message: row.message,
  /** Whether `considered` is still stored: only for failures and the latest requests. */
  isExplained: row.considered !== null,
  considered: (row.considered ?? []).flatMap((entry): CandidateView[] => {
    const { data } = Considered.safeParse(entry)
    if (!data) return []
    const { id: accountId, skipped, until, egressReason, ...rest } = data
    const accountName = nameIn(names, accountId)
    const reason = skipped && skipText(skipped, egressReason)
    return [{ accountId, accountName, skipped, egressReason, reason, until: isoOrNull(until), ...rest }]
  }),
})
