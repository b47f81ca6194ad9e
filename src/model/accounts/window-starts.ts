/** Window starts as rows. Each is claimed before its request, so it happens once, whatever happens in between. */
import { and, desc, eq, gt, isNull, lt } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { windowStarts } from '../../../db/schema/history.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import { type Actor, append } from '../audit/audit.ts'
import { recordAccountEvent } from './account-events.ts'
import { type AccountRow, getAccount } from './accounts.ts'

export type WindowStart = typeof windowStarts.$inferSelect

/** Reports of one reset differ by seconds. */
const SAME_RESET_MS = 5 * MINUTE_MS
const KEPT_MS = 90 * DAY_MS

/**
 * False when the window was started for this reset before. Commit it before the request. `mayBeStored`: it may have been
 * claimed by the same call, with the same `at`.
 */
export const claimWindowStart = async (
  tx: Tx,
  { accountId, resetAt, model, at }: { accountId: string; resetAt: number; model: string; at: number },
  mayBeStored = false,
): Promise<boolean> => {
  const ofAccount = eq(windowStarts.accountId, accountId)
  const isNear = and(
    gt(windowStarts.resetAt, resetAt - SAME_RESET_MS),
    lt(windowStarts.resetAt, resetAt + SAME_RESET_MS),
  )
  const before = await tx.select().from(windowStarts).where(and(ofAccount, isNear)).get()
  if (before) return mayBeStored && before.startedAt === at
  if (!(await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).get())) return false
  await tx
    .delete(windowStarts)
    .where(and(ofAccount, lt(windowStarts.startedAt, at - KEPT_MS)))
    .run()
  await tx.insert(windowStarts).values({ accountId, window: 'five_hour', resetAt, startedAt: at, model }).run()
  return true
}

/** Records the result once, also in the account's history. `error`: null when it was started. */
export const endWindowStart = async (
  tx: Tx,
  { accountId, resetAt, at }: { accountId: string; resetAt: number; at: number },
  error: { code: string; message: string } | null,
): Promise<void> => {
  const result = error ? 'failed' : 'started'
  const ended = await tx
    .update(windowStarts)
    .set({ result, endedAt: at, errorCode: error?.code ?? null, errorMessage: error?.message ?? null })
    .where(and(eq(windowStarts.accountId, accountId), eq(windowStarts.resetAt, resetAt), isNull(windowStarts.endedAt)))
    .run()
  if (ended.changes === 0) return
  await recordAccountEvent(tx, {
    accountId,
    at,
    kind: 'window',
    result,
    detail: error?.message ?? 'The five-hour window began.',
  })
}

/** Each account's last start. */
export const lastWindowStarts = async (db: Db): Promise<Map<string, WindowStart>> =>
  new Map(
    (await db.select().from(windowStarts).orderBy(windowStarts.startedAt).all()).map((row) => [row.accountId, row]),
  )

/** Null: there was none. */
export const lastWindowStart = async (db: Db, accountId: string): Promise<WindowStart | null> =>
  (await db
    .select()
    .from(windowStarts)
    .where(eq(windowStarts.accountId, accountId))
    .orderBy(desc(windowStarts.startedAt))
    .limit(1)
    .get()) ?? null

/** Throws `account_not_found`. */
export const enableWindowStart = async (tx: Tx, id: string, isEnabled: boolean, actor: Actor): Promise<AccountRow> => {
  const before = await getAccount(tx, id)
  if (before.windowStartEnabled === isEnabled) return before
  await tx.update(accounts).set({ windowStartEnabled: isEnabled }).where(eq(accounts.id, id)).run()
  await append(tx, actor, 'account_updated', { target: id, details: { windowStartEnabled: isEnabled } })
  notice(tx, 'accounts')
  return getAccount(tx, id)
}
