/** The history of an account as its page tells it: state changes, tokens, probes, imports. */
import { sql } from 'drizzle-orm'
import type { Tx } from '../../db/commit.ts'
import type { accountEvents } from '../../db/schema/history.ts'

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

/** Of one purge: more than could ever be misdated, and scanned in a few milliseconds. */
const LOOKED_AT = 10_000

/**
 * Forgets events from before `before` (ms since epoch), at most the `limit` first. Returns how many; fewer than `limit` means
 * that none are left among the first 10,000 rows, and so none at all: rows are in the order of time but for those of a clock
 * that was wrong, which are passed over.
 */
export const purgeAccountEvents = (tx: Tx, { before, limit }: { before: number; limit: number }): number =>
  tx.run(sql`
    DELETE FROM account_events WHERE id IN (
      SELECT id FROM (SELECT id, at FROM account_events ORDER BY id LIMIT ${LOOKED_AT}) WHERE at < ${before} LIMIT ${limit})`)
    .changes
