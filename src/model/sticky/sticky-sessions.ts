/** Sticky sessions: which account owns a conversation or a piece of ciphertext. Listed and filtered from `affinity`. */
import { and, lt, type SQL, sql } from 'drizzle-orm'
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
export const stickySessions = (db: Db, listing: StickyListing) => {
  const where = stickyWhere(listing, { isInOrder: true })
  const rows = db.all<{ keyHash: string; kind: StickyKind; accountId: string; usedAt: number }>(sql`
    SELECT key_hash AS "keyHash", kind, account_id AS "accountId", used_at AS "usedAt"
    FROM ${affinity} ${joinOf(listing)} WHERE ${where} ORDER BY ${orderOf(listing)}
    LIMIT ${listing.limit} OFFSET ${listing.offset}`)
  return {
    sessions: rows.map(({ keyHash, ...row }): StickySession => ({ key: stickyKey(keyHash), ...row })),
    total: countSticky(db, listing),
    stale: countSticky(db, { kind: null, usedBefore: listing.staleBefore, accountIds: null, key: '' }),
  }
}

export const countSticky = (db: Db, filter: StickyFilter): number =>
  db.all<{ count: number }>(
    sql`SELECT count(*) AS count FROM ${affinity} WHERE ${stickyWhere(filter, { isInOrder: true })}`,
  )[0]?.count ?? 0

/**
 * Rows of deleted accounts are left out: they are being removed. `isInOrder`: the index by last use serves the order. SQLite
 * has no statistics and would search by kind, which reads every row; a unary plus keeps a column from being searched by.
 */
export const stickyWhere = (filter: StickyFilter, { isInOrder = false } = {}): SQL => {
  const { kind, usedBefore, accountIds, key } = filter
  const isByKind = key !== '' || (accountIds === null && usedBefore === null && !isInOrder)
  const isByAccount = key === '' && accountIds !== null
  const kindColumn = isByKind ? sql`${affinity.kind}` : sql`+${affinity.kind}`
  const accountColumn = isByAccount ? sql`${affinity.accountId}` : sql`+${affinity.accountId}`
  return and(
    kind === null ? sql`${kindColumn} IN ('conversation', 'ciphertext')` : sql`${kindColumn} = ${kind}`,
    usedBefore === null ? undefined : lt(affinity.usedAt, usedBefore),
    accountIds === null
      ? sql`${accountColumn} IN (SELECT id FROM accounts)`
      : sql`${accountColumn} IN (SELECT value FROM json_each(${JSON.stringify(accountIds)}))`,
    keyWhere(key),
  )! // the first condition is always there
}

const orderOf = ({ sortBy, sortDir }: StickyListing): SQL => {
  const direction = sql.raw(sortDir === 'asc' ? 'ASC' : 'DESC')
  switch (sortBy) {
    case 'account':
      return sql`place.key ${direction}, used_at DESC, key_hash`
    case 'key':
      return keyOrder(direction)
    default:
      return sql`used_at ${direction}, key_hash ${direction}`
  }
}

/** Numbers the accounts by name. */
const joinOf = ({ sortBy, accountOrder }: StickyListing): SQL =>
  sortBy === 'account'
    ? sql`LEFT JOIN json_each(${JSON.stringify(accountOrder)}) AS place ON place.value = account_id`
    : sql``
