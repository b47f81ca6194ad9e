/** Live calls and the accounts that carry them, kept for two hours so that a call survives a restart of Sluice. */
import { createHash } from 'node:crypto'
import { and, eq, gt, lte } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { liveCalls } from '../../../db/schema/live-calls.ts'
import { HOUR_MS } from '../../lib/durations.ts'

const KEPT_MS = 2 * HOUR_MS

export interface CallName {
  keyId: string
  callId: string
}

/** On disk when it returns. False if the key already has a call of this id: a binding never changes. */
export const bindCall = async (
  db: Db,
  call: CallName,
  { accountId, now }: { accountId: string; now: number },
): Promise<boolean> => {
  const hash = getHash(call)
  return commit(db, async (tx) => {
    await tx
      .delete(liveCalls)
      .where(and(eq(liveCalls.hash, hash), lte(liveCalls.createdAt, now - KEPT_MS)))
      .run()
    return (
      (await tx.insert(liveCalls).values({ hash, accountId, createdAt: now }).onConflictDoNothing().run()).changes === 1
    )
  })
}

/** The account of the call; null when it is unknown, of another key, or expired. */
export const accountOfCall = async (db: Db, call: CallName, now: number): Promise<string | null> =>
  (
    await db
      .select({ accountId: liveCalls.accountId })
      .from(liveCalls)
      .where(and(eq(liveCalls.hash, getHash(call)), gt(liveCalls.createdAt, now - KEPT_MS)))
      .get()
  )?.accountId ?? null

export const dropExpiredCalls = async (tx: Tx, now: number): Promise<void> => {
  await tx
    .delete(liveCalls)
    .where(lte(liveCalls.createdAt, now - KEPT_MS))
    .run()
}

const getHash = ({ keyId, callId }: CallName): string =>
  createHash('sha256').update(`${keyId}\0${callId}`).digest('hex')
