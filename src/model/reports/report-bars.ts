/** A report over time: bars of hours, days or weeks, next to those of the previous period, and this month. */

import { and, between, desc, inArray, isNotNull, isNull, or, type SQL, sql } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { flatMapInOrder, mapInOrder } from '../../lib/in-order.ts'
import { iso } from '../../lib/iso.ts'
import { programName } from '../../lib/user-agent.ts'
import { type Day, daysBetween, localDate } from '../../lib/zoned-days.ts'
import { filled } from '../form-query.ts'
import { MAX_CLIENTS } from '../log/counted-clients.ts'
import { counted } from '../log/counted-requests.ts'
import { clientWhere } from '../log/request-log-where.ts'
import type { HiddenFields } from '../log/request-view.ts'
import { getTicks, type Tick, ticksOfBars } from '../overview/time-axis.ts'
import { keyIdInScope } from '../users/view-scope.ts'
import { NONE_FILTER, OTHER_CLIENTS } from './report-filters.ts'
import { addSums, getWhole, NOTHING, type Span, type Sums } from './report-sums.ts'
import { sumsBySpan } from './report-unfiltered.ts'
import { getNames, getRange, getWhere, type ReportQuery } from './reports.ts'

const MEASURES = ['cost', 'tokens', 'requests', 'latency', 'cache'] as const
export type Measure = (typeof MEASURES)[number]
const STACKS = ['model', 'key', 'account', 'client', 'none'] as const
export type Stack = (typeof STACKS)[number]

const oneOf = <T extends readonly [string, ...string[]]>(names: T) =>
  filled(z.enum(names, { error: `choose ${names.slice(0, -1).join(', ')} or ${names.at(-1)}` }))

export const ChartQuery = z.object({ measure: oneOf(MEASURES), stack: oneOf(STACKS) })
export interface ChartChoice {
  measure: Measure
  stack: Stack
}

export interface ReportBars extends ChartChoice {
  /** Oldest first; times are ISO 8601. */
  bars: ReportBar[]
  ticks: Tick[]
  /** The parts of each bar, largest first; empty: not stacked. */
  layers: { id: string | null; name: string | null; sums: Sums[] }[]
  month: { spentUsd: number /** null: too early to tell. */; paceUsd: number | null }
}

export interface ReportBar {
  from: string
  to: string
  sums: Sums
  previous: Sums
  /**
   * Median and 95th percentile of the time to the first token, from a sample (ms); null: another measure is shown, or
   * unknown.
   */
  firstToken: { p50: number; p95: number; previousP50: number | null } | null
}

/** Longest ranges shown in hours and in days; longer ones use weeks. */
const MAX_DAYS_OF_HOURS = 2
const MAX_DAYS = 62

/** `now` is ms since epoch. Throws like `report`. */
export const reportBars = async (
  db: Db,
  { query, chart }: { query: ReportQuery; chart: ChartChoice },
  hiddenFields: HiddenFields,
  now: number,
): Promise<ReportBars> => {
  const { startDate, timezone, days } = getRange(query, now)
  const narrowing = getWhere(query, hiddenFields)
  const spans = getSpans(days)
  const first = new Date(Date.parse(startDate) - days.length * DAY_MS).toISOString().slice(0, 10)
  const past = getSpans(daysBetween(first, days.length, timezone))
  const sumsIn = async (some: readonly Span[]) =>
    (await sumsBySpan(db, some, { dimension: 'all', narrowing })).map(allOf)
  const [sums, previous] = [await sumsIn(spans), await sumsIn(past)]
  const isHourly = days.length <= MAX_DAYS_OF_HOURS
  return {
    ...chart,
    bars: await mapInOrder(spans, async (span, n) => ({
      from: iso(span.from),
      to: iso(span.to),
      sums: sums[n] ?? NOTHING,
      previous: previous[n] ?? NOTHING,
      firstToken: chart.measure === 'latency' ? await getFirstToken(db, query, hiddenFields, [span, past[n]]) : null,
    })),
    ticks: isHourly ? getTicks({ ...getWhole(spans), zone: timezone }) : ticksOfBars(spans, timezone),
    layers: await getLayers(db, spans, { chart, narrowing, hiddenFields }),
    month: await toMonth(async (span) => (await sumsIn([span]))[0] ?? NOTHING, timezone, now),
  }
}

const getSpans = (days: readonly Day[]): Span[] => {
  if (days.length <= MAX_DAYS_OF_HOURS) {
    const { from, to } = getWhole(days)
    const first = Math.ceil(from / HOUR_MS) * HOUR_MS
    return Array.from({ length: Math.ceil((to - first) / HOUR_MS) }, (_, n) => ({
      from: first + n * HOUR_MS,
      to: first + (n + 1) * HOUR_MS,
    }))
  }
  const length = days.length <= MAX_DAYS ? 1 : 7
  return Array.from({ length: Math.ceil(days.length / length) }, (_, n) =>
    getWhole(days.slice(n * length, (n + 1) * length)),
  )
}

const allOf = (byId: ReadonlyMap<string, Sums>): Sums => byId.get('') ?? NOTHING

interface Layering {
  chart: ChartChoice
  narrowing: SQL | undefined
  hiddenFields: HiddenFields
}

const getLayers = async (
  db: Db,
  spans: readonly Span[],
  { chart, narrowing, hiddenFields }: Layering,
): Promise<ReportBars['layers']> => {
  const { stack, measure } = chart
  if (stack === 'none' || measure === 'latency' || measure === 'cache') return []
  if (stack === 'key' && hiddenFields.hidesKeys) return []
  if (stack === 'account' && hiddenFields.scope !== 'all') return []
  const bySpan = await sumsBySpan(db, spans, { dimension: stack, narrowing })
  const ids = new Set(bySpan.flatMap((byId) => [...byId.keys()]))
  const names = await getNames(db, hiddenFields)
  const getName = (id: string) => {
    if (stack === 'account') return names.accounts.get(id)
    if (stack === 'key') return names.keys.get(id)
    return stack === 'client' ? programName(id) : id
  }
  const layers = [...ids].map((id) => {
    const sums = bySpan.map((byId) => byId.get(id) ?? NOTHING)
    return { id: id === '' ? null : id, name: id === '' ? null : (getName(id) ?? null), sums }
  })
  const size = ({ sums }: (typeof layers)[number]) => sums.reduce((all, sum) => all + getAmount(measure, sum), 0)
  const sorted = layers.toSorted((a, b) => size(b) - size(a) || ((a.id ?? '') < (b.id ?? '') ? -1 : 1))
  return stack === 'client' ? withFewClients(sorted) : sorted
}

/** Clients choose their names, so there may be thousands. The largest stay; the others become one layer. */
const withFewClients = (layers: ReportBars['layers']): ReportBars['layers'] => {
  const isKept = ({ id }: (typeof layers)[number], place: number) => place < MAX_CLIENTS && id !== OTHER_CLIENTS
  const others = layers.filter((layer, place) => !isKept(layer, place))
  if (others.length === 0) return layers
  const sums = others[0]!.sums.map((_, n) => {
    // there is at least one
    const all: Sums = { ...NOTHING }
    for (const layer of others) addSums(all, layer.sums[n] ?? NOTHING)
    return all
  })
  return [...layers.filter(isKept), { id: OTHER_CLIENTS, name: OTHER_CLIENTS, sums }]
}

/** For measures that can be added up. */
const getAmount = (measure: Measure, sums: Sums): number => {
  if (measure === 'cost') return sums.costUsd
  return measure === 'tokens' ? sums.inputTokens + sums.outputTokens : sums.requests
}

const SAMPLE = 100
/** A long bar is sampled in parts, so that its last hour does not dominate. */
const PARTS = 4

/** `spans`: the bar and the previous one. */
const getFirstToken = async (
  db: Db,
  { account_id: accounts, api_key_id: keys, model, client }: ReportQuery,
  { scope, hidesKeys }: HiddenFields,
  [span, past]: readonly [Span, Span | undefined],
): Promise<ReportBar['firstToken']> => {
  const where = and(
    isNotNull(requests.firstEventMs),
    keyIdInScope(scope, requests.keyId),
    counted(),
    idWhere(requests.accountId, accounts),
    hidesKeys ? undefined : idWhere(requests.keyId, keys),
    idWhere(requests.model, model),
    or(client.includes(NONE_FILTER) ? isNull(requests.userAgent) : undefined, clientWhere(client)),
  )
  const parts = span.to - span.from <= HOUR_MS ? 1 : PARTS
  const sample = async ({ from, to }: Span): Promise<number[]> =>
    (
      await flatMapInOrder([...Array(parts).keys()], async (part) => {
        const [start, end] = [part, part + 1].map((n) => from + ((to - from) * n) / parts)
        return (
          await db
            .select({ ms: sql<number>`${requests.firstEventMs}` })
            .from(requests)
            .where(and(between(requests.startedAt, start ?? from, (end ?? to) - 1), where))
            .orderBy(desc(requests.startedAt))
            .limit(SAMPLE / parts)
            .all()
        ).map(({ ms }) => ms)
      })
    ).sort((a, b) => a - b)
  const times = await sample(span)
  const at = (sorted: readonly number[], share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? null
  const [p50, p95] = [at(times, 0.5), at(times, 0.95)]
  if (p50 === null || p95 === null) return null
  return { p50, p95, previousP50: past ? at(await sample(past), 0.5) : null }
}

const idWhere = (column: SQLiteColumn, asked: readonly string[]): SQL | undefined =>
  asked.length === 0
    ? undefined
    : or(inArray(column, [...asked]), asked.includes(NONE_FILTER) ? isNull(column) : undefined)

/** The pace of less than a day is meaningless. */
const toMonth = async (
  getSum: (span: Span) => Promise<Sums>,
  zone: string,
  now: number,
): Promise<ReportBars['month']> => {
  const first = `${localDate(now, zone).slice(0, 8)}01`
  const length = new Date(Date.UTC(Number(first.slice(0, 4)), Number(first.slice(5, 7)), 0)).getUTCDate()
  const { from, to } = getWhole(daysBetween(first, length, zone))
  const spentUsd = (await getSum({ from, to })).costUsd
  return { spentUsd, paceUsd: now - from < DAY_MS ? null : (spentUsd / (now - from)) * (to - from) }
}
