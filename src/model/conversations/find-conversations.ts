/**
 * Finds conversations by their last request, newest first. The log is read backwards until a page is full: a conversation
 * is met at its last request first, so nothing has to be sorted and only the page is added up.
 */

import { and, desc, gte, type SQL, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { requests } from '../../../db/schema/requests.ts'
import { filterInOrder } from '../../lib/in-order.ts'
import { accountNames } from '../accounts/account-names.ts'
import type { Cursor } from '../log/request-log-query.ts'
import { pastCursor } from '../log/request-log-where.ts'
import type { HiddenFields } from '../log/request-view.ts'

export interface ConversationSearch {
  search: string
  /** ms since epoch; only conversations with a request since then. */
  since: number
  /** Only those whose last request is older. */
  cursor?: Cursor
}

/** A conversation and its last request. */
export interface Place extends Cursor {
  conversationId: string
}

interface Found {
  places: Place[]
  /** Where reading stopped early; null: enough were found, or there are no more. */
  stoppedAt: Cursor | null
}

/** Log rows read one after the other: 50,000 in all, about 50 ms. */
const CHUNKS = [1000, 2000, 4000, 8000, 15_000, 20_000]
/** A search also reads the requests of every conversation it meets, which are spread over the file. */
const SEARCH_CHUNKS = [1000, 2000, 7000]
/** Rows of one conversation that are searched. */
const MAX_SEARCHED = 200

export const findConversations = async (
  db: Db,
  query: ConversationSearch,
  hiddenFields: HiddenFields,
  wanted: number,
): Promise<Found> => {
  if (CONVERSATION_ID.test(query.search)) {
    const place = query.cursor ? null : await getPlace(db, query.search)
    if (place) return { places: place.startedAt >= query.since ? [place] : [], stoppedAt: null }
  }
  const fits = await searchWhere(db, query.search, hiddenFields)
  const seen = new Set<string>()
  const places: Place[] = []
  let from = query.cursor
  for (const size of query.search === '' ? CHUNKS : SEARCH_CHUNKS) {
    const rows = await rowsBefore(db, { from, since: query.since, size })
    const fresh = rows.filter((row): row is Place => isFirstOf(row, seen))
    const still = query.cursor ? await ended(db, fresh, query.cursor) : fresh
    places.push(...(fits ? await fitting(db, still, fits) : still))
    if (places.length >= wanted) return { places: places.slice(0, wanted), stoppedAt: null }
    from = rows.at(-1)
    if (rows.length < size || !from) return { places, stoppedAt: null }
  }
  return { places, stoppedAt: from ?? null }
}

const CONVERSATION_ID = /^[\w-]{43}$/

/** The last request of a conversation; null: it has none in the log. */
export const getPlace = async (db: Db, conversationId: string): Promise<Place | null> => {
  const [last] = await db
    .select({ startedAt: requests.startedAt, id: requests.id })
    .from(requests)
    .where(sql`${requests.conversationHash} = ${conversationId}`)
    .orderBy(desc(requests.startedAt), desc(requests.id))
    .limit(1)
    .all()
  return last ? { ...last, conversationId } : null
}

interface Row extends Cursor {
  conversationId: string | null
}

const rowsBefore = (
  db: Db,
  { from, since, size }: { from: Cursor | undefined; since: number; size: number },
): Promise<Row[]> =>
  db.all<Row>(sql`
    SELECT started_at AS "startedAt", id, conversation_hash AS "conversationId" FROM ${requests}
    WHERE ${and(gte(requests.startedAt, since), from && pastCursor(from, 'older'))}
    ORDER BY started_at DESC, id DESC LIMIT ${size}`)

const isFirstOf = ({ conversationId }: Row, seen: Set<string>): boolean => {
  if (conversationId === null || seen.has(conversationId)) return false
  seen.add(conversationId)
  return true
}

/** Those that did not go on after the cursor, which are on an earlier page. One look into the index for each. */
const ended = async (db: Db, places: readonly Place[], cursor: Cursor): Promise<Place[]> => {
  const ids = JSON.stringify(places.map(({ conversationId }) => conversationId))
  const last = await db.all<{ id: string; at: number }>(sql`
    SELECT chosen.value AS id,
      (SELECT max(${requests.startedAt}) FROM ${requests} WHERE ${requests.conversationHash} = chosen.value) AS at
    FROM json_each(${ids}) AS chosen`)
  const lastAt = new Map(last.map(({ id, at }) => [id, at]))
  return filterInOrder(places, async ({ conversationId, id, startedAt }) => {
    if (lastAt.get(conversationId) !== startedAt) return false
    return startedAt < cursor.startedAt || (await getPlace(db, conversationId))?.id === id
  })
}

const fitting = async (db: Db, places: readonly Place[], fits: SQL): Promise<Place[]> => {
  const ids = JSON.stringify(places.map(({ conversationId }) => conversationId))
  const rows = await db.all<{ id: string }>(
    sql`SELECT chosen.value AS id FROM json_each(${ids}) AS chosen WHERE ${fits}`,
  )
  const kept = new Set(rows.map(({ id }) => id))
  return places.filter(({ conversationId }) => kept.has(conversationId))
}

/** On `chosen.value`; null: no search. By names as this user sees them, so that hidden ones cannot be searched for. */
const searchWhere = async (db: Db, search: string, hiddenFields: HiddenFields): Promise<SQL | null> => {
  if (search === '') return null
  const text = search.toLowerCase()
  const isFound = ([id, name]: readonly [string, string]) => id === search || name.toLowerCase().includes(text)
  const accountIds = [...(await accountNames(db, hiddenFields))].filter(isFound).map(([id]) => id)
  const keys = hiddenFields.hidesKeys ? [] : await db.select({ id: apiKeys.id, name: apiKeys.name }).from(apiKeys).all()
  const keyIds = keys.filter(({ id, name }) => isFound([id, name])).map(({ id }) => id)
  const isIn = (column: SQL, ids: readonly string[]) =>
    sql`${column} IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`
  return sql`(substr(chosen.value, 1, ${search.length}) = ${search} OR EXISTS (
    SELECT 1 FROM (SELECT account_id, key_id, model FROM ${requests} WHERE ${requests.conversationHash} = chosen.value
      ORDER BY ${requests.startedAt} DESC LIMIT ${MAX_SEARCHED}) AS one
    WHERE instr(lower(one.model), ${text}) > 0 OR ${isIn(sql`one.account_id`, accountIds)} OR ${isIn(sql`one.key_id`, keyIds)}))`
}
