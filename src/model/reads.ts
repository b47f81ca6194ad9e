/** The queries behind the names of `read-lanes.ts`: everything the reader answers, in its threads. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { accountHistory } from './account-events-read.ts'
import { accountSpend, accountTrend } from './account-trends.ts'
import { auditLog } from './audit-log.ts'
import { verifyAuditLog } from './audit-verify.ts'
import { keyWeek } from './key-trends.ts'
import { overviewBegin, overviewPresent, overviewSlots } from './overview.ts'
import type { READ_LANES } from './read-lanes.ts'
import { recentCallers } from './recent-callers.ts'
import { rejectedPage } from './rejected-clients.ts'
import { reportBars } from './report-bars.ts'
import { reportCsv } from './report-csv.ts'
import { report } from './reports.ts'
import { logHistogram, rejectedHistogram } from './request-histogram.ts'
import { newRequests, requestLog, requestLogOptions, requestLogs } from './request-log.ts'
import { tableSizes } from './table-sizes.ts'

/** Several queries of one moment: other connections may write, and purge, while the rows are read. */
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
} satisfies Record<keyof typeof READ_LANES, unknown>

export type Reads = typeof READS
export type ReadName = keyof Reads

/** The parameters of a read beside the database; they and the result cross a thread by structured clone. */
export type ReadArgs<Name extends ReadName> = Reads[Name] extends (db: Db, ...args: infer Args) => unknown
  ? Args
  : never

/** Runs the read called `name`. */
export const read = <Name extends ReadName>(db: Db, name: Name, args: ReadArgs<Name>): ReturnType<Reads[Name]> => {
  const run = READS[name] as unknown as (db: Db, ...args: ReadArgs<Name>) => ReturnType<Reads[Name]> // as: not inferred through the index
  return run(db, ...args)
}
