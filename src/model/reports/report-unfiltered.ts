/** Total usage, from the longest totals available and from hours for the rest. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import { activeAccounts } from './report-active.ts'
import {
  addSums,
  getWhole,
  KEPT_COLUMNS,
  NOTHING,
  type Range,
  type Shares,
  type Span,
  type Sums,
  TOTALS,
  type Use,
} from './report-sums.ts'
import { DAY_HOURS, type Dimension, getSummedUntil, ID_OF, LONG_HOURS } from './request-spans.ts'

export const getUsage = async (db: Db, { days, before }: Range): Promise<Use> => {
  const upTo = await getSummedUntil(db)
  const all = getWhole(days)
  const [past = NOTHING, ...sums] = await getSums(db, [before, ...days], upTo)
  const by = (dimension: Exclude<Dimension, 'all'>) => getShares(db, dimension, all, upTo)
  return {
    days: sums,
    activeAccounts: await activeAccounts(db, days, upTo),
    before: past,
    by: {
      account: await by('account'),
      key: await by('key'),
      model: await by('model'),
      client: await by('client'),
      source: await by('source'),
    },
  }
}

const getSums = async (db: Db, spans: readonly Span[], upTo: number): Promise<Sums[]> => {
  const pieces = spans.flatMap((span, n) =>
    getPieces(span, { sizes: [DAY_HOURS, 1], upTo }).map((piece) => ({ n, ...piece })),
  )
  const sums = spans.map(() => ({ ...NOTHING }))
  for (const [spanHours, some] of Map.groupBy(pieces, (piece) => piece.spanHours)) {
    const list = JSON.stringify(some.map(({ from, to }) => [from, to]))
    const rows = await db.all<Sums & { place: number }>(sql`
      SELECT piece.key AS place, ${sql.raw(TOTALS)} FROM json_each(${list}) AS piece
      CROSS JOIN ${keptIn({ spanHours, ...PIECE }, 'all')}
      GROUP BY piece.key`)
    for (const { place, ...row } of rows) addSums(sums[some[place]!.n]!, row) // index in this list
  }
  return sums
}

const getShares = async (db: Db, dimension: Exclude<Dimension, 'all'>, span: Span, upTo: number): Promise<Shares> => {
  const parts = getPieces(span, { sizes: [LONG_HOURS, DAY_HOURS], upTo }).map((piece) => {
    const id = sql.raw(piece.spanHours === null ? ID_OF[dimension] : 'id')
    return sql`SELECT ${id} AS id, ${sql.raw(KEPT_COLUMNS)} FROM ${keptIn(piece, dimension)}`
  })
  return db.all(sql`SELECT id, ${sql.raw(TOTALS)} FROM (${sql.join(parts, sql` UNION ALL `)}) AS parts GROUP BY id`)
}

/** A part of a time span; `spanHours` null: read hour by hour. */
interface Piece extends Span {
  spanHours: number | null
}

/** Splits a span into pieces of the largest of `sizes` (hours, largest first) that fit before `upTo`. */
const getPieces = ({ from, to }: Span, { sizes, upTo }: { sizes: readonly number[]; upTo: number }): Piece[] => {
  const [size, ...smaller] = sizes
  if (from >= to) return []
  if (size === undefined) return [{ spanHours: null, from, to }]
  const sizeMs = size * HOUR_MS
  const first = Math.ceil(from / sizeMs) * sizeMs
  const end = Math.floor(Math.min(to, upTo) / sizeMs) * sizeMs
  if (first >= end) return getPieces({ from, to }, { sizes: smaller, upTo })
  return [
    ...getPieces({ from, to: first }, { sizes: smaller, upTo }),
    { spanHours: size, from: first, to: end },
    ...getPieces({ from: end, to }, { sizes: smaller, upTo }),
  ]
}

/** The start and end of one piece in a JSON list. */
const PIECE = {
  from: sql`CAST(json_extract(piece.value, '$[0]') AS BIGINT)`,
  to: sql`CAST(json_extract(piece.value, '$[1]') AS BIGINT)`,
}

type Bounds = Pick<Piece, 'spanHours'> & Record<'from' | 'to', number | SQL>

const keptIn = ({ spanHours, from, to }: Bounds, dimension: Dimension): SQL =>
  spanHours === null
    ? sql`request_hours WHERE hour >= ${from} AND hour < ${to}`
    : sql`request_spans WHERE span_hours = ${spanHours} AND dimension = ${dimension} AND start >= ${from} AND start < ${to}`

/**
 * Usage per span by the id of the dimension; spans without requests have an empty map. `narrowing` is a condition on
 * `request_hours`, whose rows are then read individually.
 */
export const sumsBySpan = async (
  db: Db,
  spans: readonly Span[],
  { dimension, narrowing }: { dimension: Dimension; narrowing: SQL | undefined },
): Promise<Map<string, Sums>[]> => {
  const upTo = await getSummedUntil(db)
  const sizes = narrowing ? [] : dimension === 'all' ? [DAY_HOURS, 1] : [DAY_HOURS]
  const pieces = spans.flatMap((span, n) => getPieces(span, { sizes, upTo }).map((piece) => ({ n, ...piece })))
  const found = spans.map(() => new Map<string, Sums>())
  for (const [spanHours, some] of Map.groupBy(pieces, (piece) => piece.spanHours)) {
    const list = JSON.stringify(some.map(({ from, to }) => [from, to]))
    const id = sql.raw(spanHours === null ? ID_OF[dimension] : 'request_spans.id')
    const rows = await db.all<Sums & { place: number; group: string }>(sql`
      SELECT piece.key AS place, ${id} AS "group", ${sql.raw(TOTALS)} FROM json_each(${list}) AS piece
      CROSS JOIN ${keptIn({ spanHours, ...PIECE }, dimension)} AND ${narrowing ?? sql`TRUE`}
      GROUP BY piece.key, "group"`)
    for (const { place, group, ...row } of rows)
      addSums(
        found[some[place]!.n]!.getOrInsertComputed(group, () => ({ ...NOTHING })), // index in this list
        row,
      )
  }
  return found
}
