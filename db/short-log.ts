/**
 * How many pages may be in the write-ahead log before SQLite itself carries it over: within a commit, for which the loop waits. Most
 * of what a server writes a thread carries over before that (`src/checkpointer.ts`); work that changes much does it in small pieces.
 */
import { sql } from 'drizzle-orm'
import type { Db } from './commit.ts'

/** 16 MB: only where the thread could not keep up. */
const MANY_PAGES = 4000
const FEW_PAGES = 200

/** From now on a commit carries the log over only where the thread is far behind, or fails. */
export const leaveLogToThread = (db: Db): void => setPages(db, MANY_PAGES)

/** Runs `work` with smaller and more frequent carryings-over: measured at 7 ms each instead of 20. */
export const withShortLog = async <T>(db: Db, work: () => Promise<T>): Promise<T> => {
  const [before] = db.all<{ wal_autocheckpoint: number }>(sql`PRAGMA wal_autocheckpoint`)
  setPages(db, FEW_PAGES)
  try {
    return await work()
  } finally {
    if (before && before.wal_autocheckpoint !== FEW_PAGES) restore(db, before.wal_autocheckpoint)
  }
}

/** If other such work goes on, this costs it time and nothing else. */
const restore = (db: Db, pages: number): void => {
  try {
    setPages(db, pages)
  } catch {
    // closed meanwhile
  }
}

const setPages = (db: Db, pages: number): void => {
  db.all(sql.raw(`PRAGMA wal_autocheckpoint = ${pages}`))
}
