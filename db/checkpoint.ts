/** Carries the write-ahead log over into the database file, which SQLite else does within a commit, and the loop waits for the disk. */
import { Database } from 'bun:sqlite'

interface Progress {
  /** Pages in the log, and how many of them are in the file, too; -1 where there is no log. */
  log: number
  checkpointed: number
}

/** An earlier SQLite, as that of macOS which Bun takes there, reads NOOP as PASSIVE: it would carry over in place of counting. */
const NOOP_SINCE = '3.51.0'

/** Whether `pagesBehind` may be asked. `version`: of SQLite. */
export const knowsNoop = (version: string): boolean => Bun.semver.order(version, NOOP_SINCE) >= 0

export const canTellPagesBehind = (sqlite: Database): boolean => {
  const row = sqlite.query<{ version: string }, []>('SELECT sqlite_version() AS version').get()
  return row !== null && knowsNoop(row.version)
}

/** Pages that are in the log alone. Takes half a microsecond and changes nothing; throws inside a transaction. */
export const pagesBehind = (sqlite: Database): number => {
  const progress = sqlite.query<Progress, []>('PRAGMA wal_checkpoint(NOOP)').get()
  return progress ? progress.log - progress.checkpointed : 0
}

/**
 * Through a connection of its own, so that it may run in another thread than the writer, which it neither stops nor waits for.
 * What is committed meanwhile stays in the log; nothing is done where another checkpoint is under way. Throws what SQLite does;
 * never makes a file.
 */
export const checkpoint = (path: string): void => {
  using sqlite = new Database(path, { strict: true, readwrite: true })
  sqlite.run('PRAGMA wal_checkpoint(PASSIVE)')
}
