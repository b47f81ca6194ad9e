/** Notices that another process wrote to the database, for example a command beside the running server. */
import type { Database } from 'bun:sqlite'
import type { Clock } from '../src/lib/clock.ts'

interface Watch {
  sqlite: Database
  clock: Clock
  /** Called once for all that moved since the last look. */
  onMoved: () => void
  /** Receives what a look or `onMoved` throws; the next look comes all the same, and finds the same change again. */
  onError: (error: unknown) => void
}

/** Looks each second; `PRAGMA data_version` moves for commits of other connections only. Returns the stop. */
export function watchDatabase({ sqlite, clock, onMoved, onError }: Watch): () => void {
  const version = () => sqlite.query<{ data_version: number }, []>('PRAGMA data_version').get()?.data_version
  let seen = version()
  return clock.every(EVERY_MS, () => {
    try {
      const current = version()
      if (current === seen) return
      onMoved()
      seen = current
    } catch (error) {
      onError(error)
    }
  })
}

const EVERY_MS = 1000
