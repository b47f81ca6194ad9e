/** Finds the rows of a log page, reading at most 50,000 rows. */
import { and, eq, inArray, type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { getKeyIds } from '../users/view-scope.ts'
import type { SpanCount } from './request-histogram.ts'
import type { Cursor, LogQuery } from './request-log-query.ts'
import { getPlan, type Plan, pastCursor, type Visibility } from './request-log-where.ts'

/** Reading adjacent rows costs a microsecond each (SQLite 3.54: 50 ms with a search in every column). */
export const MAX_SCANNED = 50_000
/** Rows found by an index are spread over the file and cost more than two microseconds each. */
const MAX_SCATTERED = 15_000

/** A search reads every column of a row. 25,000 rows take about 60 ms: an estimate, at two microseconds a row. */
const MAX_COUNTED_BY_SEARCH = 25_000
/** For the histogram, which reads the status of every row that it counts. */
const MAX_COUNTED = 30_000

interface Scan {
  /** In search order, at most as many as wanted. */
  found: Cursor[]
  /** Where the scan stopped early; null: enough were found, or there are no more. */
  stoppedAt: Cursor | null
}

/** Newest first from `cursor`, or oldest first from `newer`. */
export const scan = async (db: Db, query: LogQuery, visibility: Visibility, wanted: number): Promise<Scan> => {
  const direction = getDirection(query)
  const plan = await placedPlan(db, query, visibility)
  const found = await db.all<Cursor>(
    sql`SELECT id, "startedAt" FROM ${scanned(plan, ORDER[direction])} AS scanned WHERE fits LIMIT ${wanted}`,
  )
  return { found, stoppedAt: found.length < wanted ? await lastScanned(db, plan, direction) : null }
}

/** The number of rows matching `query`, up to `most + 1`; null: more rows would have to be read than allowed. */
export const countRows = async (
  db: Db,
  query: LogQuery,
  visibility: Visibility,
  most: number,
): Promise<number | null> => {
  const plan = await placedPlan(db, query, visibility)
  if (plan.where && (await timeScanned(db, plan, 'older')) !== null) return null
  const [row] = await db.all<{ count: number }>(
    sql`SELECT count(*) AS count FROM (
      SELECT 1 FROM ${scanned(plan, TIME.older)} AS scanned WHERE fits LIMIT ${most + 1}) AS counted`,
  )
  return row?.count ?? 0
}

/**
 * Results of the newest readable rows, in steps of `stepMs`. `countedFrom` (ms since epoch): where the scan stopped;
 * null: all were counted.
 */
export const countBySpan = async (
  db: Db,
  query: LogQuery,
  visibility: Visibility,
  stepMs: number,
): Promise<{ counts: SpanCount[]; countedFrom: number | null }> => {
  const plan = await placedPlan(db, query, visibility)
  const readsText = query.search !== '' || query.client.length > 0
  const limit = Math.min(most(plan), readsText ? MAX_COUNTED_BY_SEARCH : MAX_COUNTED)
  const counts = await db.all<SpanCount>(
    sql`SELECT at - at % ${stepMs} AS at, status, count(*) AS count FROM (
      ${getRows(plan, sql`started_at, started_at AS at, status, ${plan.where ?? ALL} AS fits`)} ORDER BY ${TIME.older} LIMIT ${limit}) AS scanned
    WHERE fits GROUP BY 1, status`,
  )
  return { counts, countedFrom: await timeScanned(db, plan, 'older', limit) }
}

/** Whether the indexed filters match more than `many` rows. */
export const isMoreThan = async (db: Db, query: LogQuery, visibility: Visibility, many: number): Promise<boolean> =>
  (
    await db.all(
      sql`${getRows(await placedPlan(db, query, visibility), sql`started_at`)} ORDER BY ${TIME.older} LIMIT 1 OFFSET ${many}`,
    )
  ).length > 0

export const getDirection = ({ cursor, newer }: LogQuery): Direction => (!cursor && newer ? 'newer' : 'older')

const placedPlan = async (db: Db, query: LogQuery, visibility: Visibility): Promise<Plan> => {
  const keys = await getKeyIds(db, visibility.scope)
  const plan = getPlan(query, visibility, { isRequestId: await isRequestId(db, query.search), keys })
  const from = query.cursor ?? query.newer
  return { ...plan, within: and(plan.within, from && pastCursor(from, getDirection(query))) }
}

/** The newest rows `plan` may read, aliased as the table. */
export const newestScanned = (plan: Plan): SQL =>
  sql`(${getRows(plan, sql`*`)}
    ORDER BY ${ORDER.older} LIMIT ${plan.looksAt === 'neighbours' ? MAX_SCANNED : MAX_SCATTERED}) AS ${requests}`

/** The rows of `plan`, to be ordered and limited: SQLite then merges those of several keys, each in order of its index. */
const getRows = ({ within, keys }: Plan, columns: SQL): SQL => {
  const ofKeys = keys?.map((id) => eq(requests.keyId, id)) ?? [undefined]
  const parts = ofKeys.map((ofKey) => sql`SELECT ${columns} FROM ${requests} WHERE ${and(ofKey, within) ?? ALL}`)
  return sql.join(parts, sql` UNION ALL `)
}

/** Per answer: as many as a live list keeps, so that skipping more leaves no gap in it. */
const MAX_NEW = 200
/** For some seconds, with selective filters: enough for two thousand requests per second. */
const MAX_NEW_SCANNED = 20_000

/** Requests that ended after `after` (ms since epoch), by start, newest first. Sorts ids, not rows. */
export const endedSince = async (db: Db, query: LogQuery, visibility: Visibility, after: number): Promise<Cursor[]> => {
  const { within, where, keys } = getPlan(query, visibility, {
    isRequestId: false,
    keys: await getKeyIds(db, visibility.scope),
  })
  return db.all<Cursor>(
    sql`SELECT id, "startedAt" FROM (
      SELECT id, started_at AS "startedAt", ${and(within, keysWhere(keys), where) ?? ALL} AS fits FROM ${requests}
      WHERE started_at + total_ms > ${after} ORDER BY started_at + total_ms DESC LIMIT ${MAX_NEW_SCANNED}) AS scanned
    WHERE fits ORDER BY "startedAt" DESC, id DESC LIMIT ${MAX_NEW}`,
  )
}

/** For reads that may look at rows of other keys. */
const keysWhere = (keys: Plan['keys']): SQL | undefined =>
  keys === null ? undefined : inArray(requests.keyId, [...keys])

type Direction = 'older' | 'newer'

const ALL = sql`TRUE`

const ORDER: Record<Direction, SQL> = {
  older: sql`started_at DESC, id DESC`,
  newer: sql`started_at, id`,
}

/** Without ordering rows of the same time, for which an index without ids would have to read them. */
const TIME: Record<Direction, SQL> = { older: sql`started_at DESC`, newer: sql`started_at` }

/**
 * A subquery read row by row, so its order is kept and reading stops with the page. Selects only needed columns, so
 * that a covering index is enough.
 */
const scanned = (plan: Plan, order: SQL): SQL =>
  sql`(${getRows(plan, sql`id, started_at, started_at AS "startedAt", ${plan.where ?? ALL} AS fits`)}
    ORDER BY ${order} LIMIT ${most(plan)})`

/** The last row that may be read; null: there are fewer. Reads few rows of the table. */
const lastScanned = async (db: Db, plan: Plan, direction: Direction): Promise<Cursor | null> => {
  const startedAt = await timeScanned(db, plan, direction)
  if (startedAt === null) return null
  const within = and(plan.within, keysWhere(plan.keys)) ?? ALL
  const sign = sql.raw(direction === 'older' ? '>' : '<')
  const [before] = await db.all<{ count: number }>(
    sql`SELECT count(*) AS count FROM ${requests} WHERE ${within} AND started_at ${sign} ${startedAt}`,
  )
  const place = most(plan) - 1 - (before?.count ?? 0)
  const [last] = await db.all<Cursor>(
    sql`SELECT id, started_at AS "startedAt" FROM ${requests} WHERE ${within} AND started_at = ${startedAt}
      ORDER BY ${ORDER[direction]} LIMIT 1 OFFSET ${place}`,
  )
  return last ?? null
}

/** When it started. The offset runs over an index. */
const timeScanned = async (db: Db, plan: Plan, direction: Direction, limit = most(plan)): Promise<number | null> =>
  (
    await db.all<{ startedAt: number }>(
      sql`${getRows(plan, sql`started_at, started_at AS "startedAt"`)} ORDER BY ${TIME[direction]} LIMIT 1 OFFSET ${limit - 1}`,
    )
  )[0]?.startedAt ?? null

const most = ({ looksAt }: Plan): number => (looksAt === 'scattered' ? MAX_SCATTERED : MAX_SCANNED)

/** An id is found through its index, however old it is. */
const isRequestId = async (db: Db, search: string): Promise<boolean> =>
  /^\S{16,200}$/.test(search) &&
  (await db.all(sql`SELECT 1 FROM ${requests} WHERE request_id = ${search} LIMIT 1`)).length > 0
