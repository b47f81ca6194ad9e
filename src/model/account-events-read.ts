/** The history of an account as people read it: newest first, a page at a time. */
import { and, desc, eq, lt } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { accountEvents } from '../../db/schema/history.ts'
import { iso } from '../lib/iso.ts'
import type { AccountEventKind } from './account-events.ts'

export interface AccountHistoryEntry {
  id: number
  /** ISO 8601 */
  at: string
  kind: AccountEventKind
  result: string
  /** null: there is none, or it is not for the visitor. */
  detail: string | null
}

export interface AccountHistoryPage {
  events: AccountHistoryEntry[]
  /** What `before` takes for the page after this one; null: it is the last. */
  older: number | null
}

const PAGE = 50

/** `before`: only events older than the one of this id. */
export const accountHistory = (db: Db, accountId: string, before: number | null): AccountHistoryPage => {
  const rows = db
    .select()
    .from(accountEvents)
    .where(and(eq(accountEvents.accountId, accountId), before === null ? undefined : lt(accountEvents.id, before)))
    .orderBy(desc(accountEvents.id))
    .limit(PAGE + 1)
    .all()
  const shown = rows.slice(0, PAGE)
  return {
    events: shown.map(({ id, at, kind, result, detail }) => ({ id, at: iso(at), kind, result, detail })),
    older: rows.length > PAGE ? (shown.at(-1)?.id ?? null) : null,
  }
}

/** For those who do not work with accounts: what happened, without what was seen. */
export const maskedHistory = (page: AccountHistoryPage): AccountHistoryPage => ({
  ...page,
  events: page.events.map((event) => ({ ...event, detail: null })),
})
