/** The queries for the names in `read-lanes.ts`, loaded by the reader's threads. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { accountHistory } from './account-events-read.ts'
import { accountSpend, accountTrend } from './account-trends.ts'
import { auditLog } from './audit-log.ts'
import { verifyAuditLog } from './audit-verify.ts'
import { conversation, conversations } from './conversations/conversations.ts'
import { fleetActivity } from './fleet-activity.ts'
import { keyWeek } from './key-trends.ts'
import { overviewBegin, overviewPresent, overviewSlots } from './overview.ts'
import { poolWeek, sampledUse } from './pool-history.ts'
import type { READ_LANES } from './read-lanes.ts'
import { recentCallers } from './recent-callers.ts'
import { rejectedPage } from './rejected-clients.ts'
import { reportBars } from './report-bars.ts'
import { reportCsv } from './report-csv.ts'
import { report } from './reports.ts'
import { logHistogram, rejectedHistogram } from './request-histogram.ts'
import { newRequests, requestLog, requestLogOptions, requestLogs } from './request-log.ts'
import { countSticky, stickySessions } from './sticky/sticky-sessions.ts'
import { tableSizes } from './table-sizes.ts'

/** Runs several queries on one snapshot, while other connections may write and purge. */
const atOneMoment =
  <Args extends unknown[], Value>(run: (db: Db, ...args: Args) => Value) =>
  (db: Db, ...args: Args): Value => {
    db.all(sql`BEGIN`)
    try {
      return run(db, ...args)
    } finally {
      db.all(sql`COMMIT`)
    }
  }

const READS = {
  overviewBegin,
  overviewSlots,
  overviewPresent,
  keyWeek,
  requestLogs,
  requestLog,
  requestLogOptions,
  newRequests,
  logHistogram,
  rejectedHistogram,
  rejectedPage,
  report: atOneMoment(report),
  reportBars: atOneMoment(reportBars),
  reportCsv,
  recentCallers,
  auditLog,
  auditVerdict: atOneMoment(verifyAuditLog),
  tableSizes,
  accountTrend,
  accountSpend,
  accountHistory,
  fleetActivity: atOneMoment(fleetActivity),
  conversations: atOneMoment(conversations),
  conversation: atOneMoment(conversation),
  poolWeek,
  sampledUse,
  stickySessions,
  countSticky,
} satisfies Record<keyof typeof READ_LANES, unknown>

export type Reads = typeof READS
export type ReadName = keyof Reads

/** The parameters of a read, without the database; they and the result are passed between threads by structured clone. */
export type ReadArgs<Name extends ReadName> = Reads[Name] extends (db: Db, ...args: infer Args) => unknown
  ? Args
  : never

export const read = <Name extends ReadName>(db: Db, name: Name, args: ReadArgs<Name>): ReturnType<Reads[Name]> => {
  // as: not inferred through the index
  const run = READS[name] as unknown as (db: Db, ...args: ReadArgs<Name>) => ReturnType<Reads[Name]>
  return run(db, ...args)
}
