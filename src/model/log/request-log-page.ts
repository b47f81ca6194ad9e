/** Query parameters of the log page: those of the list, a named range, columns, an open request, and display options. */
import { z } from 'zod'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { filled, oneOrMany } from '../form-query.ts'
import type { RejectedQuery } from './rejected-clients.ts'
import { LogQuery, STATUS_FILTERS } from './request-log-query.ts'

/** Optional columns. */
const MORE_COLUMNS = ['total', 'effort', 'kind', 'route', 'tool', 'address', 'request', 'paid'] as const
export type MoreColumn = (typeof MORE_COLUMNS)[number]

/** Lengths in ms. */
const RANGES = {
  '1h': HOUR_MS,
  '24h': DAY_MS,
  '7d': 7 * DAY_MS,
  '30d': 30 * DAY_MS,
} as const
export type RangeName = keyof typeof RANGES

const RANGE_NAMES = Object.keys(RANGES) as RangeName[] // as: Object.keys loses the literal types

/** `rejected` shows rejected clients instead of requests. */
const PAGE_STATUSES = [...STATUS_FILTERS, 'rejected'] as const
export type PageStatus = (typeof PAGE_STATUSES)[number]

/** A single-choice form may send a value twice, of which the first is used; invalid values are rejected. */
export const LogPageQuery = LogQuery.omit({ offset: true }).extend({
  range: filled(z.enum(RANGE_NAMES)),
  status: oneOrMany(z.enum(PAGE_STATUSES)),
  columns: z.preprocess((value) => [value ?? []].flat(), z.array(z.enum(MORE_COLUMNS)).max(MORE_COLUMNS.length)),
  open: z.string().max(100).optional(),
  live: filled(z.stringbool()).describe('Show new requests as they end.'),
  grouped: filled(z.stringbool()).describe('`false` shows repeated errors one by one.'),
})
export type LogPageQuery = z.output<typeof LogPageQuery>

/** Converts the page's query to a log query at `now` (ms since epoch): `since` takes precedence over a named range. */
export const toLogQuery = (asked: LogPageQuery, now: number): LogQuery => {
  const { range, columns, open, live, grouped, status, ...query } = asked
  return {
    ...query,
    ...getSince({ range, since: query.since }, now),
    status: status.filter((one) => one !== 'rejected'),
    offset: 0,
  }
}

/** The same for rejected clients; null: nothing can match, because they have no account or error code. */
export const toRejectedQuery = (asked: LogPageQuery, now: number): RejectedQuery | null => {
  const { search, apiKeyId, model, until, limit, cursor } = asked
  const others = [asked.accountId, asked.code, asked.reasoningEffort, asked.modelOption, asked.client, asked.kind]
  if (asked.conversation_id !== undefined || asked.slow || others.some(({ length }) => length > 0)) return null
  return { search, apiKeyId, model, until, limit, cursor, reason: [], ...getSince(asked, now) }
}

const getSince = ({ range, since }: Pick<LogPageQuery, 'range' | 'since'>, now: number): { since?: number } => {
  if (since !== undefined) return { since }
  return range ? { since: now - RANGES[range] } : {}
}
