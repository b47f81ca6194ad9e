/** Carries the write-ahead log over into the database file, which SQLite else does within a commit, and the loop waits for the disk. */
import { Database } from 'bun:sqlite'

/** What is committed meanwhile is left to another round; without an end to them one that always lags would have none. */
const MOST_ROUNDS = 4

interface Round {
  busy: number
  /** Pages in the log, and how many of them are in the file, too. */
  log: number
  checkpointed: number
}

/**
 * Through a connection of its own, so that it may run in another thread than the writer, which it neither stops nor waits for.
 * Does nothing where another checkpoint is under way. Throws what SQLite does; never makes a file.
 */
export function checkpoint(path: string): void {
  const sqlite = new Database(path, { strict: true, readwrite: true })
  try {
    sqlite.run('PRAGMA synchronous = FULL')
    for (let rounds = 0; rounds < MOST_ROUNDS; rounds++) {
      const round = sqlite.query<Round, []>('PRAGMA wal_checkpoint(PASSIVE)').get()
      if (!round || round.busy || round.log === round.checkpointed) return
    }
  } finally {
    sqlite.close()
  }
}
