/** Reads the statement of one meter of an account: what used its quota, by key and by model. */
import { and, eq, gte, lte, max, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import type { MeterWindow } from '../../../db/schema/meter.ts'
import { requestHours } from '../../../db/schema/requests.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import { iso } from '../../lib/iso.ts'
import { readMeter, readWindows } from './meter-read.ts'
import { type StoredReading, toSteps } from './meter-spans.ts'
import type { OddityKind } from './oddities.ts'
import { meterOddities } from './oddity-events.ts'
import { attribute, HISTORY_MS, WEEK_MS } from './statement.ts'

export interface StatementShare {
  /** Null for requests without key or model, or with a deleted key. */
  name: string | null
  requests: number
  tokens: number
  costUsd: number
  /** Percent of the quota, split in proportion to the cost. */
  percent: number
}

export interface Statement {
  accountId: string
  window: MeterWindow
  /** ISO 8601, like all times here. */
  from: string
  to: string
  /** The first reading in the period. Null if there is none. */
  firstReadingAt: string | null
  usedPercent: number
  /** An estimate. `spread`: how many percentage points it can be off. */
  here: { percent: number; spread: number; requests: number; tokens: number; costUsd: number }
  /** Null while requests are running, because it is unknown then. */
  elsewherePercent: number | null
  byKey: (StatementShare & { keyId: string | null })[]
  byModel: StatementShare[]
  /** The list price of the requests that use one percent. Null if too little was used for an estimate. */
  costPerPercentUsd: { value: number | null; spread: number | null; weeks: WeekValue[] }
  oddities: { at: string; kind: OddityKind; text: string }[]
}

export interface WeekValue {
  from: string
  value: number | null
  spread: number | null
}

interface Period {
  accountId: string
  window: MeterWindow
  /** ms since epoch. Null means the start of the current window. */
  from: number | null
  to: number
}

/** The statement, and the windows for which there are readings. */
export const accountStatement = async (
  db: Db,
  { accountId, window, from: asked, to }: Period,
): Promise<{ statement: Statement; windows: MeterWindow[] }> => {
  const meter = { accountId, window }
  const from = asked ?? (await getWindowStart(db, { ...meter, to }))
  const readings = await readMeter(db, { ...meter, from: Math.min(from, to - HISTORY_MS), to })
  const { usedPercent, here, elsewherePercent, price, weeks } = attribute(readings, { from, to })
  const { byKey, byModel } = await readShares(db, { accountId, from, to, percent: here.percent })
  const first = readings.find(({ at }) => at > from)
  const oddities = await meterOddities(db, { ...meter, from, to })
  const statement: Statement = {
    accountId,
    window,
    from: iso(from),
    to: iso(to),
    firstReadingAt: first ? iso(first.at) : null,
    usedPercent: rounded(usedPercent),
    here: {
      percent: rounded(here.percent),
      spread: rounded(here.spread),
      requests: here.requests,
      tokens: here.tokens,
      costUsd: here.micros / 1e6,
    },
    elsewherePercent: elsewherePercent === null ? null : rounded(elsewherePercent),
    byKey,
    byModel: byModel.map(({ keyId: _, ...share }) => share),
    costPerPercentUsd: {
      ...toDollars(price),
      weeks: weeks.map((week) => ({ from: iso(week.from), ...toDollars(week.price) })),
    },
    oddities: oddities.map(({ at, kind, text }) => ({ at: iso(at), kind, text })),
  }
  return { statement, windows: await readWindows(db, accountId) }
}

/** The steps of the meter in the period, oldest first, as evidence. */
export const statementSteps = async (
  db: Db,
  { accountId, window, from: asked, to }: Period,
): Promise<StatementStep[]> => {
  const meter = { accountId, window }
  const from = asked ?? (await getWindowStart(db, { ...meter, to }))
  const steps = toSteps(await readMeter(db, { ...meter, from, to })).filter(({ reading }) => reading.at > from)
  return steps.map(({ before, reading, moved }) => ({ since: before.at, moved: rounded(moved), ...reading }))
}

/** The requests and the meter's movement between `since` and `at`, both in ms since epoch. */
export interface StatementStep extends StoredReading {
  since: number
  moved: number
}

/**
 * The start of the current window. If no reading shows a new window, the reset that ended the last one; without
 * readings, one week before `to`.
 */
const getWindowStart = async (db: Db, { accountId, window, to }: Omit<Period, 'from'>): Promise<number> => {
  const last = (await readMeter(db, { accountId, window, from: to, to })).at(-1)
  if (!last?.resetAt) return to - WEEK_MS
  return last.resetAt > to ? last.resetAt - last.windowMinutes * MINUTE_MS : last.resetAt
}

const toDollars = (
  price: { micros: number; spread: number } | null,
): { value: number | null; spread: number | null } => ({
  value: price && price.micros / 1e6,
  spread: price && price.spread / 1e6,
})

/** Rounds to four decimals, because readings have at most that many. */
const rounded = (percent: number): number => Math.round(percent * 1e4) / 1e4

interface Spent {
  keyId: string | null
  name: string | null
  requests: number
  tokens: number
  micros: number
}

/** From the hourly totals, so the first and the last hour count in full. */
const readShares = async (
  db: Db,
  { accountId, from, to, percent }: { accountId: string; from: number; to: number; percent: number },
) => {
  const inPeriod = and(
    eq(requestHours.accountId, accountId),
    gte(requestHours.hour, from - (from % HOUR_MS)),
    lte(requestHours.hour, to),
  )
  const byModel = await db
    .select({ keyId: sql<string | null>`NULL`, name: sql<string | null>`nullif(${requestHours.model}, '')`, ...SUMS })
    .from(requestHours)
    .where(inPeriod)
    .groupBy(requestHours.model)
    .all()
  const byKey = await db
    .select({ keyId: sql<string | null>`nullif(${requestHours.keyId}, '')`, name: max(apiKeys.name), ...SUMS })
    .from(requestHours)
    .leftJoin(apiKeys, eq(apiKeys.id, requestHours.keyId))
    .where(inPeriod)
    .groupBy(requestHours.keyId)
    .all()
  return { byKey: toShares(byKey, percent), byModel: toShares(byModel, percent) }
}

const SUMS = {
  requests: sql<number>`sum(${requestHours.requests})`,
  tokens: sql<number>`sum(${requestHours.inputTokens} + ${requestHours.outputTokens})`,
  micros: sql<number>`sum(${requestHours.costMicros})`,
}

/** The shares, largest first. They are split by tokens if nothing has a price. */
const toShares = (spent: readonly Spent[], percent: number) => {
  const total = { micros: sum(spent, 'micros'), tokens: sum(spent, 'tokens') }
  const share = ({ micros, tokens }: Spent) => (total.micros > 0 ? micros / total.micros : tokens / (total.tokens || 1))
  return spent
    .map((one) => ({
      keyId: one.keyId,
      name: one.name,
      requests: one.requests,
      tokens: one.tokens,
      costUsd: one.micros / 1e6,
      percent: rounded(percent * share(one)),
    }))
    .toSorted((a, b) => b.costUsd - a.costUsd || b.tokens - a.tokens)
}

const sum = (spent: readonly Spent[], member: 'micros' | 'tokens'): number =>
  spent.reduce((total, one) => total + one[member], 0)
