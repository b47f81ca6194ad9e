/** The queries for the names in `read-lanes.ts`, loaded by the reader's threads. */
import { atOneMoment, type Db } from '../../db/commit.ts'
import { accountHistory } from './accounts/account-events-read.ts'
import { accountSpend, accountTrend } from './accounts/account-trends.ts'
import { meterOddities } from './accounts/oddity-events.ts'
import { accountStatement, statementSteps } from './accounts/statement-read.ts'
import { auditLog } from './audit/audit-log.ts'
import { verifyAuditLog } from './audit/audit-verify.ts'
import { conversation, conversations } from './conversations/conversations.ts'
import { recentCallers } from './firewall.ts'
import { keyWeek } from './keys/key-trends.ts'
import { rejectedPage } from './log/rejected-clients.ts'
import { logHistogram, rejectedHistogram } from './log/request-histogram.ts'
import { newRequests, requestLog, requestLogOptions, requestLogs } from './log/request-log.ts'
import { creditRates } from './log/request-units.ts'
import { fleetActivity } from './overview/fleet-activity.ts'
import { overviewBegin, overviewPresent, overviewSlots } from './overview/overview.ts'
import { poolWeek, sampledUse } from './overview/pool-history.ts'
import type { READ_LANES } from './read-lanes.ts'
import { reportBars } from './reports/report-bars.ts'
import { reportCsv } from './reports/report-csv.ts'
import { report } from './reports/reports.ts'
import { recentUse, summedUse } from './shares/logged-use.ts'
import { countSticky, stickySessions } from './sticky/sticky-sessions.ts'
import { tableSizes } from './table-sizes.ts'

/** Runs several queries on one snapshot, while other connections may write and purge. */
const consistent =
  <Args extends unknown[], Value>(run: (db: Db, ...args: Args) => Promise<Value>) =>
  (db: Db, ...args: Args): Promise<Value> =>
    atOneMoment(db, (moment) => run(moment, ...args))

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
  report: consistent(report),
  reportBars: consistent(reportBars),
  reportCsv,
  recentCallers,
  auditLog,
  auditVerdict: consistent(verifyAuditLog),
  tableSizes,
  accountTrend,
  accountSpend,
  accountHistory,
  accountStatement: consistent(accountStatement),
  statementSteps,
  meterOddities,
  fleetActivity: consistent(fleetActivity),
  conversations: consistent(conversations),
  conversation: consistent(conversation),
  poolWeek,
  sampledUse,
  stickySessions,
  countSticky,
  creditRates,
  summedUse,
  recentUse,
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
