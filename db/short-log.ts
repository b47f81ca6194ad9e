/**
 * Limits the write-ahead log before SQLite checkpoints within a commit, which blocks the event loop. A thread normally
 * checkpoints earlier (`src/threads/checkpointer.ts`); jobs that change a lot do so in small parts.
 */
import { sql } from 'drizzle-orm'
import type { Db } from './commit.ts'

/** 16 MB, reached only when the thread cannot keep up. */
const MANY_PAGES = 4000
const FEW_PAGES = 200

/** From now on commits checkpoint only when the thread is far behind or fails. */
export const deferCheckpoints = (db: Db): void => setPages(db, MANY_PAGES)

/** Runs `work` with smaller, more frequent checkpoints: 7 ms each instead of 20 (`bench/dashboard-loop.ts`). */
export const withShortLog = async <T>(db: Db, work: () => Promise<T>): Promise<T> => {
  const [before] = db.all<{ wal_autocheckpoint: number }>(sql`PRAGMA wal_autocheckpoint`)
  setPages(db, FEW_PAGES)
  try {
    return await work()
  } finally {
    if (before && before.wal_autocheckpoint !== FEW_PAGES) restore(db, before.wal_autocheckpoint)
  }
}

/** A second such job running in parallel only becomes slower. */
const restore = (db: Db, pages: number): void => {
  try {
    setPages(db, pages)
  } catch {
    // closed in the meantime
  }
}

const setPages = (db: Db, pages: number): void => {
  db.all(sql.raw(`PRAGMA wal_autocheckpoint = ${pages}`))
}
