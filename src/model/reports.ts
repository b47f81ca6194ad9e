/** What was used in a range of days, from the hourly sums: per day, model, account and key, beside the days before. */
import { and, gte, inArray, lt, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../db/commit.ts'
import { accounts } from '../../db/schema/accounts.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { requestHours } from '../../db/schema/requests.ts'
import { AppError } from '../errors.ts'
import { type Day, daysBetween, isZone, localDate } from './report-days.ts'
import { type Blinders, blindedRow } from './request-view.ts'

const MAX_DAYS = 730
const DAY_MS = 86_400_000
/** Days shown when nobody names any. */
const USUAL_DAYS = 7

const many = z
  .preprocess((value) => [value ?? []].flat().filter((one) => one !== ''), z.array(z.string().max(255)).max(200))
  .default([])
const date = z.preprocess((value) => (value === '' ? undefined : value), z.iso.date().optional())

/** The query string (dashboard API §1.16). Both days are included; a zone nobody knows is UTC. */
export const ReportQuery = z.object({
  start_date: date,
  end_date: date,
  timezone: z.string().max(64).default('UTC'),
  account_id: many,
  api_key_id: many,
  model: many,
})
export type ReportQuery = z.output<typeof ReportQuery>

export interface Sums {
  requests: number
  errors: number
  cancelled: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  costUsd: number
  /** Requests whose model has no price: they are missing from the cost. */
  unpriced: number
}

export interface ReportDay extends Sums {
  /** YYYY-MM-DD in the zone of the report. */
  date: string
  activeAccounts: number
}

/** `id` null: requests that had none. `name` null: it is gone, or has none. */
export interface ReportShare extends Sums {
  id: string | null
  name: string | null
  /** Of the requests in the report. */
  percentage: number
}

export interface Report {
  startDate: string
  endDate: string
  timezone: string
  summary: Sums & { activeAccounts: number; avgCostPerDayUsd: number; avgRequestsPerDay: number }
  /** As many days before the first; `canCompare`: something was used in them. */
  comparison: { canCompare: boolean; previous: Sums }
  daily: ReportDay[]
  byModel: ReportShare[]
  byAccount: ReportShare[]
  /** null: the caller may not know the keys. */
  byKey: ReportShare[] | null
}

/** `now` is ms since epoch. Throws `validation_error` for a range that ends before it begins or spans over 730 days. */
export const report = (db: Db, query: ReportQuery, blinders: Blinders, now: number): Report => {
  const range = rangeOf(query, now)
  const { days, timezone } = range
  const where = whereOf(query, blinders)
  const within = (from: number, to: number) => and(gte(requestHours.hour, from), lt(requestHours.hour, to), where)
  const { from, to } = spanOf(days)
  const daily = days.map((day) => dayOf(db, day, within(day.from, day.to)))
  const groups = groupsOf(db, within(from, to))
  const total = addUp(daily)
  const names = namesOf(db)
  const shares = (pick: (group: Group) => string, nameOf: (id: string) => string | null) =>
    sharesOf(groups, { pick, nameOf, total: total.requests })
  return {
    startDate: range.startDate,
    endDate: range.endDate,
    timezone,
    summary: {
      ...total,
      activeAccounts: new Set(groups.flatMap(({ accountId }) => accountId || [])).size,
      avgCostPerDayUsd: total.costUsd / days.length,
      avgRequestsPerDay: total.requests / days.length,
    },
    comparison: comparisonOf(sumsOf(db, within(from - (to - from), from))),
    daily,
    byModel: shares(
      ({ model }) => model,
      (id) => id,
    ),
    byAccount: shares(
      ({ accountId }) => accountId,
      (id) => names.accounts.get(id) ?? null,
    ).map((share) => named(share, blinders)),
    byKey: blinders.hidesKeys
      ? null
      : shares(
          ({ keyId }) => keyId,
          (id) => names.keys.get(id) ?? null,
        ),
  }
}

export interface ReportLine extends Sums {
  date: string
  model: string
  account: string
  key: string
}

/** One line a day, model, account and key: what a spreadsheet wants. Throws like `report`. */
export const reportLines = (db: Db, query: ReportQuery, blinders: Blinders, now: number): ReportLine[] => {
  const where = whereOf(query, blinders)
  const names = namesOf(db)
  return rangeOf(query, now).days.flatMap(({ date: day, from, to }) =>
    groupsOf(db, and(gte(requestHours.hour, from), lt(requestHours.hour, to), where)).map((group) => ({
      ...sumsIn(group),
      date: day,
      model: group.model,
      account: named({ name: names.accounts.get(group.accountId) ?? group.accountId }, blinders).name ?? '',
      key: blinders.hidesKeys ? '' : (names.keys.get(group.keyId) ?? group.keyId),
    })),
  )
}

interface Range {
  startDate: string
  endDate: string
  timezone: string
  days: Day[]
}

const rangeOf = ({ start_date: start, end_date: end, timezone: zone }: ReportQuery, now: number): Range => {
  const timezone = isZone(zone) ? zone : 'UTC'
  const endDate = end ?? localDate(now, timezone)
  const startDate = start ?? new Date(Date.parse(endDate) - (USUAL_DAYS - 1) * DAY_MS).toISOString().slice(0, 10)
  const length = (Date.parse(endDate) - Date.parse(startDate)) / DAY_MS + 1
  if (length < 1) throw refused('end_date', 'comes before the first day')
  if (length > MAX_DAYS) throw refused('start_date', `a report spans at most ${MAX_DAYS} days`)
  return { startDate, endDate, timezone, days: daysBetween(startDate, length, timezone) }
}

const refused = (param: string, problem: string): AppError =>
  new AppError('validation_error', { param, details: { fields: { [param]: [problem] } } })

const spanOf = (days: readonly Day[]) => ({ from: days[0]?.from ?? 0, to: days.at(-1)?.to ?? 0 })

const whereOf = ({ account_id: accountIds, api_key_id: keyIds, model }: ReportQuery, { hidesKeys }: Blinders) =>
  and(
    accountIds.length > 0 ? inArray(requestHours.accountId, accountIds) : undefined,
    keyIds.length > 0 && !hidesKeys ? inArray(requestHours.keyId, keyIds) : undefined,
    model.length > 0 ? inArray(requestHours.model, model) : undefined,
  )

const total = (column: SQLWrapper) => sql<number>`coalesce(sum(${column}), 0)`

const SUMS = {
  requests: total(requestHours.requests),
  errors: total(requestHours.errors),
  cancelled: total(requestHours.cancelled),
  inputTokens: total(requestHours.inputTokens),
  cachedInputTokens: total(requestHours.cachedInputTokens),
  outputTokens: total(requestHours.outputTokens),
  costUsd: sql<number>`coalesce(sum(${requestHours.costMicros}), 0) / 1e6`,
  unpriced: total(requestHours.unpriced),
}

const NOTHING: Sums = Object.freeze({
  requests: 0,
  errors: 0,
  cancelled: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  costUsd: 0,
  unpriced: 0,
})

const sumsOf = (db: Db, where: SQL | undefined): Sums =>
  db.select(SUMS).from(requestHours).where(where).get() ?? NOTHING

const dayOf = (db: Db, { date: day }: Day, where: SQL | undefined): ReportDay => {
  const { accountId } = requestHours
  const activeAccounts = sql<number>`count(DISTINCT nullif(${accountId}, ''))`
  const row = db
    .select({ ...SUMS, activeAccounts })
    .from(requestHours)
    .where(where)
    .get()
  return { date: day, ...(row ?? { ...NOTHING, activeAccounts: 0 }) }
}

interface Group extends Sums {
  accountId: string
  keyId: string
  model: string
}

const groupsOf = (db: Db, where: SQL | undefined): Group[] => {
  const { accountId, keyId, model } = requestHours
  return db
    .select({ accountId, keyId, model, ...SUMS })
    .from(requestHours)
    .where(where)
    .groupBy(accountId, keyId, model)
    .all()
}

const NAMES = Object.keys(NOTHING) as (keyof Sums)[] // as: Object.keys forgets the literal types

const sumsIn = (group: Sums): Sums => addUp([group])

const addUp = (rows: readonly Sums[]): Sums => {
  const sums: Sums = { ...NOTHING }
  for (const row of rows) for (const name of NAMES) sums[name] += row[name]
  return sums
}

interface Sharing {
  pick: (group: Group) => string
  nameOf: (id: string) => string | null
  total: number
}

/** The dearest first, and of the same cost the busiest. */
const sharesOf = (groups: readonly Group[], { pick, nameOf, total: all }: Sharing): ReportShare[] =>
  [...Map.groupBy(groups, pick)]
    .map(([id, members]) => {
      const sums = addUp(members)
      const percentage = all === 0 ? 0 : (sums.requests / all) * 100
      return { id: id === '' ? null : id, name: id === '' ? null : nameOf(id), ...sums, percentage }
    })
    .toSorted((a, b) => b.costUsd - a.costUsd || b.requests - a.requests)

const comparisonOf = (previous: Sums): Report['comparison'] => ({ canCompare: previous.requests > 0, previous })

const named = <T extends { name: string | null }>(row: T, blinders: Blinders): T => ({
  ...row,
  name: blindedRow({ accountName: row.name }, blinders).accountName ?? null,
})

const namesOf = (db: Db) => ({
  accounts: new Map(
    db
      .select({ id: accounts.id, email: accounts.email, alias: accounts.alias })
      .from(accounts)
      .all()
      .map(({ id, email, alias }) => [id, alias ?? email]),
  ),
  keys: new Map(
    db
      .select({ id: apiKeys.id, name: apiKeys.name })
      .from(apiKeys)
      .all()
      .map(({ id, name }) => [id, name]),
  ),
})
