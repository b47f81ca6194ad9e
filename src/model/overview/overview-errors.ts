/** The errors of a period as the overview lists them: those with the same cause as one line with a count. */
import { and, count, desc, gte, inArray, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { counted } from '../log/counted-requests.ts'
import { type LogEntry, selectJoined, toEntry } from '../log/request-log-entry.ts'
import { resultText } from '../log/request-result.ts'
import { isFaultCondition } from '../log/turn-fault.ts'

export interface ErrorGroup {
  count: number
  /** The newest error; the view adds its account's name. */
  newest: LogEntry
  /** Codes, account ids and models of all its errors, the newest first. */
  codes: string[]
  accountIds: string[]
  models: string[]
}

const MAX_GROUPS = 6
/** Combinations of code, account and model that are read; older ones are not counted. */
const MAX_COMBINATIONS = 500
/** Matches the partial index, which contains every column that is grouped by. */
const TROUBLE = sql`${requests.status} <> 'ok'`

/** Errors since `since` (ms) with the same cause are one group; the newest group comes first. */
export const errorGroups = async (db: Db, since: number): Promise<ErrorGroup[]> => {
  const rows = await combinations(db, since)
  const shown = [...Map.groupBy(rows, (row) => resultText(row, 0)).values()].slice(0, MAX_GROUPS)
  const newest = await getEntries(
    db,
    shown.flatMap(([row]) => (row ? [row.id] : [])),
  )
  return shown.flatMap((group) => {
    const entry = newest.get(group[0]?.id ?? '')
    if (!entry) return []
    return [
      {
        count: group.reduce((sum, row) => sum + row.count, 0),
        newest: entry,
        codes: distinct(group.map(({ errorCode }) => errorCode)),
        accountIds: distinct(group.map(({ accountId }) => accountId)),
        models: distinct(group.map(({ model }) => model)),
      },
    ]
  })
}

type Combination = Awaited<ReturnType<typeof combinations>>[number]

/** Grouped by columns of the index; the newest request of each tells its cause. */
const combinations = async (db: Db, since: number) => {
  const { id, startedAt, status, errorCode, errorMessage, phase, accountId, model } = requests
  const where = and(TROUBLE, isFaultCondition(), counted())
  const groups = await db
    .select({ errorCode, accountId, model, count: count(), startedAt: sql<number>`max(${startedAt})`.as('at') })
    .from(requests)
    .where(and(gte(startedAt, since), where))
    .groupBy(errorCode, accountId, model)
    .orderBy(desc(sql`at`))
    .limit(MAX_COMBINATIONS)
    .all()
  const times = groups.map((group) => group.startedAt)
  const columns = { id, startedAt, status, errorCode, errorMessage, phase, accountId, model }
  const rows = await db
    .select(columns)
    .from(requests)
    .where(and(inArray(startedAt, times), where))
    .all()
  const newest = new Map(rows.map((row) => [getName(row), row]))
  return groups.flatMap(({ count, ...group }) => {
    const row = newest.get(getName(group))
    return row ? [{ ...row, count }] : []
  })
}

type Name = Record<'errorCode' | 'accountId' | 'model', string | null> & { startedAt: number }

const getName = ({ errorCode, accountId, model, startedAt }: Name): string =>
  JSON.stringify([errorCode, accountId, model, startedAt])

const getEntries = async (db: Db, ids: readonly Combination['id'][]): Promise<ReadonlyMap<string, LogEntry>> => {
  const hidden = { names: new Map(), sensitive: false } // cached, and names change
  const rows = await selectJoined(db)
    .where(inArray(requests.id, [...ids]))
    .all()
  return new Map(rows.map((joined) => [joined.row.id, toEntry(joined, hidden)]))
}

const distinct = (values: readonly (string | null)[]): string[] => [
  ...new Set(values.filter((value) => value !== null)),
]
