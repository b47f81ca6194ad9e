/** Cleans up after deleted accounts in slices and across restarts: one commit would keep all others waiting for seconds. */
import { eq, inArray, like, sql } from 'drizzle-orm'
import { commit, type Db, notice, type Tx } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { facts } from '../../../db/schema/system.ts'
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { dropFact, writeFact } from '../facts.ts'

interface ClearingDeps {
  db: Db
  clock: Clock
}

/** Log rows or conversations deleted per step; they are spread over their tables, so a step is slow. */
const SLICE = 50
const PAUSE_MS = 20
const FACT = 'deleted_account:'
/** A request still running when its account was deleted is logged when it ends, so the search continues this long. */
const LOOKED_FOR_MS = DAY_MS

/** Call in the commit that deletes the account; `at` is ms since epoch. `clearLeftovers` does the rest. */
export const recordDeletion = async (
  tx: Tx,
  accountId: string,
  { at, withHistory }: { at: number; withHistory: boolean },
): Promise<void> => {
  await writeFact(tx, FACT + accountId, `${at} ${withHistory ? 'with' : 'without'} history`)
}

/**
 * Deletes the conversations of deleted accounts, and the log of those deleted with their history. Hourly totals and key
 * totals stay. Rejects with the reason of `signal` when it aborts between slices.
 */
export const clearLeftovers = async ({ db, clock }: ClearingDeps, signal?: AbortSignal): Promise<void> => {
  const inSlices = async (forget: (tx: Tx) => Promise<number>): Promise<boolean> => {
    let slice = await commit(db, forget)
    const hasFound = slice > 0
    for (; slice === SLICE; slice = await commit(db, forget)) await clock.sleep(PAUSE_MS, signal)
    return hasFound
  }
  for (const { name, accountId, deletedAt, withHistory } of await deletedAccounts(db)) {
    await inSlices((tx) => deleteOwnership(tx, accountId))
    if (withHistory && (await inSlices((tx) => deleteLog(tx, accountId))))
      await commit(db, async (tx) => notice(tx, 'log'))
    if (clock.now() - deletedAt > LOOKED_FOR_MS) await commit(db, (tx) => dropFact(tx, name))
  }
}

const deletedAccounts = async (db: Db) =>
  (
    await db
      .select()
      .from(facts)
      .where(like(facts.name, `${FACT}%`))
      .all()
  ).map(({ name, value }) => ({
    name,
    accountId: name.slice(FACT.length),
    deletedAt: Number.parseInt(value, 10),
    withHistory: value.endsWith(' with history'),
  }))

const deleteOwnership = async (tx: Tx, accountId: string): Promise<number> => {
  const some = sql`SELECT kind, key_hash FROM affinity WHERE account_id = ${accountId} LIMIT ${SLICE}`
  return (await tx.run(sql`DELETE FROM affinity WHERE (kind, key_hash) IN (${some})`)).changes
}

const deleteLog = async (tx: Tx, accountId: string): Promise<number> => {
  const some = tx.select({ id: requests.id }).from(requests).where(eq(requests.accountId, accountId)).limit(SLICE)
  return (await tx.delete(requests).where(inArray(requests.id, some)).run()).changes
}
