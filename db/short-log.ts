/**
 * How much is in the write-ahead log before SQLite itself carries it over, within a commit, and the loop waits for that. In a
 * server a thread does it before (`src/checkpointer.ts`), but for work that changes much, a little at a time.
 */
import { sql } from 'drizzle-orm'
import type { Db } from './commit.ts'

/** Pages in the log before a commit carries them over: what the thread did not do, 16 MB, and a number that takes a few ms. */
const MOST_PAGES = 4000
const FEW_PAGES = 200

/** From now on a commit carries the log over only where the thread is far behind, or fails. */
export const leaveLogToThread = (db: Db): void => setPages(db, MOST_PAGES)

/** Runs `work` with smaller and more frequent carryings-over: measured at 7 ms each instead of 20. */
export const withShortLog = async <T>(db: Db, work: () => Promise<T>): Promise<T> => {
  setPages(db, FEW_PAGES)
  try {
    return await work()
  } finally {
    restore(db)
  }
}

/** If other such work goes on, this costs it time and nothing else. */
const restore = (db: Db): void => {
  try {
    setPages(db, MOST_PAGES)
  } catch {
    // closed meanwhile
  }
}

const setPages = (db: Db, pages: number): void => {
  db.all(sql.raw(`PRAGMA wal_autocheckpoint = ${pages}`))
}
