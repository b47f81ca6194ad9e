/** The filters of the request log as SQL conditions, and which of them an index supports in time order. */
import { and, eq, gte, inArray, isNull, lte, notInArray, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requests } from '../../../db/schema/requests.ts'
import {
  type Cursor,
  type LogFilters,
  type LogQuery,
  type LogStatus,
  QUOTA_CODES,
  RATE_LIMIT_CODES,
  SLOW_MS,
  type StatusFilter,
} from './request-log-query.ts'
import type { HiddenFields } from './request-view.ts'

/**
 * `sensitive`: the user has `conversations:read`; only then are conversations, addresses and user agents shown and
 * searched.
 */
export interface Visibility extends Pick<HiddenFields, 'scope'>, Partial<Omit<HiddenFields, 'scope'>> {
  sensitive: boolean
}

/**
 * A query in two parts: `within` is answered by one index in time order, so that only rows read cost anything; `where`
 * is checked on each of those rows.
 */
export interface Plan {
  within: SQL | undefined
  where: SQL | undefined
  /** Rows of these keys only, merged from the index of each. null: `within` says it all. */
  keys: readonly string[] | null
  /** Where rows are read: adjacent in the table, spread over it, or in the covering index of errors. */
  looksAt: 'neighbours' | 'scattered' | 'trouble'
}

/** `isRequestId`: the search is the id of a logged request. `keys`: the ids of those in scope; null: all. */
export const getPlan = (
  query: LogQuery,
  visibility: Visibility,
  { isRequestId, keys }: { isRequestId: boolean; keys: readonly string[] | null },
): Plan => {
  const parts = [
    part(isRequestId ? eq(requests.requestId, query.search) : searchWhere(query.search, visibility), {
      leads: isRequestId,
    }),
    ...filterParts(query),
    ...statusParts(query.status),
    part(query.slow ? sql`coalesce(${requests.firstEventMs}, ${requests.totalMs}) > ${SLOW_MS}` : undefined),
  ]
  return planFrom(parts, query, keys)
}

/** The same for filters alone. */
export const filterPlan = (filters: LogFilters, keys: readonly string[] | null): Plan =>
  planFrom(filterParts(filters), filters, keys)

/**
 * Rows after `cursor` (newest first), or before it. With an index without ids, only rows of the same time are read for
 * it.
 */
export const pastCursor = ({ startedAt, id }: Cursor, direction: 'older' | 'newer'): SQL => {
  const sign = sql.raw(direction === 'older' ? '<' : '>')
  return sql`(${requests.startedAt} ${sign}= ${startedAt} AND (${requests.startedAt} ${sign} ${startedAt} OR ${requests.id} ${sign} ${id}))`
}

/** As in the partial index: SQLite uses it only if `ok` is not a parameter. */
const TROUBLE = sql`${requests.status} <> 'ok'`

interface Part {
  where: SQL | undefined
  /** Whether an index finds these rows in time order; `trouble`: the index of errors. */
  leads: boolean | 'trouble'
  /** Needs only columns of the index of errors. */
  isInTrouble: boolean
}

/**
 * SQLite uses only one index; another condition in `within` would read uncounted rows. In a user's own scope the keys
 * always lead: where a scan stops would otherwise show how much others use.
 */
const planFrom = (
  all: readonly Part[],
  { since, until }: Pick<LogFilters, 'since' | 'until'>,
  keys: readonly string[] | null,
): Plan => {
  const parts = all.filter(({ where }) => where !== undefined)
  if (keys !== null) return planOfKeys(keys, and(...parts.map(({ where }) => where)), timeWhere(since, until))
  const trouble = parts.every(({ isInTrouble }) => isInTrouble) && parts.find(({ leads }) => leads === 'trouble')
  const lead = trouble || parts.find(({ leads }) => leads)
  const rest = parts.filter((part) => part !== lead)
  return {
    within: and(lead?.where, timeWhere(since, until)),
    where: and(...rest.map(({ where }) => where)),
    keys: null,
    looksAt: trouble ? 'trouble' : lead ? 'scattered' : 'neighbours',
  }
}

const planOfKeys = (keys: readonly string[], where: SQL | undefined, time: SQL | undefined): Plan => {
  const [first] = keys
  const only = first === undefined ? sql`FALSE` : keys.length === 1 ? eq(requests.keyId, first) : undefined
  return { within: and(only, time), where, keys: only ? null : keys, looksAt: 'scattered' }
}

const timeWhere = (since: number | undefined, until: number | undefined): SQL | undefined =>
  and(
    since === undefined ? undefined : gte(requests.startedAt, since),
    until === undefined ? undefined : lte(requests.startedAt, until),
  )

/** Most selective index first. */
const filterParts = (filters: LogFilters): Part[] => {
  const {
    conversation_id: conversation,
    apiKeyId,
    accountId,
    model,
    reasoningEffort,
    modelOption,
    code,
    client,
    kind,
  } = filters
  return [
    part(conversation === undefined ? undefined : eq(requests.conversationHash, conversation), { leads: true }),
    isNotOk(
      anyOf(apiKeyId, (ids) => inArray(requests.keyId, ids)),
      { leads: apiKeyId.length === 1 },
    ),
    isNotOk(
      anyOf(accountId, (ids) => inArray(requests.accountId, ids)),
      { leads: accountId.length === 1 },
    ),
    isNotOk(code.length > 0 ? TROUBLE : undefined, { leads: 'trouble' }),
    isNotOk(anyOf(code, (codes) => inArray(requests.errorCode, codes))),
    isNotOk(
      anyOf(model, (models) => inArray(requests.model, models)),
      { leads: model.length === 1 },
    ),
    part(kind.length === 0 ? undefined : inArray(requests.kind, kind)),
    part(anyOf(reasoningEffort, (efforts) => inArray(requests.reasoningEffort, efforts))),
    part(or(...modelOption.map(modelOptionWhere))),
    part(clientWhere(client)),
  ]
}

/** By the name that `clientName` takes from the user agent. */
export const clientWhere = (clients: readonly string[]): SQL | undefined => {
  const { userAgent } = requests
  return or(
    ...clients.map((name) =>
      and(
        sql`substr(${userAgent}, 1, length(${name})) = ${name}`,
        sql`substr(${userAgent}, length(${name}) + 1, 1) IN ('', '/', ' ')`,
      ),
    ),
  )
}

type Leading = Partial<Pick<Part, 'leads'>>

const part = (where: SQL | undefined, { leads = false }: Leading = {}): Part => ({ where, leads, isInTrouble: false })

const isNotOk = (where: SQL | undefined, { leads = false }: Leading = {}): Part => ({
  where,
  leads,
  isInTrouble: true,
})

const anyOf = (values: string[], where: (values: string[]) => SQL): SQL | undefined =>
  values.length === 0 ? undefined : where(values)

const modelOptionWhere = ({ model, reasoningEffort }: LogFilters['modelOption'][number]): SQL | undefined =>
  and(
    eq(requests.model, model),
    reasoningEffort === null ? isNull(requests.reasoningEffort) : eq(requests.reasoningEffort, reasoningEffort),
  )

const STATUS_WHERE: Record<Exclude<StatusFilter, 'all'>, () => SQL | undefined> = {
  ok: () => eq(requests.status, 'ok'),
  cancelled: () => eq(requests.status, 'cancelled'),
  failed: () => eq(requests.status, 'error'),
  rate_limit: () => and(eq(requests.status, 'error'), inArray(requests.errorCode, RATE_LIMIT_CODES)),
  quota: () => and(eq(requests.status, 'error'), inArray(requests.errorCode, QUOTA_CODES)),
  error: () =>
    and(
      eq(requests.status, 'error'),
      or(isNull(requests.errorCode), notInArray(requests.errorCode, [...RATE_LIMIT_CODES, ...QUOTA_CODES])),
    ),
} satisfies Record<LogStatus | 'failed', unknown>

/** Errors are few, and have their own index. */
const statusParts = (statuses: readonly StatusFilter[]): Part[] => {
  const wanted = statuses.filter((status) => status !== 'all')
  if (wanted.length === 0 || wanted.length < statuses.length) return []
  const isTrouble = !wanted.includes('ok')
  return [
    isNotOk(isTrouble ? TROUBLE : undefined, { leads: 'trouble' }),
    isNotOk(or(...wanted.map((status) => STATUS_WHERE[status]()))),
  ]
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
]
const SEARCHED_IF_SENSITIVE = [requests.clientIp, requests.userAgent]

/** LIKE ignores ASCII case; `%` and `_` are escaped. Hidden columns are not searched. */
const searchWhere = (search: string, { scope, sensitive, hidesAccounts, hidesKeys }: Visibility): SQL | undefined => {
  if (search === '') return undefined
  const pattern = `%${search.replace(/[\\%_]/g, '\\$&')}%`
  const like = (column: SQLWrapper) => sql`${column} LIKE ${pattern} ESCAPE '\\'`
  const inAccounts = sql`${requests.accountId} IN (SELECT id FROM ${accounts}
    WHERE ${like(sql`email`)} OR ${like(sql`alias`)})`
  const inKeys = sql`${requests.keyId} IN (SELECT id FROM ${apiKeys} WHERE ${like(sql`name`)})`
  return or(
    ...SEARCHED.map(like),
    ...(scope === 'all' ? [like(requests.accountId)] : []),
    ...(hidesAccounts ? [] : [like(requests.errorMessage), inAccounts]),
    ...(hidesKeys ? [] : [like(requests.keyId), inKeys]),
    ...(sensitive ? SEARCHED_IF_SENSITIVE.map(like) : []),
  )
}
