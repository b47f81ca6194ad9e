/** The query parameters of the log page: those of the list, a named range, columns, an open request, and how it is shown. */
import { z } from 'zod'
import { DAY_MS, HOUR_MS } from '../lib/durations.ts'
import { filled, many } from './form-query.ts'
import type { RejectedQuery } from './rejected-clients.ts'
import { LogQuery, STATUS_FILTERS } from './request-log-query.ts'

/** Columns in addition to those that are always shown. */
const MORE_COLUMNS = ['total', 'effort', 'kind', 'route', 'tool', 'address', 'request', 'paid'] as const
export type MoreColumn = (typeof MORE_COLUMNS)[number]

/** The length of each, in ms. */
const RANGES = {
  '1h': HOUR_MS,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '30d': 30 * DAY_MS,
} as const
export type RangeName = keyof typeof RANGES

const RANGE_NAMES = Object.keys(RANGES) as RangeName[] // as: Object.keys forgets the literal types

/** `rejected` shows the list of rejected clients in place of requests. */
const PAGE_STATUSES = [...STATUS_FILTERS, 'rejected'] as const
export type PageStatus = (typeof PAGE_STATUSES)[number]

/** The first of several is what a form of single choices sends; what a link made up is refused like everywhere. */
export const LogPageQuery = LogQuery.omit({ offset: true }).extend({
  range: filled(z.enum(RANGE_NAMES)),
  status: many(z.enum(PAGE_STATUSES)),
  columns: z.preprocess((value) => [value ?? []].flat(), z.array(z.enum(MORE_COLUMNS)).max(MORE_COLUMNS.length)),
  open: z.string().max(100).optional(),
  live: filled(z.stringbool()).describe('Show new requests as they end.'),
  grouped: filled(z.stringbool()).describe('`false` shows repeated errors one by one.'),
})
export type LogPageQuery = z.output<typeof LogPageQuery>

/** The same as a question to the log at `now` (ms since epoch): what is said by `since` goes before a range by name. */
export const toLogQuery = (asked: LogPageQuery, now: number): LogQuery => {
  const { range, columns, open, live, grouped, status, ...query } = asked
  return {
    ...query,
    ...sinceOf({ range, since: query.since }, now),
    status: status.filter((one) => one !== 'rejected'),
    offset: 0,
  }
}

/** The same as a question to the list of rejected clients; null: nothing in it can match, as no account or error code is known of one. */
export const toRejectedQuery = (asked: LogPageQuery, now: number): RejectedQuery | null => {
  const { search, apiKeyId, model, until, limit, cursor } = asked
  const others = [asked.accountId, asked.code, asked.reasoningEffort, asked.modelOption, asked.client]
  if (asked.conversation_id !== undefined || asked.slow || others.some(({ length }) => length > 0)) return null
  return { search, apiKeyId, model, until, limit, cursor, reason: [], ...sinceOf(asked, now) }
}

const sinceOf = ({ range, since }: Pick<LogPageQuery, 'range' | 'since'>, now: number): { since?: number } => {
  if (since !== undefined) return { since }
  return range ? { since: now - RANGES[range] } : {}
}
