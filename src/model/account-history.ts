/** Forgets the log of an account that was deleted together with its history, a slice at a time. */
import { eq, inArray } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import type { Clock } from '../lib/clock.ts'

const SLICE = 500
const PAUSE_MS = 50

/** Hourly sums and the totals of keys stay: what was used was used. */
export const forgetHistory = async ({ db, clock }: { db: Db; clock: Clock }, accountId: string): Promise<void> => {
  while (commit(db, (tx) => forgetSlice(tx, accountId)) === SLICE) await clock.sleep(PAUSE_MS)
}

const forgetSlice = (tx: Tx, accountId: string): number => {
  const some = tx.select({ id: requests.id }).from(requests).where(eq(requests.accountId, accountId)).limit(SLICE)
  return tx.delete(requests).where(inArray(requests.id, some)).run().changes
}
