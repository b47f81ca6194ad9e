/** Usage in a range of days, from the hourly totals: by day, model, account and key, next to the previous period. */
import { and, Column, gte, inArray, is, lt, type SQL, sql } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { requestHours } from '../../../db/schema/requests.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { programName } from '../../lib/user-agent.ts'
import { daysBefore, daysBetween, isZone, localDate } from '../../lib/zoned-days.ts'
import { accountNames } from '../accounts/account-names.ts'
import { filled, oneOrMany } from '../form-query.ts'
import { MAX_CLIENTS } from '../log/counted-clients.ts'
import { keyNames } from '../log/request-log-choices.ts'
import type { HiddenFields } from '../log/request-view.ts'
import { sourceNames } from '../sources/source-rows.ts'
import { HOUR_SUMS } from '../sums.ts'
import { keyIdInScope } from '../users/view-scope.ts'
import { getFilteredUsage } from './report-filtered.ts'
import { NONE_FILTER, OTHER_CLIENTS } from './report-filters.ts'
import { addSums, NOTHING, type Shares, type Sums, type Use } from './report-sums.ts'
import { getUsage } from './report-unfiltered.ts'
import { type DayDigest, getDigests } from './request-digests.ts'
import type { Dimension } from './request-spans.ts'

const MAX_DAYS = 730
/** Days shown by default. */
const USUAL_DAYS = 7

const ids = oneOrMany(z.string().max(255))
const date = filled(z.iso.date())

/** The query string. Both days are included; an unknown zone is UTC. */
export const ReportQuery = z.object({
  start_date: date.describe('YYYY-MM-DD, inclusive. Default: six days before the last day.'),
  end_date: date.describe('YYYY-MM-DD, inclusive. Default: today.'),
  timezone: z.string().max(64).default('UTC').describe('IANA name of the time zone of the days.'),
  account_id: ids.describe('Only requests served by one of these accounts. `(none)` (in any filter): by no account.'),
  api_key_id: ids.describe('Only requests with one of these keys (IDs).'),
  source_id: ids.describe('Only requests served by one of these model sources. `(none)`: by accounts, or by nothing.'),
  model: ids.describe('Only requests for one of these models.'),
  client: ids.describe('Only requests from one of these clients: the user agent without its version.'),
  useragent_group: ids.describe('The same as `client`.'),
})
export type ReportQuery = z.output<typeof ReportQuery>

export interface ReportDay extends Sums {
  /** YYYY-MM-DD in the zone of the report. */
  date: string
  activeAccounts: number
  reasoningTokens: DayDigest['reasoningTokens'] | null
  conversations: DayDigest['conversations'] | null
  medianFirstTokenMs: DayDigest['medianFirstTokenMs']
  medianTokensPerSecond: DayDigest['medianTokensPerSecond']
}

/** `id` null: requests without one. `name` null: deleted, or without a name. */
export interface ReportShare extends Sums {
  id: string | null
  name: string | null
  /** Percent of the report's requests. */
  percentage: number
}

/** In a user's own scope there are no accounts: their list is empty and their numbers are zero. */
export interface Report {
  startDate: string
  endDate: string
  timezone: string
  summary: Sums & {
    activeAccounts: number
    avgCostPerDayUsd: number
    avgRequestsPerDay: number
    /** Null with filters and in a user's own scope: digests of hours tell neither keys nor models apart. */
    reasoningTokens: number | null
    conversations: number | null
  }
  /** The same number of days before; `canCompare`: they had requests. */
  comparison: { canCompare: boolean; previous: Sums }
  daily: ReportDay[]
  byModel: ReportShare[]
  byAccount: ReportShare[]
  byClient: ReportShare[]
  /** Empty while no model source served a request. Null id: accounts served them, or nothing did. */
  bySource: ReportShare[]
  /** null: this user may not see keys. */
  byKey: ReportShare[] | null
}

/** `now` is ms since epoch. Throws `validation_error` for a range that ends before it begins or spans over 730 days. */
export const report = async (db: Db, query: ReportQuery, hiddenFields: HiddenFields, now: number): Promise<Report> => {
  const { startDate, endDate, timezone, days, before } = getRange(query, now)
  const narrowing = getWhere(query, hiddenFields)
  const use = narrowing ? await getFilteredUsage(db, { days, before }, narrowing) : await getUsage(db, { days, before })
  const digests = narrowing ? null : await getDigests(db, days)
  const total = addUp(use.days)
  const isOwn = hiddenFields.scope !== 'all'
  const names = await getNames(db, hiddenFields)
  const shares = (dimension: Exclude<Dimension, 'all'>, getName: (id: string) => string | null) =>
    getShares(use.by[dimension], { getName, total: total.requests })
  const byAccount = shares('account', (id) => names.accounts.get(id) ?? null)
  return {
    startDate,
    endDate,
    timezone,
    summary: {
      ...total,
      activeAccounts: isOwn ? 0 : byAccount.filter(({ id }) => id !== null).length,
      avgCostPerDayUsd: total.costUsd / days.length,
      avgRequestsPerDay: total.requests / days.length,
      reasoningTokens: digests?.total.reasoningTokens ?? null,
      conversations: digests?.total.conversations ?? null,
    },
    comparison: getComparison(use.before),
    daily: days.map(({ date: day }, n) => ({
      ...toDay(day, isOwn ? { ...use, activeAccounts: [] } : use, n),
      ...(digests?.days[n] ?? NO_DIGEST),
    })),
    byModel: shares('model', (id) => id),
    byAccount: isOwn ? [] : byAccount,
    byClient: withFewClients(shares('client', programName)),
    bySource: isOwn ? [] : ifAny(shares('source', (id) => names.sources.get(id) ?? null)),
    byKey: hiddenFields.hidesKeys ? null : shares('key', (id) => names.keys.get(id) ?? null),
  }
}

export interface ReportLine extends Sums {
  date: string
  model: string
  account: string
  key: string
}

/** Where a page starts: a day of the range, counted from 0, and the group before it. */
export interface LinePlace {
  day: number
  after: Pick<Group, 'accountId' | 'keyId' | 'model'> | null
}

interface LinePage {
  lines: ReportLine[]
  /** null: these were the last. */
  next: LinePlace | null
}

/**
 * At most `limit` lines from `place`, one per day, model, account and key, for spreadsheets. Users who may not see keys
 * get one line for all keys. Throws like `report`.
 */
export const reportLines = async (
  db: Db,
  query: ReportQuery,
  hiddenFields: HiddenFields,
  { now, place, limit }: { now: number; place: LinePlace; limit: number },
): Promise<LinePage> => {
  const where = getWhere(query, hiddenFields)
  const names = await getNames(db, hiddenFields)
  const { days } = getRange(query, now)
  const page: LinePage = { lines: [], next: place }
  for (let day = days[place.day]; day && page.next && page.lines.length < limit; day = days[page.next.day]) {
    const within = and(gte(requestHours.hour, day.from), lt(requestHours.hour, day.to), where)
    const room = limit - page.lines.length
    const groups = await getGroups(db, within, { hiddenFields, after: page.next.after, limit: room })
    page.lines.push(...groups.map((group) => getLine(day.date, group, names)))
    const last = groups.length === room ? groups.at(-1) : undefined
    page.next = last ? { day: page.next.day, after: last } : { day: page.next.day + 1, after: null }
  }
  return days[page.next?.day ?? days.length] ? page : { ...page, next: null }
}

const getLine = (date: string, { accountId, keyId, model, ...sums }: Group, names: Names): ReportLine => ({
  ...sums,
  date,
  model,
  account: names.accounts.get(accountId) ?? accountId,
  key: names.keys.get(keyId) ?? keyId,
})

/** Throws like `report`. */
export const getRange = ({ start_date: start, end_date: end, timezone: zone }: ReportQuery, now: number) => {
  const timezone = isZone(zone) ? zone : 'UTC'
  const endDate = end ?? localDate(now, timezone)
  const startDate = start ?? new Date(Date.parse(endDate) - (USUAL_DAYS - 1) * DAY_MS).toISOString().slice(0, 10)
  const length = (Date.parse(endDate) - Date.parse(startDate)) / DAY_MS + 1
  if (length < 1) throw refused('end_date', 'choose a day that is not before the first one')
  if (length > MAX_DAYS) throw refused('start_date', `choose at most ${MAX_DAYS} days`)
  return {
    startDate,
    endDate,
    timezone,
    days: daysBetween(startDate, length, timezone),
    before: daysBefore(startDate, length, timezone),
  }
}

const refused = (param: string, problem: string): AppError =>
  new AppError('validation_error', { param, details: { fields: { [param]: [problem] } } })

export const getWhere = (
  {
    account_id: accountIds,
    api_key_id: keyIds,
    source_id: sourceIds,
    model,
    client: named,
    useragent_group: alsoNamed,
  }: ReportQuery,
  { scope, hidesKeys }: HiddenFields,
) => {
  const client = [...named, ...alsoNamed]
  return and(
    keyIdInScope(scope, requestHours.keyId),
    accountIds.length > 0 ? inArray(requestHours.accountId, idsIn(accountIds)) : undefined,
    keyIds.length > 0 && !hidesKeys ? inArray(requestHours.keyId, idsIn(keyIds)) : undefined,
    model.length > 0 ? inArray(requestHours.model, idsIn(model)) : undefined,
    client.length > 0 ? inArray(requestHours.client, idsIn(client)) : undefined,
    sourceIds.length > 0 ? inArray(requestHours.sourceId, idsIn(sourceIds)) : undefined,
  )
}

/** Hourly totals have an empty id there. */
const idsIn = (asked: readonly string[]): string[] => asked.map((id) => (id === NONE_FILTER ? '' : id))

const { costMicros, ...COUNTED } = HOUR_SUMS
const SUMS = { ...COUNTED, costUsd: sql<number>`${costMicros} / 1e6` }

interface Group extends Sums {
  accountId: string
  keyId: string
  model: string
}

interface GroupPage {
  /** Hidden keys and accounts are merged into one group. */
  hiddenFields: HiddenFields
  after: LinePlace['after']
  limit: number
}

const getGroups = async (
  db: Db,
  where: SQL | undefined,
  { hiddenFields, after, limit }: GroupPage,
): Promise<Group[]> => {
  const { model } = requestHours
  const accountId = hiddenFields.scope === 'all' ? requestHours.accountId : sql<string>`''`
  const keyId = hiddenFields.hidesKeys ? sql<string>`''` : requestHours.keyId
  const shown = [accountId, keyId, model].filter((column) => is(column, Column)) // PostgreSQL rejects a constant there
  const isBehind =
    after && sql`(${accountId}, ${keyId}, ${model}) > (${after.accountId}, ${after.keyId}, ${after.model})`
  return db
    .select({ accountId: sql<string>`${accountId}`, keyId: sql<string>`${keyId}`, model, ...SUMS })
    .from(requestHours)
    .where(and(where, isBehind ?? undefined))
    .groupBy(...shown)
    .orderBy(...shown)
    .limit(limit)
    .all()
}

const NO_DIGEST = {
  reasoningTokens: null,
  conversations: null,
  medianFirstTokenMs: null,
  medianTokensPerSecond: null,
} as const

const toDay = (date: string, { days, activeAccounts }: Use, place: number) => ({
  date,
  ...(days[place] ?? NOTHING),
  activeAccounts: activeAccounts[place] ?? 0,
})

const addUp = (rows: readonly Sums[]): Sums => {
  const sums: Sums = { ...NOTHING }
  for (const row of rows) addSums(sums, row)
  return sums
}

/** Nothing while all of it was served without a source. */
const ifAny = (shares: ReportShare[]): ReportShare[] => (shares.some(({ id }) => id !== null) ? shares : [])

interface Sharing {
  getName: (id: string) => string | null
  total: number
}

/** Highest cost first, then most requests. */
const getShares = (rows: Shares, { getName, total: all }: Sharing): ReportShare[] =>
  rows
    .map(({ id, ...sums }) => {
      const percentage = all === 0 ? 0 : (sums.requests / all) * 100
      return { id: id === '' ? null : id, name: id === '' ? null : getName(id), ...sums, percentage }
    })
    .toSorted((a, b) => b.costUsd - a.costUsd || b.requests - a.requests || ((a.id ?? '') < (b.id ?? '') ? -1 : 1))

/** Clients choose their names, so there may be thousands: the largest, and the others in one row. */
const withFewClients = (shares: readonly ReportShare[]): ReportShare[] => {
  const isKept = ({ id }: ReportShare, place: number) => place < MAX_CLIENTS && id !== OTHER_CLIENTS
  const others = shares.filter((share, place) => !isKept(share, place))
  if (others.length === 0) return [...shares]
  const percentage = others.reduce((all, share) => all + share.percentage, 0)
  return [...shares.filter(isKept), { id: OTHER_CLIENTS, name: OTHER_CLIENTS, ...addUp(others), percentage }]
}

const getComparison = (previous: Sums): Report['comparison'] => ({ canCompare: previous.requests > 0, previous })

type Names = Awaited<ReturnType<typeof getNames>>

export const getNames = async (db: Db, hiddenFields: HiddenFields) => ({
  accounts: await accountNames(db, hiddenFields),
  sources: await sourceNames(db),
  keys: new Map((await keyNames(db, hiddenFields.scope)).map(({ id, name }) => [id, name])),
})
