/** The history of an account as its page tells it: state changes, tokens, probes, imports. */
import { asc, lte, sql } from 'drizzle-orm'
import type { Tx } from '../../db/commit.ts'
import { accountEvents } from '../../db/schema/history.ts'

export type AccountEventKind = (typeof accountEvents.$inferSelect)['kind']

interface AccountEventNote {
  accountId: string
  /** ms since epoch */
  at: number
  kind: AccountEventKind
  /** A word or two: the state it came to, `renewed`, `failed`. */
  result: string
  /** A sentence of evidence without secrets. */
  detail: string | null
}

const MAX_DETAIL_CHARS = 500

/** Adds to the history. An account that was deleted meanwhile has none, and nothing is written. */
export const noteAccountEvent = (tx: Tx, { accountId, at, kind, result, detail }: AccountEventNote): void => {
  const text = detail?.slice(0, MAX_DETAIL_CHARS) ?? null
  tx.run(sql`
    INSERT INTO account_events (account_id, at, kind, result, detail)
    SELECT ${accountId}, ${at}, ${kind}, ${result}, ${text} WHERE EXISTS (SELECT 1 FROM accounts WHERE id = ${accountId})`)
}

/**
 * Forgets events from before `before` (ms since epoch), at most the `limit` oldest. Returns how many; fewer than `limit`
 * means that none are left. Rows are in the order of time, near enough for a purge.
 */
export const purgeAccountEvents = (tx: Tx, { before, limit }: { before: number; limit: number }): number => {
  const oldest = tx
    .select({ id: accountEvents.id, at: accountEvents.at })
    .from(accountEvents)
    .orderBy(asc(accountEvents.id))
    .limit(limit)
    .all()
  const end = oldest.findIndex(({ at }) => at >= before)
  const old = end === -1 ? oldest : oldest.slice(0, end)
  const last = old.at(-1)
  if (last) tx.delete(accountEvents).where(lte(accountEvents.id, last.id)).run()
  return old.length
}
