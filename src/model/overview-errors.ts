/** The errors of a period as the overview lists them: repeated ones as one line with a count. */
import { and, count, desc, gte, inArray, max, sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import { type LogEntry, selectJoined, toEntry } from './request-log-entry.ts'
import { faulty } from './turn-fault.ts'

export interface ErrorGroup {
  count: number
  /** The newest error; the view adds its account's name. */
  newest: LogEntry
}

const MOST_GROUPS = 6
/** Matches the partial index, which contains every column read. */
const TROUBLE = sql`${requests.status} <> 'ok'`

/** Errors since `since` (ms) with the same code, account and model are one group; the newest group comes first. */
export const errorGroups = (db: Db, since: number): ErrorGroup[] => {
  const groups = db
    .select({ count: count(), at: max(requests.startedAt).as('at'), id: requests.id })
    .from(requests)
    .where(and(TROUBLE, gte(requests.startedAt, since), faulty()))
    .groupBy(requests.errorCode, requests.accountId, requests.model)
    .orderBy(desc(sql`at`))
    .limit(MOST_GROUPS)
    .all()
  if (groups.length === 0) return []
  const shown = { names: new Map(), sensitive: false } // cached, and names change
  const ids = groups.map(({ id }) => id)
  const entries = selectJoined(db).where(inArray(requests.id, ids)).all()
  const newest = new Map(entries.map((joined) => [joined.row.id, toEntry(joined, shown)]))
  return groups.flatMap(({ id, count }) => {
    const entry = newest.get(id)
    return entry ? [{ count, newest: entry }] : []
  })
}
