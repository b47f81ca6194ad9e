/**
 * Copies the write-ahead log into the database file. SQLite would otherwise do so within a commit, and the event loop
 * would wait for the disk.
 */
import { Database } from 'bun:sqlite'

interface Progress {
  /** Pages in the log, and how many of them are also in the database file; -1 without a log. */
  log: number
  checkpointed: number
}

/** Earlier versions, such as macOS's SQLite which Bun uses there, read NOOP as PASSIVE and would run a checkpoint. */
const NOOP_SINCE = '3.51.0'

/** Whether `pagesBehind` is safe to call. `version`: SQLite's. */
export const supportsNoopCheckpoint = (version: string): boolean => Bun.semver.order(version, NOOP_SINCE) >= 0

export const canReadPagesBehind = (sqlite: Database): boolean => {
  const row = sqlite.query<{ version: string }, []>('SELECT sqlite_version() AS version').get()
  return row !== null && supportsNoopCheckpoint(row.version)
}

/** Pages that are only in the log. Takes half a microsecond and changes nothing; throws inside a transaction. */
export const pagesBehind = (sqlite: Database): number => {
  const progress = sqlite.query<Progress, []>('PRAGMA wal_checkpoint(NOOP)').get()
  return progress ? progress.log - progress.checkpointed : 0
}

/**
 * Uses its own connection, so it can run in another thread without blocking the writer. Commits made in the meantime
 * stay in the log; does nothing while another checkpoint runs. Throws SQLite errors; never creates a file.
 */
export const checkpoint = (path: string): void => {
  using sqlite = new Database(path, { strict: true, readwrite: true })
  sqlite.run('PRAGMA wal_checkpoint(PASSIVE)')
}
