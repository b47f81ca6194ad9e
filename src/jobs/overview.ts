/** Computes the overview's totals before the page is first opened, when that would take noticeable time. */
import { gte } from 'drizzle-orm'
import type { Db } from '../../db/commit.ts'
import { requests } from '../../db/schema/requests.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS } from '../lib/durations.ts'

/** The remainder is read when the page is opened: five minutes of requests are quick. */
export const OVERVIEW_INTERVAL_MS = 300_000

export interface OverviewDeps {
  db: Db
  clock: Pick<Clock, 'now'>
  figures: { now(): Promise<unknown> }
}

/** Requests in the two summed days. Fewer take about 30 ms, which is not worth a reader thread's memory. */
const MANY = 5000
const SUMMED_MS = 2 * DAY_MS

export const readAhead = async ({ db, clock, figures }: OverviewDeps): Promise<void> => {
  const recent = gte(requests.startedAt, clock.now() - SUMMED_MS)
  const many = await db.select({ at: requests.startedAt }).from(requests).where(recent).limit(1).offset(MANY).get()
  if (many) await figures.now()
}
