/**
 * `/logs` and `/api/request-logs`: client requests and their results, with filters in the URL, one open request, and
 * new requests for the live tail.
 */

import { type LogFilterValues, type LogLinks, type Logs, LogsPage } from '../../../views/logs/page.tsx'
import { type RequestLinks, RequestPage, type RequestView } from '../../../views/logs/request.tsx'
import { type LogTail, NewRows } from '../../../views/logs/rows.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { requiresOwn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { linkFrom } from '../../http/link-from.ts'
import { getPathId } from '../../http/path-id.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { unknownParameters } from '../../http/unknown-parameters.ts'
import { iso } from '../../lib/iso.ts'
import { PRICES_VERSION } from '../../model/catalog/pricing.ts'
import { RejectedQuery } from '../../model/log/rejected-clients.ts'
import type { LogHistogram } from '../../model/log/request-histogram.ts'
import type { LogDetail, LogPage } from '../../model/log/request-log.ts'
import { keyNames } from '../../model/log/request-log-choices.ts'
import { LogPageQuery, toLogQuery, toRejectedQuery } from '../../model/log/request-log-page.ts'
import { LogFilters, LogQuery, Moment } from '../../model/log/request-log-query.ts'
import { stickyKey } from '../../model/sticky/session-key.ts'
import { holds } from '../../model/users/permissions.ts'
import { accountChoices } from '../choices.ts'
import { conversationPath } from '../conversations.ts'
import { toReader } from '../reader-for-caller.ts'
import { stickyLink } from '../sticky-sessions.ts'
import { getHiddenFields, getVisibility, requireVisibility } from '../visibility.ts'

export const listRequests = createHandlers(requiresOwn('dashboard:read'), query(LogQuery), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  return c.json(await toReader(c).requestLogs(asked, getVisibility(c)))
})

/**
 * `status` is accepted but does not filter the offered statuses. `pricesVersion` is the current table's; stored costs
 * may be older.
 */
export const listRequestOptions = createHandlers(requiresOwn('dashboard:read'), query(LogFilters), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  const options = await toReader(c).requestLogOptions(asked, getVisibility(c))
  const { hidesKeys } = getHiddenFields(c.var.principal)
  return c.json({ ...options, ...(hidesKeys && { apiKeys: [] }), pricesVersion: PRICES_VERSION })
})

export const listRejectedClients = createHandlers(requiresOwn('dashboard:read'), query(RejectedQuery), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  return c.json(await toReader(c).rejectedPage(asked, getVisibility(c)))
})

export const showRequest = createHandlers(requiresOwn('dashboard:read'), async (c) =>
  c.json(await getRequest(c, getPathId(c))),
)

/** The request with row id `id`, as the user may see it. Throws `not_found`. */
const getRequest = async (c: Ctx, id: string): Promise<LogDetail> => {
  const found = await toReader(c).requestLog(id, getVisibility(c))
  if (!found)
    throw new AppError('not_found', {
      message: 'Request not found. It may have been deleted from the log, or the link is wrong.',
    })
  return found
}

/** `GET /logs`. Throws `validation_error`, `permission_required`, and `not_found` for an unknown open request. */
export const showLogs = createHandlers(requiresOwn('dashboard:read'), query(LogPageQuery), async (c) =>
  reply(c, await getLogs(c, c.req.valid('query')), LogsPage),
)

const requestView = (c: Ctx, found: LogDetail): RequestView => ({
  ...found,
  generatedAt: iso(c.env.clock.now()),
  showsAccounts: getVisibility(c).scope === 'all',
  isCaptured: isCaptured(c, found.id),
  links: requestLinks(c, found),
})

const requestLinks = (c: Ctx, { conversationId, accountId }: LogDetail): RequestLinks => {
  const keyQuery = conversationId && stickyKey(conversationId)
  const filter = keyQuery ? { keyQuery } : accountId ? { accountQuery: accountId } : null
  return {
    conversation: conversationId && conversationPath(conversationId),
    sessions: filter && holds(c.var.principal.grants, 'ops:write') ? stickyLink(filter) : null,
  }
}

/** `GET /logs/:id`: a page, or the content of the drawer. */
export const showRequestPage = createHandlers(requiresOwn('dashboard:read'), async (c) => {
  const found = await getRequest(c, getPathId(c))
  return reply(c, requestView(c, found), RequestPage)
})

const isCaptured = (c: Ctx, id: string): boolean =>
  holds(c.var.principal.grants, 'conversations:read') && c.env.captures.holding(id).length > 0

const TailQuery = LogPageQuery.extend({ after: Moment })

/** `GET /logs/tail?after=…`: requests that ended since. Intervals overlap slightly, because rows are written in beats. */
export const tailLogs = createHandlers(requiresOwn('dashboard:read'), query(TailQuery), async (c) => {
  const { after, ...asked } = c.req.valid('query')
  requireVisibility(c, asked)
  const now = c.env.clock.now()
  const tail: LogTail = {
    generatedAt: iso(now),
    requests: await toReader(c).newRequests(toLogQuery(asked, now), getVisibility(c), after),
    showsAccounts: getVisibility(c).scope === 'all',
    columns: asked.columns,
    next: tailLink(c, now),
    here: linkFrom(c, '/logs', { drop: PLACES }),
  }
  return reply(c, tail, NewRows)
})

const getLogs = async (c: Ctx, asked: LogPageQuery): Promise<Logs> => {
  requireVisibility(c, asked)
  const now = c.env.clock.now()
  const visibility = getVisibility(c)
  const [page, histogram, open] = await Promise.all([
    asksForRejected(asked)
      ? getRejected(c, asked, now)
      : toReader(c)
          .requestLogs(toLogQuery(asked, now), visibility)
          .then((requests) => ({ ...requests, rejected: null })),
    getHistogram(c, asked, now),
    asked.open ? getRequest(c, asked.open) : null,
  ])
  return {
    ...page,
    generatedAt: iso(now),
    filters: { ...getFilters(asked), further: getFurther(c) },
    options: await getOptions(c),
    showsAccounts: visibility.scope === 'all',
    columns: asked.columns,
    histogram,
    limit: c.req.query('limit') ? asked.limit : null,
    isLive: asked.live ?? false,
    isGrouped: asked.grouped ?? true,
    links: getLinks(c, { asked, page, now }),
    open: open && requestView(c, open),
    isSensitive: visibility.sensitive,
    hasCaptures: visibility.sensitive || holds(c.var.principal.grants, 'security:write'),
  }
}

const asksForRejected = ({ status }: LogPageQuery): boolean => status.includes('rejected')

const getHistogram = async (c: Ctx, asked: LogPageQuery, now: number): Promise<LogHistogram | null> => {
  if (!asksForRejected(asked)) return toReader(c).logHistogram(toLogQuery(asked, now), getVisibility(c), now)
  const question = toRejectedQuery(asked, now)
  return question && toReader(c).rejectedHistogram(question, getVisibility(c), now)
}

/** As a log page without requests, which can only lead back to the newest page. */
const getRejected = async (c: Ctx, asked: LogPageQuery, now: number) => {
  const question = toRejectedQuery(asked, now)
  const { items, nextCursor } = question
    ? await toReader(c).rejectedPage(question, getVisibility(c))
    : { items: [], nextCursor: null }
  return { ...NO_REQUESTS, rejected: items, nextCursor, hasMore: nextCursor !== null }
}

const NO_REQUESTS: LogPage = {
  requests: [],
  total: null,
  moreThan: null,
  hasMore: false,
  nextCursor: null,
  prevCursor: null,
  searchedTo: null,
}

const getFilters = (asked: LogPageQuery): Omit<LogFilterValues, 'further'> => ({
  range: asked.since === undefined ? (asked.range ?? null) : null,
  since: asked.since === undefined ? null : iso(asked.since),
  until: asked.until === undefined ? null : iso(asked.until),
  account: asked.accountId,
  key: asked.apiKeyId,
  model: asked.model,
  status: asked.status,
  code: asked.code,
  kind: asked.kind,
  search: asked.search,
  slow: asked.slow ?? false,
  conversation: asked.conversation_id ?? null,
})

/** Form fields with one value each, whether or not the user may filter by key. */
const SINGLE_FIELDS = ['accountId', 'apiKeyId', 'model', 'status', 'code', 'kind']
const WITHOUT_FIELD = ['reasoningEffort', 'modelOption', 'client']

const getFurther = (c: Ctx): LogFilterValues['further'] => {
  const { searchParams } = new URL(c.req.url)
  const { hidesKeys } = getHiddenFields(c.var.principal)
  const getValues = (name: string) => searchParams.getAll(name).filter((value) => value !== '')
  return [
    ...SINGLE_FIELDS.flatMap((name) => {
      const hasField = name !== 'apiKeyId' || !hidesKeys
      return getValues(name)
        .slice(hasField ? 1 : 0)
        .map((value): [string, string] => [name, value])
    }),
    ...WITHOUT_FIELD.flatMap((name) => getValues(name).map((value): [string, string] => [name, value])),
  ]
}

/** From current accounts, keys and models; reading them from the log would take too long. */
export const getOptions = async (c: Ctx): Promise<Logs['options']> => {
  const { scope, hidesKeys } = getHiddenFields(c.var.principal)
  return {
    accounts: scope === 'all' || holds(c.var.principal.grants, 'accounts:read') ? accountChoices(c) : [],
    keys: hidesKeys ? null : (await keyNames(c.env.db, scope)).toSorted((a, b) => a.name.localeCompare(b.name)),
    models: [...new Set(c.env.pool.all().flatMap(({ models }) => [...(models ?? [])]))].toSorted(),
  }
}

/** Parameters for the position in the list. */
const PLACES = ['cursor', 'newer', 'open', 'after'] as const
/** Parameters that stay when the filters are cleared. */
const LOOKS = ['columns', 'limit', 'live', 'grouped'] as const
/** Parameters that choose between the views above the filters. */
const VIEWS = ['status', 'slow'] as const

const getLinks = (c: Ctx, { asked, page, now }: { asked: LogPageQuery; page: LogPage; now: number }) => {
  const newest = linkFrom(c, '/logs', { drop: PLACES })
  const clear = linkFrom(c, '/logs', { drop: [...PLACES, ...FILTERS, ...unknownParameters(c, LogPageQuery)] })
  const view = (add: Record<string, string>) => linkFrom(c, '/logs', { drop: [...PLACES, ...VIEWS], add })
  const file = (format: 'csv' | 'json') =>
    linkFrom(c, '/logs/export', { drop: [...PLACES, ...LOOKS, ...unknownParameters(c, LogPageQuery)], add: { format } })
  return {
    here: linkFrom(c, '/logs', { drop: ['open', 'after'] }),
    all: view({}),
    errors: view({ status: 'failed' }),
    rejected: view({ status: 'rejected' }),
    slow: view({ slow: 'true' }),
    ungrouped: linkFrom(c, '/logs', { drop: ['open', 'after', 'grouped'], add: { grouped: 'false' } }),
    csv: file('csv'),
    json: file('json'),
    older: page.nextCursor && linkFrom(c, '/logs', { drop: [...PLACES, 'live'], add: { cursor: page.nextCursor } }),
    newer: page.prevCursor && linkFrom(c, '/logs', { drop: PLACES, add: { newer: page.prevCursor } }),
    newest,
    clear: clear === newest ? null : clear,
    tail: asksForRejected(asked) || asked.cursor || asked.newer || asked.until !== undefined ? null : tailLink(c, now),
  } satisfies LogLinks
}

const FILTERS = Object.keys(LogPageQuery.shape).filter((name) => !([...PLACES, ...LOOKS] as string[]).includes(name))

/** Requests that ended this long ago are stored: the ledger writes ten times a second. */
const SETTLED_MS = 2000

const tailLink = (c: Ctx, now: number): string =>
  linkFrom(c, '/logs/tail', {
    drop: [...PLACES, 'live', ...unknownParameters(c, LogPageQuery)],
    add: { after: iso(now - SETTLED_MS) },
  })
