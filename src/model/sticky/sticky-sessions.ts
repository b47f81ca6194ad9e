/** Sticky sessions: which account owns a conversation or a piece of ciphertext. Listed and filtered from `affinity`. */
import { and, lt, type SQL, type SQLWrapper, sql } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { affinity } from '../../../db/schema/accounts.ts'
import { keyOrder, keyWhere, type StickyKind, stickyKey } from './session-key.ts'

export interface StickyFilter {
  /** null: both. */
  kind: StickyKind | null
  /** Only sessions last used before this, ms since epoch; null: also newer ones. */
  usedBefore: number | null
  /** null: all existing accounts. */
  accountIds: readonly string[] | null
  /** The beginning of the key, or a `conversationId`. Empty: all. */
  key: string
}

/** Rows keep only their last use, so `created_at` sorts by it. */
export const STICKY_SORTS = ['updated_at', 'created_at', 'account', 'key'] as const

export interface StickyListing extends StickyFilter {
  sortBy: (typeof STICKY_SORTS)[number]
  sortDir: 'asc' | 'desc'
  offset: number
  limit: number
  /** All accounts in the order of their names. */
  accountOrder: readonly string[]
  /** Sessions last used before this have expired, ms since epoch. */
  staleBefore: number
}

export interface StickySession {
  key: string
  kind: StickyKind
  accountId: string
  /** ms since epoch */
  usedAt: number
}

/** `total`: matching the filter; `stale`: expired ones, whatever the filter. */
export const stickySessions = async (db: Db, listing: StickyListing) => ({
  sessions: (await getRows(db, listing)).map(
    ({ keyHash, ...row }): StickySession => ({ key: stickyKey(keyHash), ...row }),
  ),
  total: await countSticky(db, listing),
  stale: await countSticky(db, { kind: null, usedBefore: listing.staleBefore, accountIds: null, key: '' }),
})

export const countSticky = async (db: Db, filter: StickyFilter): Promise<number> => {
  const isAll = filter.kind === null && filter.usedBefore === null && filter.accountIds === null && filter.key === ''
  // SQLite counts a whole table without reading its rows.
  if (isAll) return (await count(db, ALL)) - (await count(db, sql`kind = 'file'`))
  return count(db, stickyWhere(filter))
}

const ALL = sql`TRUE`

const count = async (db: Db, where: SQL): Promise<number> =>
  (
    await db.all<{ count: number }>(
      where === ALL
        ? sql`SELECT count(*) AS count FROM ${affinity}`
        : sql`SELECT count(*) AS count FROM ${affinity} WHERE ${where}`,
    )
  )[0]?.count ?? 0

/**
 * SQLite has no statistics and would always search by kind, which reads every row. `isInOrder` means that the index by
 * last use provides the order.
 */
export const stickyWhere = (filter: StickyFilter, { isInOrder = false } = {}): SQL => {
  const { kind, usedBefore, accountIds, key } = filter
  const isByKind = key !== '' || (accountIds === null && usedBefore === null && !isInOrder)
  const kindColumn = isByKind ? sql`${affinity.kind}` : notIndexed(affinity.kind)
  const accountColumn = key === '' ? sql`${affinity.accountId}` : notIndexed(affinity.accountId)
  return and(
    kind === null ? sql`${kindColumn} IN ('conversation', 'ciphertext')` : sql`${kindColumn} = ${kind}`,
    usedBefore === null ? undefined : lt(affinity.usedAt, usedBefore),
    accountIds === null
      ? undefined
      : sql`${accountColumn} IN (SELECT value FROM json_each(${JSON.stringify(accountIds)}))`,
    keyWhere(key),
  )! // the first condition is always there
}

/** The same value, but written so that no index is used. */
export const notIndexed = (column: SQLWrapper): SQL => sql`${column} || ''`

const getRows = async (db: Db, listing: StickyListing): Promise<Row[]> => {
  const { sortBy, sortDir, offset, limit } = listing
  if (sortBy === 'account' || sortBy === 'key') return rowsInGroups(db, listing)
  const direction = getDirection(sortDir)
  const order = sql`used_at ${direction}, key_hash ${direction}`
  return select(db, { where: stickyWhere(listing, { isInOrder: true }), order, limit, offset })
}

/** By account or key: group by group, so that only the rows of one account, or of keys that begin alike, are sorted. */
const rowsInGroups = async (db: Db, listing: StickyListing): Promise<Row[]> => {
  const { sortBy, sortDir, limit } = listing
  const groups = sortBy === 'account' ? accountGroups(listing) : keyGroups(listing)
  const order = sortBy === 'account' ? sql`used_at DESC, key_hash` : keyOrder(getDirection(sortDir))
  const rows: Row[] = []
  let { offset } = listing
  for (const group of sortDir === 'asc' ? groups : groups.toReversed()) {
    if (rows.length === limit) break
    const passed = offset === 0 ? null : await countSticky(db, group)
    if (passed !== null && passed <= offset) offset -= passed
    else {
      rows.push(...(await select(db, { where: stickyWhere(group), order, limit: limit - rows.length, offset })))
      offset = 0
    }
  }
  return rows
}

const accountGroups = (listing: StickyListing): StickyFilter[] =>
  listing.accountOrder
    .filter((id) => listing.accountIds?.includes(id) ?? true)
    .map((id) => ({ ...listing, accountIds: [id] }))

const keyGroups = (listing: StickyListing): StickyFilter[] =>
  listing.key === '' ? KEY_STARTS.map((key) => ({ ...listing, key })) : [listing]

const KEY_STARTS = Array.from({ length: 256 }, (_, n) => n.toString(16).padStart(2, '0'))

interface Row extends Omit<StickySession, 'key'> {
  keyHash: string
}

const select = (db: Db, { where, order, limit, offset }: { where: SQL; order: SQL; limit: number; offset: number }) =>
  db.all<Row>(sql`
    SELECT key_hash AS "keyHash", kind, account_id AS "accountId", used_at AS "usedAt"
    FROM ${affinity} WHERE ${where} ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`)

const getDirection = (sortDir: StickyListing['sortDir']): SQL => sql.raw(sortDir === 'asc' ? 'ASC' : 'DESC')
