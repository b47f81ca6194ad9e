/** Rejected clients for the dashboard: a list, and those of the last hour. */
import {
  and,
  count,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  lt,
  lte,
  or,
  type SQL,
  type SQLWrapper,
  sql,
} from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { REJECTION_REASONS, rejectedClients } from '../../../db/schema/rejections.ts'
import type { RejectionReason } from '../../errors.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { filled, oneOrMany } from '../form-query.ts'
import { total } from '../sums.ts'
import { keyIdInScope } from '../users/view-scope.ts'
import type { SpanCount } from './request-histogram.ts'
import { Cursor, getCursor, Moment } from './request-log-query.ts'
import type { Visibility } from './request-log-where.ts'
import { REJECTION_RESULTS } from './request-result.ts'

export const RejectedQuery = z.object({
  search: z
    .string()
    .trim()
    .max(200)
    .default('')
    .describe('Searches client address, key start, model, route and user agent.'),
  reason: oneOrMany(z.enum(REJECTION_REASONS)).describe('Only these reasons.'),
  apiKeyId: oneOrMany(z.string()).describe('Only these keys (IDs).'),
  model: oneOrMany(z.string()).describe('Only these models, where the key does not allow the model.'),
  since: filled(Moment).describe('ISO 8601, inclusive. UTC if it has no zone.'),
  until: filled(Moment).describe('ISO 8601, inclusive. UTC if it has no zone.'),
  limit: z.coerce.number().int().min(1).max(1000).default(50).describe('Rows per page.'),
  cursor: filled(Cursor).describe('`nextCursor` of the previous page.'),
})
export type RejectedQuery = z.output<typeof RejectedQuery>

export type RejectedClient = ReturnType<typeof toClient>

export interface RejectedPage {
  /** Newest first. */
  items: RejectedClient[]
  nextCursor: string | null
}

/** Rejections of one client for one reason in the last hour. */
export interface RejectedLately {
  /** null: unknown, or several. */
  client: string | null
  reason: RejectionReason
  count: number
}

/** A page reads only the newest rows. */
const MAX_SCANNED = 50_000

export const rejectedPage = async (db: Db, query: RejectedQuery, visibility: Visibility): Promise<RejectedPage> => {
  const before = query.cursor === undefined ? undefined : lt(rejectedClients.id, Number(query.cursor.id))
  const rows = await db
    .select({ row: getTableColumns(rejectedClients), key: { name: apiKeys.name } })
    .from(rejectedClients)
    .leftJoin(apiKeys, eq(apiKeys.id, rejectedClients.keyId))
    .where(and(before, gt(rejectedClients.id, await lastUnscanned(db, before)), getWhere(query, visibility)))
    .orderBy(desc(rejectedClients.id))
    .limit(query.limit + 1)
    .all()
  const shown = rows.slice(0, query.limit)
  const last = shown.at(-1)?.row
  return {
    items: shown.map(({ row, key }) => toClient(row, key?.name ?? null, visibility)),
    nextCursor: last && rows.length > shown.length ? getCursor({ startedAt: last.minute, id: String(last.id) }) : null,
  }
}

const lastUnscanned = async (db: Db, before: SQL | undefined): Promise<number> =>
  (
    await db
      .select({ id: rejectedClients.id })
      .from(rejectedClients)
      .where(before)
      .orderBy(desc(rejectedClients.id))
      .limit(1)
      .offset(MAX_SCANNED)
      .get()
  )?.id ?? 0

/** Hidden columns are neither searched nor filtered. */
const getWhere = (query: RejectedQuery, visibility: Visibility): SQL | undefined => {
  const { search, reason, apiKeyId, model, since, until } = query
  const { client, keyStart, keyId, model: wanted, route, userAgent, lastAt, minute } = rejectedClients
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  const like = (column: SQLWrapper) => sql`coalesce(${column}, '') LIKE ${pattern} ESCAPE '\\'`
  const searched = [
    wanted,
    route,
    ...(visibility.hidesKeys ? [] : [keyStart]),
    ...(visibility.sensitive ? [client, userAgent] : []),
  ]
  return and(
    keyIdInScope(visibility.scope, keyId),
    since === undefined ? undefined : gte(lastAt, since),
    until === undefined ? undefined : lte(minute, until),
    search === '' ? undefined : or(...searched.map(like)),
    reason.length === 0 ? undefined : inArray(rejectedClients.reason, reason),
    apiKeyId.length === 0 ? undefined : inArray(keyId, apiKeyId),
    model.length === 0 ? undefined : inArray(wanted, model),
  )
}

const toClient = (row: typeof rejectedClients.$inferSelect, keyName: string | null, visibility: Visibility) => ({
  id: String(row.id),
  minute: iso(row.minute),
  lastAt: iso(row.lastAt),
  reason: row.reason,
  result: REJECTION_RESULTS[row.reason],
  /** May include other keys from the same address, which users who see only their own must not count. */
  count: visibility.scope === 'all' ? row.count : 1,
  /** null: unknown, hidden, or several (`isSeveral`). */
  clientIp: visibility.sensitive && row.client !== SEVERAL ? row.client || null : null,
  isSeveral: row.client === SEVERAL,
  keyStart: visibility.hidesKeys ? null : row.keyStart,
  apiKeyId: visibility.hidesKeys ? null : row.keyId,
  apiKeyName: visibility.hidesKeys ? null : keyName,
  model: row.model,
  route: row.route,
  useragent: visibility.sensitive ? row.userAgent : null,
})

/** The number of rejections, as errors, in steps of `stepMs`. */
export const rejectedBySpan = async (
  db: Db,
  query: RejectedQuery,
  visibility: Visibility,
  stepMs: number,
): Promise<SpanCount[]> =>
  (
    await db
      .select({
        span: sql<number>`${rejectedClients.minute} / ${sql.raw(String(stepMs))}`.as('span'),
        count: visibility.scope === 'all' ? total(rejectedClients.count) : count(),
      })
      .from(rejectedClients)
      .where(and(gt(rejectedClients.id, await lastUnscanned(db, undefined)), getWhere(query, visibility)))
      .groupBy(sql`span`)
      .all()
  ).map(({ span, count }) => ({ at: span * stepMs, status: 'error', count }))

/** As written by `proxy/ledger/rejections.ts`. */
const SEVERAL = '*'

/** In the hour before `now` (ms since epoch), most first. */
export const rejectedLately = async (db: Db, now: number): Promise<RejectedLately[]> =>
  (
    await db
      .select({ client: rejectedClients.client, reason: rejectedClients.reason, count: total(rejectedClients.count) })
      .from(rejectedClients)
      .where(and(gte(rejectedClients.minute, now - HOUR_MS - MINUTE_MS), gt(rejectedClients.lastAt, now - HOUR_MS)))
      .groupBy(rejectedClients.client, rejectedClients.reason)
      .all()
  )
    .map((group) => ({ ...group, client: group.client === SEVERAL ? null : group.client || null }))
    .toSorted((a, b) => b.count - a.count)
