/** The history of an account: state changes, tokens, probes, imports. */
import { sql } from 'drizzle-orm'
import type { Tx } from '../../../db/commit.ts'
import type { accountEvents } from '../../../db/schema/history.ts'

export type AccountEventKind = (typeof accountEvents.$inferSelect)['kind']

interface NewAccountEvent {
  accountId: string
  /** ms since epoch */
  at: number
  kind: AccountEventKind
  /** A word or two: the new state, `refreshed`, `failed`. */
  result: string
  /** A sentence of evidence without secrets. */
  detail: string | null
}

const MAX_DETAIL_CHARS = 500

/** Adds to the history; writes nothing for an account that has been deleted. */
export const recordAccountEvent = async (
  tx: Tx,
  { accountId, at, kind, result, detail }: NewAccountEvent,
): Promise<void> => {
  const text = detail?.slice(0, MAX_DETAIL_CHARS) ?? null
  await tx.run(sql`
    INSERT INTO account_events (account_id, at, kind, result, detail)
    SELECT ${accountId}, ${at}, ${kind}, ${result}, ${text} WHERE EXISTS (SELECT 1 FROM accounts WHERE id = ${accountId})`)
}

/** Rows one purge scans, in a few milliseconds; more than a wrong clock could misdate. */
const LOOKED_AT = 10_000

/**
 * Deletes events from before `before` (ms since epoch), at most `limit`, and returns how many. Fewer than `limit` means that
 * none are left: rows are in the order of time, except a few written while the clock was wrong.
 */
export const purgeAccountEvents = async (
  tx: Tx,
  { before, limit }: { before: number; limit: number },
): Promise<number> =>
  (
    await tx.run(sql`
    DELETE FROM account_events WHERE id IN (
      SELECT id FROM (SELECT id, at FROM account_events ORDER BY id LIMIT ${LOOKED_AT}) AS oldest WHERE at < ${before} LIMIT ${limit})`)
  ).changes
