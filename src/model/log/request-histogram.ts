/** Requests over time under the filters of the log, as bars: minutes for short ranges, hours or days for long ones. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { rejectedClients } from '../../../db/schema/rejections.ts'
import { requestHours, requestSpans, requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { getSummedUntil } from '../reports/request-spans.ts'
import { keyIdInScope } from '../users/view-scope.ts'
import { type RejectedQuery, rejectedBySpan } from './rejected-clients.ts'
import type { LogQuery } from './request-log-query.ts'
import { countBySpan, isMoreThan } from './request-log-scan.ts'
import type { Visibility } from './request-log-where.ts'

export interface LogHistogram {
  /** ISO 8601: the start of the first bar. */
  from: string
  stepMs: number
  bars: Bar[]
  /**
   * ISO 8601: with filters only the newest 15,000 to 30,000 requests are counted, back to this time. null: all are
   * counted.
   */
  countedFrom: string | null
}

export interface Bar {
  completed: number
  cancelled: number
  errors: number
}

/** Results within one step, which begins at `at` (ms since epoch). */
export interface SpanCount {
  at: number
  status: 'ok' | 'cancelled' | 'error'
  count: number
}

const MAX_BARS = 100
const LONGEST_MS = 30 * DAY_MS
const STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 7, 30, 365].map((days) => days * DAY_MS),
]
/** Counting from an index takes a tenth of a microsecond per row. */
const MAX_COUNTED = 300_000

/** null: the range has no requests. Starts with the first logged request. `now` is ms since epoch. */
export const logHistogram = async (
  db: Db,
  query: LogQuery,
  visibility: Visibility,
  now: number,
): Promise<LogHistogram | null> => {
  const range = getRange(query, await firstStart(db, visibility), now)
  if (!range) return null
  const stepMs = getStep(range)
  const asked = {
    ...query,
    since: getStart(range.since, stepMs),
    until: range.until,
    cursor: undefined,
    newer: undefined,
  }
  if (isFiltered(query) || visibility.scope !== 'all') {
    const { counts, countedFrom } = await countBySpan(db, asked, visibility, stepMs)
    return getHistogram(range, stepMs, counts, countedFrom)
  }
  const isHourly = stepMs >= HOUR_MS || (await isMoreThan(db, asked, visibility, MAX_COUNTED))
  const wideMs = isHourly ? Math.max(stepMs, HOUR_MS) : stepMs
  const counts = isHourly ? await hourCounts(db, range, wideMs) : await indexCounts(db, range, wideMs)
  return getHistogram(range, wideMs, counts)
}

/** The same for rejected clients; each counts as rejected. */
export const rejectedHistogram = async (
  db: Db,
  query: RejectedQuery,
  visibility: Visibility,
  now: number,
): Promise<LogHistogram | null> => {
  const range = getRange(query, await firstRejection(db, visibility), now)
  if (!range) return null
  const stepMs = getStep(range)
  return getHistogram(range, stepMs, await rejectedBySpan(db, { ...query, since: range.since }, visibility, stepMs))
}

interface Range {
  since: number
  until: number
}

const getRange = (query: Partial<Range>, first: number | null, now: number): Range | null => {
  if (first === null) return null
  const until = Math.min(query.until ?? now, now)
  const since = Math.max(query.since ?? until - LONGEST_MS, first)
  return since < until ? { since, until } : null
}

const firstStart = (db: Db, { scope }: Visibility): Promise<number | null> =>
  first(db, sql`SELECT min(started_at) AS first FROM ${requests} WHERE ${keyIdInScope(scope, requests.keyId) ?? ALL}`)

const firstRejection = (db: Db, { scope }: Visibility): Promise<number | null> =>
  first(
    db,
    sql`SELECT min(minute) AS first FROM ${rejectedClients} WHERE ${keyIdInScope(scope, rejectedClients.keyId) ?? ALL}`,
  )

const ALL = sql`TRUE`

const first = async (db: Db, query: SQL): Promise<number | null> =>
  (await db.all<{ first: number | null }>(query))[0]?.first ?? null

const getStep = ({ since, until }: Range): number =>
  STEPS_MS.find((stepMs) => (until - since) / stepMs <= MAX_BARS) ?? 365 * DAY_MS

const getStart = (at: number, stepMs: number): number => at - (at % stepMs)

/** By anything except time. */
const isFiltered = (query: LogQuery): boolean => {
  const { accountId, apiKeyId, model, reasoningEffort, modelOption, code, status, client, kind } = query
  const lists = [accountId, apiKeyId, model, reasoningEffort, modelOption, code, status, client, kind]
  return (
    query.search !== '' ||
    query.slow === true ||
    query.conversation_id !== undefined ||
    lists.some(({ length }) => length > 0)
  )
}

/** Total from one index, errors from another: reads no rows. */
const indexCounts = async (db: Db, { since, until }: Range, stepMs: number): Promise<SpanCount[]> => {
  const at = sql`started_at - started_at % ${stepMs}`
  const within = sql`started_at BETWEEN ${getStart(since, stepMs)} AND ${until}`
  const all = await db.all<SpanCount>(sql`SELECT ${at} AS at, 'ok' AS status, count(*) AS count
    FROM ${requests} WHERE ${within} GROUP BY at`)
  const others = await db.all<SpanCount>(sql`SELECT ${at} AS at, status, count(*) AS count
    FROM ${requests} WHERE status <> 'ok' AND ${within} GROUP BY at, status`)
  return [...all, ...others.flatMap((other) => [other, { ...other, status: 'ok' as const, count: -other.count }])]
}

/** From the hourly totals, of hours already added up and of the latest ones. */
const hourCounts = async (db: Db, { since, until }: Range, stepMs: number): Promise<SpanCount[]> => {
  const from = getStart(since, stepMs)
  const upTo = await getSummedUntil(db)
  const rows = await db.all<{ at: number; requests: number; errors: number; cancelled: number }>(sql`
    SELECT hour - hour % ${stepMs} AS at, sum(requests) AS requests, sum(errors) AS errors, sum(cancelled) AS cancelled
    FROM (
      SELECT start AS hour, requests, errors, cancelled FROM ${requestSpans}
      WHERE span_hours = 1 AND dimension = 'all' AND start BETWEEN ${from} AND ${until} AND start < ${upTo}
      UNION ALL
      SELECT hour, requests, errors, cancelled FROM ${requestHours}
      WHERE hour BETWEEN ${Math.max(from, upTo)} AND ${until}
    ) AS spans GROUP BY at`)
  return rows.flatMap(({ at, requests, errors, cancelled }): SpanCount[] => [
    { at, status: 'ok', count: requests - errors - cancelled },
    { at, status: 'error', count: errors },
    { at, status: 'cancelled', count: cancelled },
  ])
}

const MEMBERS = { ok: 'completed', cancelled: 'cancelled', error: 'errors' } as const

const getHistogram = (
  { since, until }: Range,
  stepMs: number,
  counts: readonly SpanCount[],
  countedFrom: number | null = null,
): LogHistogram => {
  const from = getStart(since, stepMs)
  const length = Math.floor((until - from) / stepMs) + 1
  const bars = Array.from({ length }, (): Bar => ({ completed: 0, cancelled: 0, errors: 0 }))
  for (const { at, status, count } of counts) {
    const bar = bars[(at - from) / stepMs]
    if (bar) bar[MEMBERS[status]] += count
  }
  return { from: iso(from), stepMs, bars, countedFrom: isoOrNull(countedFrom) }
}
