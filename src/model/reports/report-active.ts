/** The number of accounts that served on each day of a report. */
import { sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { getWhole, type Span } from './report-sums.ts'
import { DAY_HOURS } from './request-spans.ts'

/** One number per day of `days`, which are consecutive. Hours before `upTo` (ms) are read from daily totals. */
export const activeAccounts = async (db: Db, days: readonly Span[], upTo: number): Promise<number[]> => {
  const seen = days.map(() => new Set<string>())
  const { from, to } = getWhole(days)
  const end = Math.max(from, Math.min(to, upTo))
  const parts = partsOfDays(days)
  for (const [start, accountId, activeHours] of await rowsOfDays(db, { from: from - (from % DAY_MS), to: end }))
    for (const { place, hours } of parts.get(start) ?? []) if (activeHours & hours) seen[place]?.add(accountId)
  let place = 0
  for (const [hour, accountId] of await rowsOfHours(db, { from: end, to })) {
    while (hour >= (days[place]?.to ?? Number.POSITIVE_INFINITY)) place++
    seen[place]?.add(accountId)
  }
  return seen.map(({ size }) => size)
}

/** Per UTC day, the report days in it and the hours they cover, as bits. */
const partsOfDays = (days: readonly Span[]): Map<number, { place: number; hours: number }[]> => {
  const parts = new Map<number, { place: number; hours: number }[]>()
  for (const [place, { from, to }] of days.entries())
    for (let start = from - (from % DAY_MS); start < to; start += DAY_MS) {
      const hours = bitsBelow((to - start) / HOUR_MS) & ~bitsBelow((from - start) / HOUR_MS)
      parts.set(start, [...(parts.get(start) ?? []), { place, hours }])
    }
  return parts
}

/** An hour belongs to the day in which it begins. */
const bitsBelow = (hour: number): number => (1 << Math.min(DAY_HOURS, Math.max(0, Math.ceil(hour)))) - 1

const rowsOfDays = (db: Db, { from, to }: Span): Promise<[start: number, accountId: string, activeHours: number][]> =>
  db.values(sql`
    SELECT start, id, active_hours FROM request_spans
    WHERE span_hours = ${DAY_HOURS} AND dimension = 'account' AND start >= ${from} AND start < ${to} AND id <> ''`)

const rowsOfHours = (db: Db, { from, to }: Span): Promise<[hour: number, accountId: string][]> =>
  db.values(sql`
    SELECT DISTINCT hour, account_id FROM request_hours
    WHERE hour >= ${from} AND hour < ${to} AND account_id <> '' ORDER BY hour`)
