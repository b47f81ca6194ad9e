/** The errors of a period as the overview lists them: those with the same cause as one line with a count. */
import { and, count, desc, gte, inArray, max, sql } from 'drizzle-orm'
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
export const errorGroups = (db: Db, since: number): ErrorGroup[] => {
  const rows = combinations(db, since)
  const shown = [...Map.groupBy(rows, (row) => resultText(row, 0)).values()].slice(0, MAX_GROUPS)
  const newest = getEntries(
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

type Combination = ReturnType<typeof combinations>[number]

/** Grouped by columns of the index; the newest request of each tells its cause. */
const combinations = (db: Db, since: number) => {
  const groups = db
    .select({ count: count(), at: max(requests.startedAt).as('at'), id: requests.id })
    .from(requests)
    .where(and(TROUBLE, gte(requests.startedAt, since), isFaultCondition(), counted()))
    .groupBy(requests.errorCode, requests.accountId, requests.model)
    .orderBy(desc(sql`at`))
    .limit(MAX_COMBINATIONS)
    .all()
  const ids = groups.map(({ id }) => id)
  const { id, status, errorCode, errorMessage, phase, accountId, model } = requests
  const columns = { id, status, errorCode, errorMessage, phase, accountId, model }
  const rows = db.select(columns).from(requests).where(inArray(requests.id, ids)).all()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return groups.flatMap(({ id, count }) => {
    const row = byId.get(id)
    return row ? [{ ...row, count }] : []
  })
}

const getEntries = (db: Db, ids: readonly Combination['id'][]): ReadonlyMap<string, LogEntry> => {
  const hidden = { names: new Map(), sensitive: false } // cached, and names change
  const rows = selectJoined(db)
    .where(inArray(requests.id, [...ids]))
    .all()
  return new Map(rows.map((joined) => [joined.row.id, toEntry(joined, hidden)]))
}

const distinct = (values: readonly (string | null)[]): string[] => [
  ...new Set(values.filter((value) => value !== null)),
]
