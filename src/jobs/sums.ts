/** Adds up completed hours to days and longer, in small slices so that no request waits. */
import { commit, type Db } from '../../db/commit.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS } from '../lib/durations.ts'
import { digestHour } from '../model/reports/request-digests.ts'
import { addUpHours } from '../model/reports/request-spans.ts'

export const SUMS_INTERVAL_MS = 600_000

interface SumsDeps {
  db: Db
  clock: Clock
}

/** Hourly totals per transaction, a few milliseconds, and the pause after it, which leaves the database to others. */
const ROWS = 500
const PAUSE_MS = 20
/** A request is counted when it ends, in the hour it began; the ledger adds later ones individually. */
const LATE_MS = HOUR_MS

/** Rejects with the reason of `signal` when it aborts between slices. */
export const addUpCompletedHours = async ({ db, clock }: SumsDeps, signal: AbortSignal): Promise<void> => {
  const now = clock.now()
  const before = now - (now % HOUR_MS) - LATE_MS
  while (await commit(db, (tx) => addUpHours(tx, { before, rows: ROWS }))) await clock.sleep(PAUSE_MS, signal)
  while (await commit<boolean>(db, (tx) => digestHour(tx, before))) await clock.sleep(PAUSE_MS, signal)
}
