/** Totals of days and longer spans, so that reports over years need not read every hour. They always match the hours. */
import { sql } from 'drizzle-orm'
import { toSnakeCase } from 'drizzle-orm/casing'
import type { Db, Tx } from '../../../db/commit.ts'
import type { Query } from '../../../db/connection.ts'
import { type DIMENSIONS, type requestHours, requestSpans } from '../../../db/schema/requests.ts'
import { type Insertion, inKeyOrder, insertInto } from '../../../db/statements.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { readFact, writeFact } from '../facts.ts'
import { NO_COUNTS } from '../sums.ts'

export type Dimension = (typeof DIMENSIONS)[number]
export type HourSum = typeof requestHours.$inferInsert

/** A day, and a span of which a year has a dozen. */
export const DAY_HOURS = 24
export const LONG_HOURS = 32 * DAY_HOURS

/** Hours for days in any time zone; longer spans for usage by account, key and model. */
const KEPT: readonly (readonly [spanHours: number, dimension: Dimension])[] = [
  [1, 'all'],
  [DAY_HOURS, 'all'],
  [DAY_HOURS, 'account'],
  [DAY_HOURS, 'key'],
  [DAY_HOURS, 'model'],
  [DAY_HOURS, 'client'],
  [DAY_HOURS, 'source'],
  [LONG_HOURS, 'account'],
  [LONG_HOURS, 'key'],
  [LONG_HOURS, 'model'],
  [LONG_HOURS, 'client'],
  [LONG_HOURS, 'source'],
]

/** The id column of the hours by dimension. */
export const ID_OF = {
  all: "''",
  account: 'account_id',
  key: 'key_id',
  model: 'model',
  client: 'client',
  source: 'source_id',
} as const satisfies Record<Dimension, string>

const SUMMED = [
  'requests',
  'errors',
  'cancelled',
  'inputTokens',
  'cachedInputTokens',
  'outputTokens',
  'costMicros',
  'unpriced',
  'moves',
  'avoidableMoves',
  'movedTokens',
] as const
const COLUMNS = SUMMED.map(toSnakeCase)

const ADD = `INSERT INTO request_spans (span_hours, dimension, start, id, ${COLUMNS}, active_hours)`
const TO_THOSE_THERE = `ON CONFLICT (span_hours, dimension, start, id) DO UPDATE SET
  ${COLUMNS.map((column) => `${column} = request_spans.${column} + excluded.${column}`)},
  active_hours = request_spans.active_hours | excluded.active_hours`

const FACT = 'hours_added_up_to'
/** The query for the ledger. Its transaction must see a value that stays valid until it ends. */
export const SUMMED_UNTIL: Query = { sql: 'SELECT value FROM facts WHERE name = ?', bindings: [FACT] }

/** Hours that began before this (ms since epoch) are in the spans; later ones are not. */
export const getSummedUntil = async (db: Db): Promise<number> => Number((await readFact(db, FACT)) ?? 0)

/**
 * Adds up the next hours, with about `rows` totals, up to `before` (a full hour, ms since epoch). Returns whether there
 * may be more.
 */
export const addUpHours = async (tx: Tx, { before, rows }: { before: number; rows: number }): Promise<boolean> => {
  await waitForLedgers(tx)
  const from = await getSummedUntil(tx)
  if (from >= before) return false
  const next = await hourAt(tx, from, rows)
  const to = Math.min(before, next === null ? before : Math.max(next, (await firstHour(tx, from)) + HOUR_MS))
  for (const [spanHours, dimension] of KEPT) await tx.run(sql.raw(addSql(spanHours, dimension, { from, to })))
  await writeFact(tx, FACT, String(to))
  return to < before
}

/** Lets `addUpHours` start over. Until then, reports read the hours. For hours that are stored late, such as imported ones. */
export const restartSums = async (tx: Tx): Promise<void> => {
  await waitForLedgers(tx)
  if ((await getSummedUntil(tx)) === 0) return
  await tx.delete(requestSpans).run()
  await writeFact(tx, FACT, '0')
}

/**
 * Waits for the ledgers by locking the fact. On PostgreSQL, the ledgers of all nodes hold this lock while they write,
 * so no hour is added up while they add to it.
 */
const waitForLedgers = (tx: Tx) => tx.run(sql`UPDATE facts SET value = value WHERE name = ${FACT}`)

const addSql = (spanHours: number, dimension: Dimension, { from, to }: { from: number; to: number }): string =>
  `${ADD} SELECT ${spanHours}, '${dimension}', hour - hour % ${spanHours * HOUR_MS} AS span_start, ${ID_OF[dimension]} AS span_id,
    ${COLUMNS.map((column) => `sum(${column})`)}, ${spanHours === DAY_HOURS ? `sum(DISTINCT 1 << CAST(hour / ${HOUR_MS} % 24 AS INTEGER))` : 0}
  FROM request_hours WHERE hour >= ${from} AND hour < ${to}
  GROUP BY span_start, span_id ${TO_THOSE_THERE}`

const intoSpans = insertInto(requestSpans, { onConflict: TO_THOSE_THERE })

/** For the ledger: adds long requests to hours before `summedUntil`, which are already added up. */
export const addLateHours = (sums: Iterable<HourSum>, summedUntil: number): Insertion => {
  const spans = new Map<string, SpanSum>()
  for (const sum of sums) {
    if (sum.hour >= summedUntil) continue
    for (const [spanHours, dimension] of KEPT) {
      const start = sum.hour - (sum.hour % (spanHours * HOUR_MS))
      const id = idIn(sum, dimension)
      const name = `${spanHours}\0${dimension}\0${start}\0${id}`
      const span = spans.getOrInsertComputed(name, () => ({ spanHours, dimension, start, id, ...nothing() }))
      for (const summed of SUMMED) span[summed] = (span[summed] ?? 0) + (sum[summed] ?? 0)
      if (spanHours === DAY_HOURS) span.activeHours |= 1 << ((sum.hour - start) / HOUR_MS)
    }
  }
  return intoSpans(inKeyOrder(spans))
}

type SpanSum = typeof requestSpans.$inferInsert

const nothing = () => ({ ...NO_COUNTS, activeHours: 0 })

const idIn = (sum: HourSum, dimension: Dimension): string => {
  const { accountId, keyId, model, client = '', sourceId = '' } = sum
  return { all: '', account: accountId, key: keyId, model, client, source: sourceId }[dimension]
}

const firstHour = async (tx: Tx, from: number): Promise<number> => (await hourAt(tx, from, 0)) ?? from

/** The hour of the total after `skipped` others, from `from` on. */
const hourAt = async (tx: Tx, from: number, skipped: number): Promise<number | null> =>
  (
    await tx.all<{ hour: number }>(
      sql`SELECT hour FROM request_hours WHERE hour >= ${from} ORDER BY hour LIMIT 1 OFFSET ${skipped}`,
    )
  )[0]?.hour ?? null
