/** The history of an account, newest first, one page at a time. */
import { and, desc, eq, gte, lt } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { accountEvents } from '../../../db/schema/history.ts'
import { iso } from '../../lib/iso.ts'
import type { AccountEventKind } from './account-events.ts'

export interface AccountHistoryEntry {
  id: number
  /** ISO 8601 */
  at: string
  kind: AccountEventKind
  result: string
  /** null: none, or hidden from the user. */
  detail: string | null
}

export interface AccountHistoryPage {
  events: AccountHistoryEntry[]
  /** `before` of the next page; null: this is the last. */
  older: number | null
}

const PAGE = 50

/** `before`: only events older than the one with this id. */
export const accountHistory = async (db: Db, accountId: string, before: number | null): Promise<AccountHistoryPage> => {
  const rows = await db
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

/** The last probe since `since` (ms); null: there is none. */
export const lastProbe = async (db: Db, accountId: string, since: number): Promise<AccountHistoryEntry | null> => {
  const row = await db
    .select()
    .from(accountEvents)
    .where(and(eq(accountEvents.accountId, accountId), eq(accountEvents.kind, 'probe'), gte(accountEvents.at, since)))
    .orderBy(desc(accountEvents.id))
    .get()
  return row ? { ...row, at: iso(row.at) } : null
}

/** For users who do not manage accounts: without the details. */
export const maskedHistory = (page: AccountHistoryPage): AccountHistoryPage => ({
  ...page,
  events: page.events.map((event) => ({ ...event, detail: null })),
})
