/** Reset credits used by rule, as rows. Each is claimed before its request, so there is one attempt per credit. */
import { createHash } from 'node:crypto'
import { and, eq, gte, isNull, ne, or } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { accounts, type ResetPolicy } from '../../../db/schema/accounts.ts'
import { resetAttempts } from '../../../db/schema/history.ts'

export interface ResetWish {
  accountId: string
  creditId: string
  rule: ResetPolicy
}

/** The same for every attempt, so that ChatGPT would use the credit once even if the request were sent twice. */
export const ruleRequestId = ({ accountId, creditId, rule }: ResetWish): string =>
  createHash('sha256').update(`${accountId}\n${creditId}\n${rule}`).digest('hex')

/**
 * False if the credit was attempted before, unless there was nothing to reset then and the windows (`print`) have changed.
 * Also false while the usage was reported before the last attempt of the account (`usageAt`, ms): that attempt may have
 * reset the windows. Commit it before the request. `mayBeStored`: it may have been claimed by the same call, with the same
 * `at`.
 */
export const claimResetAttempt = async (
  tx: Tx,
  { accountId, creditId, rule }: ResetWish,
  { at, print, usageAt }: { at: number; print: string; usageAt: number },
  mayBeStored = false,
): Promise<boolean> => {
  if (!(await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).get())) return false
  const which = and(eq(resetAttempts.accountId, accountId), eq(resetAttempts.creditId, creditId))
  const before = await tx.select().from(resetAttempts).where(which).get()
  if (mayBeStored && before?.at === at) return true
  if (before && (before.nothingToReset === null || before.nothingToReset === print)) return false
  const mayHaveReset = or(isNull(resetAttempts.code), ne(resetAttempts.code, 'nothing_to_reset'))
  const isLater = and(eq(resetAttempts.accountId, accountId), gte(resetAttempts.at, usageAt), mayHaveReset)
  if (await tx.select().from(resetAttempts).where(isLater).get()) return false
  const values = { rule, at, code: null, nothingToReset: null }
  if (before) await tx.update(resetAttempts).set(values).where(which).run()
  else
    await tx
      .insert(resetAttempts)
      .values({ accountId, creditId, ...values })
      .run()
  return true
}

/** `print`: the windows for which there was nothing to reset. False when a result is already stored. */
export const endResetAttempt = async (
  tx: Tx,
  { accountId, creditId }: Pick<ResetWish, 'accountId' | 'creditId'>,
  { code, print }: { code: string; print: string },
): Promise<boolean> => {
  const ofCredit = and(eq(resetAttempts.accountId, accountId), eq(resetAttempts.creditId, creditId))
  const { changes } = await tx
    .update(resetAttempts)
    .set({ code, nothingToReset: code === 'nothing_to_reset' ? print : null })
    .where(and(ofCredit, isNull(resetAttempts.code)))
    .run()
  return changes > 0
}

/** By credit. `nothingToReset`: the windows for which ChatGPT had nothing to reset; null: the attempt ended in another way. */
export type ResetAttempts = ReadonlyMap<string, { nothingToReset: string | null }>

/** The attempts of an account. */
export const getResetAttempts = async (db: Db, accountId: string): Promise<ResetAttempts> => {
  const rows = await db.select().from(resetAttempts).where(eq(resetAttempts.accountId, accountId)).all()
  return new Map(rows.map((row) => [row.creditId, row]))
}
