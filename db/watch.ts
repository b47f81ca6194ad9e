/** Detects writes by another process: a command next to the running server, or another server process. */
import type { Database } from 'bun:sqlite'
import type { Clock } from '../src/lib/clock.ts'
import { type Db, foreignChanges, type Topic } from './commit.ts'

interface Watch {
  sqlite: Database
  db: Db
  clock: Clock
  everyMs: number
  /** Called once for all commits since the last check, with what they announced. */
  onMoved: (topics: ReadonlySet<Topic>) => void
  /** Receives errors of a check or of `onMoved`; the next check then reports the same change again. */
  onError: (error: unknown) => void
}

/** `PRAGMA data_version` changes only with commits of other connections and costs 1 µs. Returns the stop function. */
export function watchDatabase({ sqlite, db, clock, everyMs, onMoved, onError }: Watch): () => void {
  const statement = sqlite.query<{ data_version: number }, []>('PRAGMA data_version')
  const version = () => statement.get()?.data_version
  let seen = version()
  let topics = new Set<Topic>()
  return clock.every(everyMs, () => {
    try {
      const current = version()
      if (current === seen) return
      topics = topics.union(foreignChanges(db))
      onMoved(topics)
      topics = new Set()
      seen = current
    } catch (error) {
      onError(error)
    }
  })
}
