/** Commits before and after work outside the database, such as a request, which must not be repeated. */
import type { Clock } from '../src/lib/clock.ts'
import { isOutcomeUnknown } from './busy.ts'
import { commit, type Db, type Tx } from './commit.ts'

/** `mayBeStored`: an earlier attempt got no answer. `write` must then check whether it was stored. */
type Write<T> = (tx: Tx, mayBeStored: boolean) => Promise<T>

/** A single attempt can also take several seconds. */
const PAUSES_MS = [250, 1000, 4000]

/**
 * Commits a claim before the work. Repeats it only while it is unknown whether it was stored: otherwise a stored claim
 * would block work that was never done.
 */
export const commitClaim = (db: Db, clock: Clock, write: Write<boolean>): Promise<boolean> =>
  repeat(db, clock, write, (mayBeStored) => mayBeStored)

/** Commits the result of the work. Repeats it after any error, because no other process knows the result. */
export const commitResult = <T>(db: Db, clock: Clock, write: Write<T>): Promise<T> =>
  repeat(db, clock, write, () => true)

const repeat = async <T>(
  db: Db,
  clock: Clock,
  write: Write<T>,
  mayRepeat: (mayBeStored: boolean) => boolean,
): Promise<T> => {
  let mayBeStored = false
  const attempt = () => commit<T>(db, (tx) => write(tx, mayBeStored))
  for (const pauseMs of PAUSES_MS) {
    try {
      return await attempt()
    } catch (error) {
      mayBeStored ||= isOutcomeUnknown(error)
      if (!mayRepeat(mayBeStored)) throw error
    }
    await clock.sleep(pauseMs)
  }
  return attempt()
}
