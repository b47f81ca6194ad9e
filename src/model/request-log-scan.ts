/** Finds the rows of a page of the request log without ever looking at more than 50,000 of them. */
import { and, type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import type { SpanCount } from './request-histogram.ts'
import type { Cursor, LogQuery } from './request-log-query.ts'
import { beyond, type Plan, planOf, type Sight } from './request-log-where.ts'

/** Looking at a row costs a microsecond where neighbours follow one another (measured: 50 ms with a search in every column). */
export const MAX_SCANNED = 50_000
/** Behind a filter with an index of its own rows lie scattered over the file, at more than two microseconds each. */
const MAX_SCATTERED = 15_000

/** A search reads every column of a row. 25,000 rows take about 60 ms: an estimate, at two microseconds a row. */
const MAX_COUNTED_BY_SEARCH = 25_000

interface Scan {
  /** In the direction of the search, at most as many as were wanted. */
  found: Cursor[]
  /** Where looking ended before the log did; null: as many were found as were wanted, or there are no more. */
  stoppedAt: Cursor | null
}

/** Newest first from `cursor`, or oldest first from `newer`. */
export const scan = (db: Db, query: LogQuery, sight: Sight, wanted: number): Scan => {
  const direction = directionOf(query)
  const plan = placedPlan(db, query, sight)
  const found = db.all<Cursor>(
    sql`SELECT id, "startedAt" FROM ${scanned(plan, ORDER[direction])} WHERE fits LIMIT ${wanted}`,
  )
  return { found, stoppedAt: found.length < wanted ? lastScanned(db, plan, direction) : null }
}

/** How many rows there are under `query`, up to `most + 1`; null: more have to be looked at than one page may. */
export const countRows = (db: Db, query: LogQuery, sight: Sight, most: number): number | null => {
  const plan = placedPlan(db, query, sight)
  if (plan.where && timeScanned(db, plan, 'older') !== null) return null
  const [row] = db.all<{ count: number }>(
    sql`SELECT count(*) AS count FROM (SELECT 1 FROM ${scanned(plan, TIME.older)} WHERE fits LIMIT ${most + 1})`,
  )
  return row?.count ?? 0
}

/**
 * The newest rows that may be looked at, by how they ended, in steps of `stepMs`. `countedFrom` (ms since epoch) is where
 * looking stopped; null: all were counted.
 */
export const countBySpan = (
  db: Db,
  query: LogQuery,
  sight: Sight,
  stepMs: number,
): { counts: SpanCount[]; countedFrom: number | null } => {
  const plan = placedPlan(db, query, sight)
  const limit = Math.min(most(plan), query.search === '' ? MAX_SCANNED : MAX_COUNTED_BY_SEARCH)
  const counts = db.all<SpanCount>(
    sql`SELECT at - at % ${stepMs} AS at, status, count(*) AS count FROM (
      SELECT started_at AS at, status, ${plan.where ?? ALL} AS fits
      FROM ${requests} WHERE ${plan.within ?? ALL} ORDER BY ${TIME.older} LIMIT ${limit})
    WHERE fits GROUP BY 1, status`,
  )
  return { counts, countedFrom: timeScanned(db, plan, 'older', limit) }
}

/** Whether the filters that an index leads through find more than `many` rows. */
export const isMoreThan = (db: Db, query: LogQuery, sight: Sight, many: number): boolean =>
  db.all(
    sql`SELECT 1 FROM ${requests} WHERE ${placedPlan(db, query, sight).within ?? ALL}
      ORDER BY ${TIME.older} LIMIT 1 OFFSET ${many}`,
  ).length > 0

export const directionOf = ({ cursor, newer }: LogQuery): Direction => (!cursor && newer ? 'newer' : 'older')

const placedPlan = (db: Db, query: LogQuery, sight: Sight): Plan => {
  const plan = planOf(query, sight, { isRequestId: isRequestId(db, query.search) })
  const from = query.cursor ?? query.newer
  return { ...plan, within: and(plan.within, from && beyond(from, directionOf(query))) }
}

/** The newest rows that `plan` may look at, under the name of the table. */
export const newestScanned = ({ within, looksAt }: Plan): SQL =>
  sql`(SELECT * FROM ${requests} WHERE ${within ?? ALL}
    ORDER BY ${ORDER.older} LIMIT ${looksAt === 'neighbours' ? MAX_SCANNED : MAX_SCATTERED}) AS ${requests}`

/** Of one answer: as many as a watched list keeps, so that what is passed over in a crowd leaves no hole in it. */
const MOST_NEW = 200
/** Of some seconds, with filters that few fit: two thousand turns a second are all looked at. */
const MOST_NEW_SCANNED = 20_000

/** Rows of turns that ended after `after` (ms since epoch), by their start, newest first. What is sorted are ids, not rows. */
export const endedSince = (db: Db, query: LogQuery, sight: Sight, after: number): Cursor[] => {
  const { within, where } = planOf(query, sight, { isRequestId: false })
  return db.all<Cursor>(
    sql`SELECT id, "startedAt" FROM (
      SELECT id, started_at AS "startedAt", ${and(within, where) ?? ALL} AS fits FROM ${requests}
      WHERE started_at + total_ms > ${after} ORDER BY started_at + total_ms DESC LIMIT ${MOST_NEW_SCANNED})
    WHERE fits ORDER BY "startedAt" DESC, id DESC LIMIT ${MOST_NEW}`,
  )
}

type Direction = 'older' | 'newer'

const ALL = sql`1`

const ORDER: Record<Direction, SQL> = {
  older: sql`started_at DESC, id DESC`,
  newer: sql`started_at, id`,
}

/** The same without the order of rows of one moment, which an index without ids would have to read them for. */
const TIME: Record<Direction, SQL> = { older: sql`started_at DESC`, newer: sql`started_at` }

/**
 * A subquery that is read row by row, so the order holds outside and reading ends with the page. It asks for no column that
 * is not needed, so that an index with all of them is enough.
 */
const scanned = (plan: Plan, order: SQL): SQL =>
  sql`(SELECT id, started_at AS "startedAt", ${plan.where ?? ALL} AS fits
    FROM ${requests} WHERE ${plan.within ?? ALL} ORDER BY ${order} LIMIT ${most(plan)})`

/** The last row that could be looked at; null: there are not as many. Reads few rows of the table, however many there are. */
const lastScanned = (db: Db, plan: Plan, direction: Direction): Cursor | null => {
  const startedAt = timeScanned(db, plan, direction)
  if (startedAt === null) return null
  const within = plan.within ?? ALL
  const sign = sql.raw(direction === 'older' ? '>' : '<')
  const [before] = db.all<{ count: number }>(
    sql`SELECT count(*) AS count FROM ${requests} WHERE ${within} AND started_at ${sign} ${startedAt}`,
  )
  const place = most(plan) - 1 - (before?.count ?? 0)
  const [last] = db.all<Cursor>(
    sql`SELECT id, started_at AS "startedAt" FROM ${requests} WHERE ${within} AND started_at = ${startedAt}
      ORDER BY ${ORDER[direction]} LIMIT 1 OFFSET ${place}`,
  )
  return last ?? null
}

/** When it started. The offset is over an index and not of a page. */
const timeScanned = (db: Db, plan: Plan, direction: Direction, limit = most(plan)): number | null =>
  db.all<{ startedAt: number }>(
    sql`SELECT started_at AS "startedAt" FROM ${requests} WHERE ${plan.within ?? ALL}
      ORDER BY ${TIME[direction]} LIMIT 1 OFFSET ${limit - 1}`,
  )[0]?.startedAt ?? null

const most = ({ looksAt }: Plan): number => (looksAt === 'scattered' ? MAX_SCATTERED : MAX_SCANNED)

/** An id is found through its index, however old it is. */
const isRequestId = (db: Db, search: string): boolean =>
  /^\S{16,200}$/.test(search) && db.all(sql`SELECT 1 FROM ${requests} WHERE request_id = ${search} LIMIT 1`).length > 0
