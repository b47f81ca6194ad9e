/** Detects writes by another process, such as a command next to the running server. */
import type { Database } from 'bun:sqlite'
import type { Clock } from '../src/lib/clock.ts'

interface Watch {
  sqlite: Database
  clock: Clock
  /** Called once for all changes since the last check. */
  onMoved: () => void
  /** Receives errors of a check or of `onMoved`. The next check reports the same change again. */
  onError: (error: unknown) => void
}

/** Checks every second; `PRAGMA data_version` changes only with commits of other connections. Returns the stop function. */
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
