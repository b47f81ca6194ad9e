/** The reads that can take long, by name: everything the reader answers, in its worker or inline. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { auditLog } from './audit-log.ts'
import { recentRequests, requestLog, requestLogOptions, requestLogs } from './request-log.ts'

/** What SQLite finds wrong with the file; empty: nothing. */
const integrity = (db: Db): string[] =>
  db
    .all<{ integrity_check: string }>(sql`PRAGMA integrity_check`)
    .map((row) => row.integrity_check)
    .filter((finding) => finding !== 'ok')

export const READS = { recentRequests, requestLogs, requestLog, requestLogOptions, auditLog, integrity }

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
