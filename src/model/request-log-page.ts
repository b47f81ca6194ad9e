/** What the page of the log may be asked for beyond the list: a range by name, columns, an open request. */
import { z } from 'zod'
import { DAY_MS, HOUR_MS } from '../lib/durations.ts'
import { filled } from './form-query.ts'
import { LogQuery } from './request-log-query.ts'

/** Columns beside the seven that are always there. */
const MORE_COLUMNS = ['tokens', 'total', 'effort', 'kind', 'route', 'tool', 'address', 'request', 'paid'] as const
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

/** The first of several is what a form of single choices sends; what a link made up is refused like everywhere. */
export const LogPageQuery = LogQuery.omit({ offset: true }).extend({
  range: filled(z.enum(RANGE_NAMES)),
  columns: z.preprocess((value) => [value ?? []].flat(), z.array(z.enum(MORE_COLUMNS)).max(MORE_COLUMNS.length)),
  open: z.string().max(100).optional(),
})
export type LogPageQuery = z.output<typeof LogPageQuery>

/** The same as a question to the log at `now` (ms since epoch): what is said by `since` goes before a range by name. */
export const toLogQuery = ({ range, columns: _, open: __, ...query }: LogPageQuery, now: number): LogQuery => ({
  ...query,
  offset: 0,
  ...(range && query.since === undefined && { since: now - RANGES[range] }),
})
