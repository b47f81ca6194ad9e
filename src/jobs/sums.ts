/** Adds up the hours that are over to days and longer, a slice at a time, so that no request waits for it. */
import { commit, type Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { addUpHours } from '../model/request-spans.ts'

export const SUMS_INTERVAL_MS = 600_000

interface SumsDeps {
  db: Db
  clock: Clock
}

/** Sums of hours that one transaction reads, a few milliseconds, and the pause after it, in which everybody else has the database. */
const ROWS = 500
const PAUSE_MS = 20
/** Turns are counted in the hour in which they begin, when they end; later ones are added by the ledger, one by one. */
const LATE_MS = HOUR_MS

/** Rejects with the reason of `signal` when that aborts between two slices. */
export const addUp = async ({ db, clock }: SumsDeps, signal: AbortSignal): Promise<void> => {
  const now = clock.now()
  const before = now - (now % HOUR_MS) - LATE_MS
  while (commit(db, (tx) => addUpHours(tx, { before, rows: ROWS }))) await clock.sleep(PAUSE_MS, signal)
}
