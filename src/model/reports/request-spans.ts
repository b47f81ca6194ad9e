/** Totals of days and longer spans, so that reports over years need not read every hour. They always match the hours. */
import type { Database } from 'bun:sqlite'
import { sql } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import type { DIMENSIONS, requestHours } from '../../../db/schema/requests.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { readFact, writeFact } from '../facts.ts'

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
  'input_tokens',
  'cached_input_tokens',
  'output_tokens',
  'cost_micros',
  'unpriced',
] as const

const ADD = `INSERT INTO request_spans (span_hours, dimension, start, id, ${SUMMED}, active_hours)`
const TO_THOSE_THERE = `ON CONFLICT DO UPDATE SET ${SUMMED.map((column) => `${column} = ${column} + excluded.${column}`)},
  active_hours = active_hours | excluded.active_hours`

const FACT = 'hours_added_up_to'

/** Hours that began before this (ms since epoch) are in the spans; later ones are not. */
export const getSummedUntil = (db: Db): number => Number(readFact(db, FACT) ?? 0)

/**
 * Adds up the next hours, with about `rows` totals, up to `before` (a full hour, ms since epoch). Returns whether there
 * may be more.
 */
export const addUpHours = (tx: Tx, { before, rows }: { before: number; rows: number }): boolean => {
  const from = getSummedUntil(tx)
  if (from >= before) return false
  const next = hourAt(tx, from, rows)
  const to = Math.min(before, next === null ? before : Math.max(next, firstHour(tx, from) + HOUR_MS))
  for (const [spanHours, dimension] of KEPT) tx.run(sql.raw(addSql(spanHours, dimension, { from, to })))
  writeFact(tx, FACT, String(to))
  return to < before
}

const addSql = (spanHours: number, dimension: Dimension, { from, to }: { from: number; to: number }): string =>
  `${ADD} SELECT ${spanHours}, '${dimension}', hour - hour % ${spanHours * HOUR_MS} AS span_start, ${ID_OF[dimension]} AS span_id,
    ${SUMMED.map((column) => `sum(${column})`)}, ${spanHours === DAY_HOURS ? `sum(DISTINCT 1 << hour / ${HOUR_MS} % 24)` : 0}
  FROM request_hours WHERE hour >= ${from} AND hour < ${to}
  GROUP BY span_start, span_id ${TO_THOSE_THERE}`

/** For the ledger: adds a long request to an hour already added up. The schema must exist. */
export const lateHourWriter = (sqlite: Database) => {
  const upTo = sqlite.prepare<{ value: string }, [string]>('SELECT value FROM facts WHERE name = ?')
  const add = sqlite.prepare(`${ADD} VALUES ($spanHours, $dimension, $start, $id, $requests, $errors, $cancelled,
    $inputTokens, $cachedInputTokens, $outputTokens, $costMicros, $unpriced, $activeHours) ${TO_THOSE_THERE}`)
  return (sums: Iterable<HourSum>): void => {
    const end = Number(upTo.get(FACT)?.value ?? 0)
    for (const { hour, accountId, keyId, model, client = '', sourceId = '', ...added } of sums) {
      if (hour >= end) continue
      const ids: Record<Dimension, string> = {
        all: '',
        account: accountId,
        key: keyId,
        model,
        client,
        source: sourceId,
      }
      for (const [spanHours, dimension] of KEPT) {
        const start = hour - (hour % (spanHours * HOUR_MS))
        const activeHours = spanHours === DAY_HOURS ? 1 << ((hour - start) / HOUR_MS) : 0
        add.run({ spanHours, dimension, start, id: ids[dimension], ...added, activeHours })
      }
    }
  }
}

const firstHour = (tx: Tx, from: number): number => hourAt(tx, from, 0) ?? from

/** The hour of the total after `skipped` others, from `from` on. */
const hourAt = (tx: Tx, from: number, skipped: number): number | null =>
  tx.all<{ hour: number }>(
    sql`SELECT hour FROM request_hours WHERE hour >= ${from} ORDER BY hour LIMIT 1 OFFSET ${skipped}`,
  )[0]?.hour ?? null
