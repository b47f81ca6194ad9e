/** What may be asked of the request log: the query string of its routes, and the filters as conditions on its rows. */
import { and, eq, gte, inArray, isNull, lte, notInArray, or, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { requests } from '../../db/schema/requests.ts'
import type { Sight } from './request-log.ts'

/** How a turn ended, as the log shows it: `rate_limit` and `quota` are errors told apart by their code. */
export const LOG_STATUSES = ['ok', 'cancelled', 'rate_limit', 'quota', 'error'] as const
export type LogStatus = (typeof LOG_STATUSES)[number]

/** A parameter that is given once is a text, and one that is repeated a list. */
const many = <T extends z.ZodType>(item: T) =>
  z
    .preprocess((value) => (Array.isArray(value) || value === undefined ? value : [value]), z.array(item).max(200))
    .default([])

/** ISO 8601; without a zone it is UTC. */
export const Moment = z.iso
  .datetime({ offset: true, local: true })
  .transform((text) => Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`))

const SEPARATOR = ':::'

const ModelOption = z.string().transform((text) => {
  const [model = '', effort = ''] = text.split(SEPARATOR)
  return { model, reasoningEffort: effort === '' ? null : effort }
})

/** Opaque to clients: the last row they were shown. */
const Cursor = z.string().transform((text, context) => {
  const [, startedAt, id] = /^(\d{1,15})\.(.+)$/.exec(Buffer.from(text, 'base64url').toString()) ?? []
  if (startedAt !== undefined && id !== undefined) return { startedAt: Number(startedAt), id }
  context.addIssue({ code: 'custom', message: 'is not a cursor of this list' })
  return z.NEVER
})
export type Cursor = z.output<typeof Cursor>

export const cursorOf = ({ startedAt, id }: Cursor): string => Buffer.from(`${startedAt}.${id}`).toString('base64url')

/** The filters that the list and its options share. */
export const LogFilters = z.object({
  conversation_id: z.string().max(200).optional(),
  accountId: many(z.string()),
  apiKeyId: many(z.string()),
  model: many(z.string()),
  reasoningEffort: many(z.string()),
  modelOption: many(ModelOption),
  since: Moment.optional(),
  until: Moment.optional(),
})
export type LogFilters = z.output<typeof LogFilters>

export const LogQuery = LogFilters.extend({
  search: z.string().trim().max(200).default(''),
  status: many(z.enum([...LOG_STATUSES, 'all'])),
  limit: z.coerce.number().int().min(1).max(1000).default(50),
  /** For clients that count; they see rows twice when new ones arrive. Only short lists can be paged this way. */
  offset: z.coerce.number().int().min(0).max(10_000).default(0),
  cursor: Cursor.optional(),
})
/** `since` and `until` are ms since epoch. */
export type LogQuery = z.output<typeof LogQuery>

export const RATE_LIMIT_CODES = ['rate_limit_exceeded', 'usage_limit_reached']
export const QUOTA_CODES = ['insufficient_quota', 'usage_not_included', 'quota_exceeded']

export const logStatus = (row: { status: 'ok' | 'error' | 'cancelled'; errorCode: string | null }): LogStatus => {
  if (row.status !== 'error') return row.status
  if (RATE_LIMIT_CODES.includes(row.errorCode ?? '')) return 'rate_limit'
  return QUOTA_CODES.includes(row.errorCode ?? '') ? 'quota' : 'error'
}

/** Both ends of the time range are included. */
export const filtersWhere = (filters: LogFilters): SQL | undefined =>
  and(
    filters.conversation_id === undefined ? undefined : eq(requests.conversationHash, filters.conversation_id),
    anyOf(filters.accountId, (ids) => inArray(requests.accountId, ids)),
    anyOf(filters.apiKeyId, (ids) => inArray(requests.keyId, ids)),
    anyOf(filters.model, (models) => inArray(requests.model, models)),
    anyOf(filters.reasoningEffort, (efforts) => inArray(requests.reasoningEffort, efforts)),
    or(...filters.modelOption.map(modelOptionWhere)),
    filters.since === undefined ? undefined : gte(requests.startedAt, filters.since),
    filters.until === undefined ? undefined : lte(requests.startedAt, filters.until),
  )

/** Needs accounts and keys joined when it searches. What `sight` does not show cannot be searched for either. */
export const queryWhere = (query: LogQuery, sight: Sight): SQL | undefined =>
  and(filtersWhere(query), statusWhere(query.status), searchWhere(query.search, sight))

/** Rows that follow the one shown last, newest first. */
export const afterCursor = (cursor: Cursor | undefined): SQL | undefined =>
  cursor && sql`(${requests.startedAt}, ${requests.id}) < (${cursor.startedAt}, ${cursor.id})`

const anyOf = (values: string[], where: (values: string[]) => SQL): SQL | undefined =>
  values.length === 0 ? undefined : where(values)

const modelOptionWhere = ({ model, reasoningEffort }: LogFilters['modelOption'][number]): SQL | undefined =>
  and(
    eq(requests.model, model),
    reasoningEffort === null ? isNull(requests.reasoningEffort) : eq(requests.reasoningEffort, reasoningEffort),
  )

const STATUS_WHERE: Record<LogStatus, () => SQL | undefined> = {
  ok: () => eq(requests.status, 'ok'),
  cancelled: () => eq(requests.status, 'cancelled'),
  rate_limit: () => and(eq(requests.status, 'error'), inArray(requests.errorCode, RATE_LIMIT_CODES)),
  quota: () => and(eq(requests.status, 'error'), inArray(requests.errorCode, QUOTA_CODES)),
  error: () =>
    and(
      eq(requests.status, 'error'),
      or(isNull(requests.errorCode), notInArray(requests.errorCode, [...RATE_LIMIT_CODES, ...QUOTA_CODES])),
    ),
}

const statusWhere = (statuses: LogQuery['status']): SQL | undefined => {
  const wanted = statuses.filter((status) => status !== 'all')
  return wanted.length < statuses.length ? undefined : or(...wanted.map((status) => STATUS_WHERE[status]()))
}

const SEARCHED = [
  requests.requestId,
  requests.responseId,
  requests.route,
  requests.model,
  requests.reasoningEffort,
  requests.serviceTier,
  requests.status,
  requests.errorCode,
  requests.accountId,
]
const SEARCHED_WITH_ACCOUNTS = [requests.errorMessage, accounts.email, accounts.alias]
const SEARCHED_WITH_KEYS = [requests.keyId, apiKeys.name]
const SEARCHED_IF_SENSITIVE = [requests.clientIp, requests.userAgent]

/** LIKE ignores the case of ASCII letters; `%` and `_` stand for themselves. */
const searchWhere = (search: string, { sensitive, hidesAccounts, hidesKeys }: Sight): SQL | undefined => {
  if (search === '') return undefined
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  const columns = [
    ...SEARCHED,
    ...(hidesAccounts ? [] : SEARCHED_WITH_ACCOUNTS),
    ...(hidesKeys ? [] : SEARCHED_WITH_KEYS),
    ...(sensitive ? SEARCHED_IF_SENSITIVE : []),
  ]
  return or(...columns.map((column) => sql`${column} LIKE ${pattern} ESCAPE '\\'`))
}
