/** Usage under a condition for which no longer totals are kept: reads every hour once. */
import { type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import {
  addSums,
  getWhole,
  NOTHING,
  type Range,
  SELECTED,
  type Shares,
  type Span,
  type Sums,
  TOTALS,
  type Use,
} from './report-sums.ts'

/** Limits memory. */
const DAYS_AT_ONCE = 31

/** `narrowing` is a condition on rows of `request_hours`. */
export const getFilteredUsage = async (db: Db, { days, before }: Range, narrowing: SQL): Promise<Use> => {
  const sums = days.map(nothing)
  const accounts = days.map(() => new Set<string>())
  const by = { account: newSums(), key: newSums(), model: newSums(), client: newSums(), source: newSums() }
  for (let first = 0; first < days.length; first += DAYS_AT_ONCE) {
    const some = days.slice(first, first + DAYS_AT_ONCE)
    const places = new Map(some.flatMap((day, n) => toHours(day).map((hour) => [hour, first + n])))
    for (const row of await rowsIn(db, getWhole(some), narrowing)) {
      const place = places.get(row.hour)
      if (place === undefined) continue
      addSums(sums[place]!, row) // every day has an entry
      if (row.account !== '') accounts[place]!.add(row.account)
      for (const dimension of ['account', 'key', 'model', 'client', 'source'] as const)
        addSums(by[dimension].getOrInsertComputed(row[dimension], nothing), row)
    }
  }
  return {
    days: sums,
    activeAccounts: accounts.map(({ size }) => size),
    before: await getSum(db, before, narrowing),
    by: {
      account: sharesIn(by.account),
      key: sharesIn(by.key),
      model: sharesIn(by.model),
      client: sharesIn(by.client),
      source: sharesIn(by.source),
    },
  }
}

const toHours = ({ from, to }: Span): number[] => {
  const first = Math.ceil(from / HOUR_MS) * HOUR_MS
  return Array.from({ length: Math.ceil((to - first) / HOUR_MS) }, (_, n) => first + n * HOUR_MS)
}

interface Row extends Sums {
  hour: number
  account: string
  key: string
  model: string
  client: string
  source: string
}

const rowsIn = (db: Db, span: Span, narrowing: SQL): Promise<Row[]> =>
  db.all(sql`
    SELECT hour, account_id AS account, key_id AS "key", model, client, source_id AS source,
      ${sql.raw(SELECTED)} FROM request_hours
    WHERE ${within(span, narrowing)}`)

const getSum = async (db: Db, span: Span, narrowing: SQL): Promise<Sums> =>
  (await db.all<Sums>(sql`SELECT ${sql.raw(TOTALS)} FROM request_hours WHERE ${within(span, narrowing)}`))[0] ?? NOTHING

const within = ({ from, to }: Span, narrowing: SQL): SQL => sql`hour >= ${from} AND hour < ${to} AND ${narrowing}`

const newSums = () => new Map<string, Sums>()

const nothing = (): Sums => ({ ...NOTHING })

const sharesIn = (sums: ReadonlyMap<string, Sums>): Shares => [...sums].map(([id, sum]) => ({ id, ...sum }))
