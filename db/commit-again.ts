/** Commits before and after work outside the database, such as a request, which must not be repeated. */
import type { Clock } from '../src/lib/clock.ts'
import { MINUTE_MS } from '../src/lib/durations.ts'
import { isOutcomeUnknown } from './busy.ts'
import { commit, type Db, type Tx } from './commit.ts'

/** `mayBeStored`: an earlier attempt got no answer. `write` must then check whether it was stored. */
type Write<T> = (tx: Tx, mayBeStored: boolean) => Promise<T>

export interface CommitAgainDeps {
  db: Db
  clock: Clock
  /** For jobs: they repeat for `PATIENCE_MS`, longer than a failover of PostgreSQL, until this aborts at shutdown. */
  stopping?: AbortSignal | undefined
}

/** A client waits only for these. A single attempt can also take several seconds. */
const PAUSES_MS = [250, 1000, 4000]
const LONGEST_PAUSE_MS = 4000
const PATIENCE_MS = 5 * MINUTE_MS

/**
 * Commits a claim before the work. Repeats it only while it is unknown whether it was stored: otherwise a stored claim
 * would block work that was never done.
 */
export const commitClaim = (deps: CommitAgainDeps, write: Write<boolean>): Promise<boolean> =>
  repeat(deps, write, (mayBeStored) => mayBeStored)

/** Commits the result of the work. Repeats it after any error, because no other process knows the result. */
export const commitResult = <T>(deps: CommitAgainDeps, write: Write<T>): Promise<T> => repeat(deps, write, () => true)

const repeat = async <T>(
  { db, clock, stopping }: CommitAgainDeps,
  write: Write<T>,
  mayRepeat: (mayBeStored: boolean) => boolean,
): Promise<T> => {
  const end = clock.monotonic() + PATIENCE_MS
  let mayBeStored = false
  let isLast = false
  for (let tries = 1; ; tries++) {
    try {
      return await commit<T>(db, (tx) => write(tx, mayBeStored))
    } catch (error) {
      mayBeStored ||= isOutcomeUnknown(error)
      if (isLast || !mayRepeat(mayBeStored)) throw error
    }
    const pauseMs = PAUSES_MS[tries - 1]
    if (pauseMs !== undefined) await clock.sleep(pauseMs)
    else await clock.sleep(LONGEST_PAUSE_MS, stopping).catch(() => {}) // at shutdown, one last attempt
    const isPatient = stopping?.aborted === false && clock.monotonic() < end
    isLast = tries >= PAUSES_MS.length && !isPatient
  }
}
