/** Finds the rows of a page of the request log without ever looking at more than 50,000 of them. */
import { and, type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import type { Cursor, LogQuery } from './request-log-query.ts'
import { beyond, type Plan, planOf, type Sight } from './request-log-where.ts'

/** Looking at a row costs a microsecond where neighbours follow one another (measured: 50 ms with a search in every column). */
export const MAX_SCANNED = 50_000
/** Behind a filter with an index of its own rows lie scattered over the file, at more than two microseconds each. */
const MAX_SCATTERED = 15_000

export interface Scan {
  /** In the direction of the search, at most as many as were wanted. */
  found: Cursor[]
  /** Where looking ended before the log did; null: as many were found as were wanted, or there are no more. */
  stoppedAt: Cursor | null
}

/** Newest first from `cursor`, or oldest first from `newer`. */
export const scan = (db: Db, query: LogQuery, sight: Sight, wanted: number): Scan => {
  const plan = planOf(query, sight, { isRequestId: isRequestId(db, query.search) })
  const direction = directionOf(query)
  const from = query.cursor ?? query.newer
  const within = and(plan.within, from && beyond(from, direction))
  const found = db.all<Cursor>(
    sql`SELECT id, started_at AS "startedAt" FROM ${scanned({ ...plan, within }, direction)} WHERE ${plan.where ?? ALL} LIMIT ${wanted}`,
  )
  return { found, stoppedAt: found.length < wanted ? lastScanned(db, { ...plan, within }, direction) : null }
}

export const directionOf = ({ cursor, newer }: LogQuery): Direction => (!cursor && newer ? 'newer' : 'older')

/** The newest rows that `plan` may look at, under the name of the table. */
export const newestScanned = (plan: Plan): SQL => scanned(plan, 'older')

/** Of one answer; who falls behind further reads the list again. */
const MOST_NEW = 200
const MOST_NEW_SCANNED = 5000

/** Rows of turns that ended after `after` (ms since epoch), by their start, newest first. */
export const endedSince = (db: Db, query: LogQuery, sight: Sight, after: number): Cursor[] => {
  const { within, where } = planOf(query, sight, { isRequestId: false })
  const ended = sql`(SELECT * FROM ${requests} WHERE started_at + total_ms > ${after}
    ORDER BY started_at + total_ms DESC LIMIT ${MOST_NEW_SCANNED}) AS ${requests}`
  return db.all<Cursor>(
    sql`SELECT id, started_at AS "startedAt" FROM ${ended} WHERE ${and(within, where) ?? ALL}
      ORDER BY ${ORDER.older} LIMIT ${MOST_NEW}`,
  )
}

type Direction = 'older' | 'newer'

const ALL = sql`1`

const ORDER: Record<Direction, SQL> = {
  older: sql`started_at DESC, id DESC`,
  newer: sql`started_at, id`,
}

/** A subquery that is read row by row, so the order holds outside and reading ends with the page. */
const scanned = ({ within, isScattered }: Plan, direction: Direction): SQL =>
  sql`(SELECT * FROM ${requests} WHERE ${within ?? ALL} ORDER BY ${ORDER[direction]} LIMIT ${most(isScattered)}) AS ${requests}`

/** The last row that could be looked at, if there are as many; the offset is over an index and not of a page. */
const lastScanned = (db: Db, { within, isScattered }: Plan, direction: Direction): Cursor | null =>
  db.all<Cursor>(
    sql`SELECT id, started_at AS "startedAt" FROM ${requests} WHERE ${within ?? ALL}
      ORDER BY ${ORDER[direction]} LIMIT 1 OFFSET ${most(isScattered) - 1}`,
  )[0] ?? null

const most = (isScattered: boolean): number => (isScattered ? MAX_SCATTERED : MAX_SCANNED)

/** An id is found through its index, however old it is. */
const isRequestId = (db: Db, search: string): boolean =>
  /^\S{16,200}$/.test(search) && db.all(sql`SELECT 1 FROM ${requests} WHERE request_id = ${search} LIMIT 1`).length > 0
