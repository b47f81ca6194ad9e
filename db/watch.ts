/** Detects writes by another process: a command next to the running server, or another server process. */
import type { Clock } from '../src/lib/clock.ts'
import { type Db, foreignChanges, getWriter, type Topic } from './commit.ts'
import { getDataVersion } from './connection.ts'

interface Watch {
  db: Db
  clock: Clock
  everyMs: number
  /** Called once for all commits since the last check, with what they announced. */
  onMoved: (topics: ReadonlySet<Topic>) => Promise<unknown>
  /** Receives errors of a check or of `onMoved`; the next check then reports the same change again. */
  onError: (error: unknown) => void
}

/** Reads a number that changes only with commits of other connections, in 1 µs. Returns the stop function. */
export async function watchDatabase({ db, clock, everyMs, onMoved, onError }: Watch): Promise<() => void> {
  const version = () => getWriter(db).call(getDataVersion, null)
  let seen = await version()
  let topics = new Set<Topic>()
  let isChecking = false
  return clock.every(everyMs, async () => {
    if (isChecking) return
    isChecking = true
    try {
      const current = await version()
      if (current === seen) return
      topics = topics.union(await foreignChanges(db))
      await onMoved(topics)
      topics = new Set()
      seen = current
    } catch (error) {
      onError(error)
    } finally {
      isChecking = false
    }
  })
}
