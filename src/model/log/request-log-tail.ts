/** The newest requests of the log, and those that end from now on, for the command line. */
import { and, count, eq, gte, type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { accountNames } from '../accounts/account-names.ts'
import { counted } from './counted-requests.ts'
import { type LogEntry, NEWEST_FIRST, selectJoined, toEntry } from './request-log-entry.ts'

interface Tail {
  /** Only requests that ended with an error. */
  errorsOnly: boolean
}

/** The last `limit` requests, oldest first. */
export const newestEntries = (db: Db, { errorsOnly, limit }: Tail & { limit: number }): Promise<LogEntry[]> =>
  read(db, { where: errorsOnly ? IS_ERROR : undefined, limit })

/** Requests that ended at `since` (ms) or later, by start. A request is stored when it ends. */
export const entriesEndedSince = (db: Db, { errorsOnly, since }: Tail & { since: number }): Promise<LogEntry[]> =>
  read(db, {
    where: and(sql`${requests.startedAt} + ${requests.totalMs} >= ${since}`, errorsOnly ? IS_ERROR : undefined),
  })

const IS_ERROR = eq(requests.status, 'error')

const MAX_AT_ONCE = 1000

const read = async (
  db: Db,
  { where, limit = MAX_AT_ONCE }: { where: SQL | undefined; limit?: number },
): Promise<LogEntry[]> => {
  const telling = { names: await accountNames(db, { hidesAccounts: false }), sensitive: true }
  const rows = await selectJoined(db)
    .where(where)
    .orderBy(...NEWEST_FIRST)
    .limit(limit)
    .all()
  return rows.map((row) => toEntry(row, telling)).toReversed()
}

/** Results of the requests since `since` (ms), counted without warm-ups. */
export const outcomesSince = async (db: Db, since: number): Promise<Record<'ok' | 'error' | 'cancelled', number>> => ({
  ok: 0,
  error: 0,
  cancelled: 0,
  ...Object.fromEntries(
    (
      await db
        .select({ status: requests.status, count: count() })
        .from(requests)
        .where(and(gte(requests.startedAt, since), counted()))
        .groupBy(requests.status)
        .all()
    ).map((row) => [row.status, row.count]),
  ),
})
