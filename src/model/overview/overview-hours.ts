/** Slots of an hour or more, from the hourly totals, which are kept when log rows are deleted. */

import { and, gte, lt, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requestHours } from '../../../db/schema/requests.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { HOUR_SUMS } from '../sums.ts'
import type { Slot } from './overview.ts'

interface HoursQuery {
  from: number
  to: number
  slotMs: number
  /** A sample of the times to the first event, from the log. */
  firstEvents: (db: Db, from: number, to: number) => Promise<number[]>
}

/** Conversations and failures before another account answered are not in the totals. */
export const slotsOfHours = async (db: Db, { from, to, slotMs, firstEvents }: HoursQuery): Promise<Slot[]> => {
  const groups = Map.groupBy(await getRows(db, from, to, slotMs), ({ slot }) => slot * slotMs)
  const starts = Array.from({ length: Math.ceil((to - from) / slotMs) }, (_, index) => from + index * slotMs)
  return mapInOrder(starts, async (at) => {
    const rows = groups.get(at) ?? []
    const sum = (of: (row: Row) => number) => rows.reduce((all, row) => all + of(row), 0)
    const requests = sum((row) => row.requests)
    return {
      at,
      requests,
      errors: sum((row) => row.errors),
      cancelled: sum((row) => row.cancelled),
      inputTokens: sum((row) => row.inputTokens),
      cachedInputTokens: sum((row) => row.cachedInputTokens),
      outputTokens: sum((row) => row.outputTokens),
      costMicros: sum((row) => row.costMicros),
      conversations: null,
      begun: sum(answered),
      firstEventMs: requests === 0 ? [] : await firstEvents(db, at, at + slotMs),
      accounts: new Map(
        rows
          .filter((row) => row.accountId !== '' && answered(row) + row.errors > 0)
          .map((row) => [row.accountId, { ok: answered(row), errors: row.errors }]),
      ),
    }
  })
}

const answered = ({ requests, errors, cancelled }: Row): number => requests - errors - cancelled

type Row = Awaited<ReturnType<typeof getRows>>[number]

const getRows = (db: Db, from: number, to: number, slotMs: number) =>
  db
    .select({
      slot: sql<number>`${requestHours.hour} / ${sql.raw(String(slotMs))}`.as('slot'),
      accountId: requestHours.accountId,
      ...HOUR_SUMS,
    })
    .from(requestHours)
    .where(and(gte(requestHours.hour, from), lt(requestHours.hour, to)))
    .groupBy(sql`slot`, requestHours.accountId)
    .all()
