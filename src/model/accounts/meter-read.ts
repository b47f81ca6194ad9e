/** Reads and thins the stored readings of usage meters. */
import { and, asc, desc, eq, gt, gte, lt, lte, max, min, ne, type SQL, sql } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { accountEvents } from '../../../db/schema/history.ts'
import { type MeterWindow, meterReadings } from '../../../db/schema/meter.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { readFact, writeFact } from '../facts.ts'
import type { StoredReading } from './meter-spans.ts'

interface Meter {
  accountId: string
  window: MeterWindow
}

/**
 * The readings of a meter, oldest first. They begin with the last one before `from`, if there is one. Times are ms
 * since epoch.
 */
export const readMeter = async (
  db: Db,
  { accountId, window, from, to }: Meter & { from: number; to: number },
): Promise<StoredReading[]> => {
  const isMeter = and(eq(meterReadings.accountId, accountId), eq(meterReadings.window, window))
  const before = await db
    .select({ id: meterReadings.id })
    .from(meterReadings)
    .where(and(isMeter, lte(meterReadings.at, from)))
    .orderBy(desc(meterReadings.id))
    .get()
  const rows = await db
    .select()
    .from(meterReadings)
    .where(and(isMeter, gte(meterReadings.id, before?.id ?? 0), lte(meterReadings.at, to)))
    .orderBy(asc(meterReadings.id))
    .all()
  return rows.map(({ pricedMicrosHere, tokensHere, requestsHere, unpricedHere, ...row }) => ({
    ...row,
    micros: pricedMicrosHere,
    tokens: tokensHere,
    requests: requestsHere,
    unpriced: unpricedHere,
  }))
}

/** When reset credits were used on the account since `from`, ms since epoch. */
export const readResets = async (db: Db, accountId: string, from: number): Promise<number[]> => {
  const rows = await db
    .select({ at: accountEvents.at })
    .from(accountEvents)
    .where(and(eq(accountEvents.kind, 'reset'), gte(accountEvents.at, from), eq(accountEvents.accountId, accountId)))
    .all()
  return rows.map(({ at }) => at)
}

/** The meters that have readings with an ID above `after` and a time from `since` (ms), and the last such ID. */
export const changedMeters = async (
  db: Db,
  { after, since }: { after: number; since: number },
): Promise<(Meter & { id: number })[]> => {
  const rows = await db
    .select({ accountId: meterReadings.accountId, window: meterReadings.window, id: max(meterReadings.id) })
    .from(meterReadings)
    .where(and(gt(meterReadings.id, after), gte(meterReadings.at, since)))
    .groupBy(meterReadings.accountId, meterReadings.window)
    .all()
  return rows.map((row) => ({ ...row, id: row.id ?? after }))
}

/** The windows for which the account has readings. */
export const readWindows = async (db: Db, accountId: string): Promise<MeterWindow[]> =>
  (
    await db
      .selectDistinct({ window: meterReadings.window })
      .from(meterReadings)
      .where(eq(meterReadings.accountId, accountId))
      .all()
  ).map(({ window }) => window)

const KEPT_MS = 90 * DAY_MS
/** The fact that stores up to which day readings are thinned, in ms since epoch. */
const THINNED = 'meter_readings_thinned'

/**
 * For days that ended more than 90 days ago, keeps the last reading and adds the requests of the others to it. Handles
 * one day of one meter per call. Returns whether there may be more.
 */
export const thinReadings = async (tx: Tx, now: number): Promise<boolean> => {
  const day = await getOldestDay(tx)
  if (day === null || day + DAY_MS > now - KEPT_MS) return false
  const ofDay = and(gte(meterReadings.at, day), lt(meterReadings.at, day + DAY_MS))
  const crowded = await tx
    .select({ accountId: meterReadings.accountId, window: meterReadings.window, last: max(meterReadings.id), ...SUMS })
    .from(meterReadings)
    .where(ofDay)
    .groupBy(meterReadings.accountId, meterReadings.window)
    .having(sql`count(*) > 1`)
    .limit(1)
    .get()
  if (crowded) await keepLast(tx, ofDay, crowded)
  else await writeFact(tx, THINNED, String(day + DAY_MS))
  return true
}

const SUMS = {
  pricedMicrosHere: sql<number>`sum(${meterReadings.pricedMicrosHere})`,
  tokensHere: sql<number>`sum(${meterReadings.tokensHere})`,
  requestsHere: sql<number>`sum(${meterReadings.requestsHere})`,
  unpricedHere: sql<number>`sum(${meterReadings.unpricedHere})`,
}

type Crowded = Meter & Record<keyof typeof SUMS, number> & { last: number | null }

const keepLast = async (
  tx: Tx,
  ofDay: SQL | undefined,
  { accountId, window, last, ...sums }: Crowded,
): Promise<void> => {
  const isMeter = and(eq(meterReadings.accountId, accountId), eq(meterReadings.window, window))
  await tx
    .delete(meterReadings)
    .where(and(ofDay, isMeter, ne(meterReadings.id, last ?? 0)))
    .run()
  await tx
    .update(meterReadings)
    .set(sums)
    .where(eq(meterReadings.id, last ?? 0))
    .run()
}

/** The first day that may have several readings of a meter. Null if there are no readings. */
const getOldestDay = async (tx: Tx): Promise<number | null> => {
  const thinned = await readFact(tx, THINNED)
  if (thinned !== null) return Number(thinned)
  const oldest = await tx
    .select({ at: min(meterReadings.at) })
    .from(meterReadings)
    .get()
  return oldest?.at == null ? null : oldest.at - (oldest.at % DAY_MS)
}
