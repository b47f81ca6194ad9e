/** The request log for the dashboard: pages, new rows, one request with its attempts, and filter options. */

import { and, asc, eq, inArray, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { attempts, requests } from '../../../db/schema/requests.ts'
import { iso } from '../../lib/iso.ts'
import { accountNames } from '../accounts/account-names.ts'
import { type CostFormula, costFormula } from '../catalog/pricing.ts'
import { getKeyIds, keyIdInScope } from '../users/view-scope.ts'
import { type LogAttempt, type LogEntry, selectJoined, toAttempt, toEntry } from './request-log-entry.ts'
import {
  type Cursor,
  getCursor,
  LOG_STATUSES,
  type LogFilters,
  type LogQuery,
  type LogStatus,
  logStatus,
} from './request-log-query.ts'
import { countRows, endedSince, getDirection, newestScanned, scan } from './request-log-scan.ts'
import { filterPlan, type Visibility } from './request-log-where.ts'
import { blindedRow, type HiddenFields } from './request-view.ts'

export interface LogPage {
  /** Newest first. */
  requests: LogEntry[]
  /** All matching requests, only with the first page; null: more than `moreThan` or, without that, not all were read. */
  total: number | null
  moreThan: number | null
  /** There are older rows, or there may be before `searchedTo`. */
  hasMore: boolean
  nextCursor: string | null
  /** Cursor for `newer`; null: this is the newest page. */
  prevCursor: string | null
  /** ISO 8601: where the search stopped, because a page reads at most 50,000 rows; null: it was complete. */
  searchedTo: string | null
}

export interface LogDetail extends LogEntry {
  attempts: LogAttempt[]
  /** null: the model has no price, or tokens are unknown. */
  costFormula: CostFormula | null
}

interface LogOptions {
  accountIds: string[]
  modelOptions: { model: string; reasoningEffort: string | null }[]
  apiKeys: { id: string; name: string | null; keyPrefix: string | null }[]
  statuses: LogStatus[]
}

/** Counting stops here, because it reads every row. */
const MAX_COUNTED = 10_000

/** One page. Following `nextCursor` never repeats or skips a row, even while rows are added. */
export const requestLogs = async (db: Db, query: LogQuery, visibility: Visibility): Promise<LogPage> => {
  const isFirst = !query.cursor && !query.newer
  const skipped = isFirst ? query.offset : 0
  const end = skipped + query.limit
  const { found, stoppedAt } = await scan(db, query, visibility, end + 1)
  const shown = found.slice(skipped, end)
  const isOlder = getDirection(query) === 'older'
  const beyond = found.length > end ? (shown.at(-1) ?? null) : stoppedAt
  const places = isOlder ? shown : shown.toReversed()
  const next = isOlder ? beyond : (places.at(-1) ?? query.newer ?? null)
  /** A page that is not full is the last. */
  const count = async () => (found.length > end ? await countRows(db, query, visibility, MAX_COUNTED) : found.length)
  const previous = isFirst ? null : isOlder ? (places[0] ?? query.cursor ?? null) : beyond
  return {
    requests: await entriesAt(db, places, visibility),
    ...getTotal(isFirst && !stoppedAt ? await count() : null),
    hasMore: next !== null,
    nextCursor: next && getCursor(next),
    prevCursor: previous && getCursor(previous),
    searchedTo: stoppedAt && iso(stoppedAt.startedAt),
  }
}

const getTotal = (count: number | null): Pick<LogPage, 'total' | 'moreThan'> =>
  count !== null && count > MAX_COUNTED ? { total: null, moreThan: MAX_COUNTED } : { total: count, moreThan: null }

/**
 * Matching requests that ended after `after` (ms since epoch), newest first, at most 200. Requests are logged when they
 * end, so a long one appears below shorter ones that began later.
 */
export const newRequests = async (
  db: Db,
  query: LogQuery,
  visibility: Visibility,
  after: number,
): Promise<LogEntry[]> => entriesAt(db, await endedSince(db, query, visibility, after), visibility)

/** The request with row id `id` and its attempts in order; null: not or no longer in the log. */
export const requestLog = async (db: Db, id: string, visibility: Visibility): Promise<LogDetail | null> => {
  const joined = await selectJoined(db)
    .where(and(eq(requests.id, id), keyIdInScope(visibility.scope, requests.keyId)))
    .get()
  if (!joined) return null
  const rows = await db.select().from(attempts).where(eq(attempts.requestRowId, id)).orderBy(asc(attempts.n)).all()
  const hiddenFields = getHiddenFields(visibility)
  const names = await accountNames(db, hiddenFields)
  const { row } = joined
  return {
    ...blindedRow(toEntry(joined, { names, sensitive: visibility.sensitive }), hiddenFields),
    attempts: rows.map((attempt) => blindedAttempt(toAttempt(attempt, names), hiddenFields)),
    costFormula: row.model === null ? null : costFormula(row, row.model, row.serviceTier),
  }
}

const getHiddenFields = ({ scope, hidesAccounts = false, hidesKeys = false }: Visibility): HiddenFields => ({
  scope,
  hidesAccounts,
  hidesKeys,
})

const blindedAttempt = (attempt: LogAttempt, hiddenFields: HiddenFields): LogAttempt => ({
  ...blindedRow(attempt, hiddenFields),
  considered:
    hiddenFields.scope === 'all' ? attempt.considered.map((candidate) => blindedRow(candidate, hiddenFields)) : [],
})

/** Values that occur in the newest 50,000 matching rows. */
export const requestLogOptions = async (
  db: Db,
  filters: LogFilters,
  { scope }: Pick<Visibility, 'scope'>,
): Promise<LogOptions> => {
  const plan = filterPlan(filters, await getKeyIds(db, scope))
  const { accountId, keyId, model, reasoningEffort, status, errorCode } = requests
  const seen = await db.all<Seen>(sql`
    SELECT DISTINCT ${accountId} AS "accountId", ${keyId} AS "keyId", ${model} AS "model",
      ${reasoningEffort} AS "reasoningEffort", ${status} AS "status", ${errorCode} AS "errorCode"
    FROM ${newestScanned(plan)} WHERE ${plan.where ?? sql`TRUE`}`)
  const keys = await db.select({ id: apiKeys.id, name: apiKeys.name, keyPrefix: apiKeys.keyPrefix }).from(apiKeys).all()
  const known = new Map(keys.map((key) => [key.id, key]))
  const statuses = new Set(seen.map(logStatus))
  return {
    accountIds: scope === 'all' ? distinct(seen.flatMap((row) => row.accountId ?? [])) : [],
    modelOptions: getModelOptions(seen),
    apiKeys: distinct(seen.flatMap((row) => row.keyId ?? []))
      .map((id) => known.get(id) ?? { id, name: null, keyPrefix: null })
      .toSorted((a, b) => (a.name ?? '').localeCompare(b.name ?? '')),
    statuses: LOG_STATUSES.filter((one) => statuses.has(one)),
  }
}

type Seen = Pick<
  typeof requests.$inferSelect,
  'accountId' | 'keyId' | 'model' | 'reasoningEffort' | 'status' | 'errorCode'
>

const distinct = (values: readonly string[]): string[] => [...new Set(values)].sort()

/** Sorted by model, then effort, without effort first. */
const getModelOptions = (seen: readonly Seen[]): LogOptions['modelOptions'] => {
  const pairs = seen.flatMap(({ model, reasoningEffort }) => (model === null ? [] : { model, reasoningEffort }))
  const known = new Map(pairs.map((pair) => [JSON.stringify([pair.model, pair.reasoningEffort ?? '']), pair]))
  return [...known].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, pair]) => pair)
}

/** In the order of `places`. */
const entriesAt = async (db: Db, places: readonly Cursor[], visibility: Visibility): Promise<LogEntry[]> => {
  if (places.length === 0) return []
  const ids = places.map(({ id }) => id)
  const rows = await selectJoined(db).where(inArray(requests.id, ids)).all()
  const telling = { names: await accountNames(db, getHiddenFields(visibility)), sensitive: visibility.sensitive }
  const byId = new Map(rows.map((joined) => [joined.row.id, joined]))
  return ids.flatMap((id) => {
    const joined = byId.get(id)
    return joined ? [blindedRow(toEntry(joined, telling), getHiddenFields(visibility))] : []
  })
}
