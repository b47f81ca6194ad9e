/** Window starts as rows. Each is claimed before its request, so it happens once, whatever happens in between. */
import { and, desc, eq, gt, lt } from 'drizzle-orm'
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

/** False when the window was started for this reset before. Commit it before the request. */
export const claimWindowStart = (
  tx: Tx,
  { accountId, resetAt, model, at }: { accountId: string; resetAt: number; model: string; at: number },
): boolean => {
  const ofAccount = eq(windowStarts.accountId, accountId)
  const isNear = and(
    gt(windowStarts.resetAt, resetAt - SAME_RESET_MS),
    lt(windowStarts.resetAt, resetAt + SAME_RESET_MS),
  )
  if (tx.select().from(windowStarts).where(and(ofAccount, isNear)).get()) return false
  if (!tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, accountId)).get()) return false
  tx.delete(windowStarts)
    .where(and(ofAccount, lt(windowStarts.startedAt, at - KEPT_MS)))
    .run()
  tx.insert(windowStarts).values({ accountId, window: 'five_hour', resetAt, startedAt: at, model }).run()
  return true
}

/** Records the result, also in the account's history. `error`: null when it was started. */
export const endWindowStart = (
  tx: Tx,
  { accountId, resetAt, at }: { accountId: string; resetAt: number; at: number },
  error: { code: string; message: string } | null,
): void => {
  const result = error ? 'failed' : 'started'
  tx.update(windowStarts)
    .set({ result, endedAt: at, errorCode: error?.code ?? null, errorMessage: error?.message ?? null })
    .where(and(eq(windowStarts.accountId, accountId), eq(windowStarts.resetAt, resetAt)))
    .run()
  recordAccountEvent(tx, {
    accountId,
    at,
    kind: 'window',
    result,
    detail: error?.message ?? 'The five-hour window began.',
  })
}

/** Each account's last start. */
export const lastWindowStarts = (db: Db): Map<string, WindowStart> =>
  new Map(
    db
      .select()
      .from(windowStarts)
      .orderBy(windowStarts.startedAt)
      .all()
      .map((row) => [row.accountId, row]),
  )

/** Null: there was none. */
export const lastWindowStart = (db: Db, accountId: string): WindowStart | null =>
  db
    .select()
    .from(windowStarts)
    .where(eq(windowStarts.accountId, accountId))
    .orderBy(desc(windowStarts.startedAt))
    .limit(1)
    .get() ?? null

/** Throws `account_not_found`. */
export const enableWindowStart = (tx: Tx, id: string, isEnabled: boolean, actor: Actor): AccountRow => {
  const before = getAccount(tx, id)
  if (before.windowStartEnabled === isEnabled) return before
  tx.update(accounts).set({ windowStartEnabled: isEnabled }).where(eq(accounts.id, id)).run()
  append(tx, actor, 'account_updated', { target: id, details: { windowStartEnabled: isEnabled } })
  notice(tx, 'accounts')
  return getAccount(tx, id)
}
