/** Deletes sticky sessions and releases accounts, in the database and in memory. Many rows go in slices, so that no stream waits. */

import { sql } from 'drizzle-orm'
import { commit, type Db, onCommitted, type Tx } from '../../../db/commit.ts'
import { affinity } from '../../../db/schema/accounts.ts'
import type { Clock } from '../../lib/clock.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { getAccount } from '../accounts/accounts.ts'
import { type Actor, append } from '../audit/audit.ts'
import { isStickyKey, keyWhere, STICKY_KINDS, type StickyKind } from './session-key.ts'
import { notIndexed, type StickyFilter, stickyWhere } from './sticky-sessions.ts'

export interface DeleteSessionsDeps {
  db: Db
  clock: Clock
  /** The owners in memory, which running requests use. */
  affinity: {
    forget(kind: StickyKind, keyHash: string): void
    detach(keyHash: string): void
    forgetFirstRequests(accountId: string): void
  }
  /** Its pending rows would bring back what is deleted. */
  ledger: { flush(): Promise<unknown> }
}

/** Rows per transaction, some milliseconds, and the pause after it. */
const SLICE = 100
const PAUSE_MS = 10

/** A session as named by clients. */
export interface NamedSession {
  kind: string
  key: string
}

export interface Deletion {
  deleted: NamedSession[]
  failed: NamedSession[]
}

/** One commit, so at most some hundred. */
export const deleteNamed = async (
  deps: DeleteSessionsDeps,
  named: readonly NamedSession[],
  actor: Actor,
): Promise<Deletion> => {
  const results = await afterLedger(deps, async (tx) => {
    const each = await mapInOrder(named, async (session) => ({ session, rows: await deleteOne(tx, session) }))
    const count = each.filter(({ rows }) => rows.length > 0).length
    if (count > 0) await append(tx, actor, 'sticky_sessions_deleted', { details: { count } })
    onCommitted(tx, () => {
      for (const { rows } of each) for (const { kind, keyHash } of rows) deps.affinity.forget(kind, keyHash)
    })
    return each
  })
  const sessionsWhere = (isDeleted: boolean) =>
    results.filter(({ rows }) => rows.length > 0 === isDeleted).map(({ session }) => session)
  return { deleted: sessionsWhere(true), failed: sessionsWhere(false) }
}

/** Queues the flush and the deletion together, so that no other commit runs in between. */
const afterLedger = async <T>({ db, ledger }: DeleteSessionsDeps, work: (tx: Tx) => Promise<T>): Promise<T> => {
  const [, done] = await Promise.all([ledger.flush(), commit<T>(db, work)])
  return done
}

interface Row {
  kind: StickyKind
  keyHash: string
}

const deleteOne = async (tx: Tx, { kind, key }: NamedSession): Promise<Row[]> => {
  if (!isKind(kind) || !isStickyKey(key)) return []
  return tx.all<Row>(sql`
    DELETE FROM ${affinity} WHERE kind = ${kind} AND ${keyWhere(key)} RETURNING kind, key_hash AS "keyHash"`)
}

const isKind = (text: string): text is StickyKind => (STICKY_KINDS as readonly string[]).includes(text)

/**
 * Deletes what matches `filter` now; sessions that are used in the meantime stay. The audit row is in the first commit and
 * tells `count`, for which a thread has to read the table. Returns how many were deleted.
 */
export const deleteMatching = async (
  deps: DeleteSessionsDeps,
  filter: StickyFilter,
  { actor, count }: { actor: Actor; count: number },
): Promise<number> => {
  if (count === 0) return 0
  const where = sql`${stickyWhere(filter)} AND used_at <= ${actor.at}`
  return inSlices(deps, {
    begin: (tx) => append(tx, actor, 'sticky_sessions_deleted', { details: { count, ...auditedFilter(filter) } }),
    slice: (tx) =>
      tx.all<Row>(sql`
        DELETE FROM ${affinity} WHERE (kind, key_hash) IN (SELECT kind, key_hash FROM ${affinity} WHERE ${where} LIMIT ${SLICE})
        RETURNING kind, key_hash AS "keyHash"`),
    inMemory: ({ kind, keyHash }) => deps.affinity.forget(kind, keyHash),
  })
}

const auditedFilter = ({ kind, usedBefore, accountIds, key }: StickyFilter) => ({
  ...(kind && { kind }),
  ...(usedBefore !== null && { usedBefore }),
  ...(accountIds && { accountIds: accountIds.slice(0, MAX_AUDITED) }),
  ...(key && { key }),
})

const MAX_AUDITED = 20

/**
 * Lets the conversations of an account go to any account. Its ciphertext stays known as its own, so that it is cut from
 * requests that go elsewhere, but no longer leads a conversation back; only a compacted history still needs the account.
 * `count`: of its conversations, for the audit row. Returns how many were released. Throws `account_not_found`.
 */
export const releaseAccount = async (
  deps: DeleteSessionsDeps,
  accountId: string,
  { actor, count }: { actor: Actor; count: number },
): Promise<number> => {
  const { affinity: owners } = deps
  const own = sql`account_id = ${accountId} AND used_at <= ${actor.at}`
  const conversations = sql`${notIndexed(affinity.kind)} = 'conversation' AND ${own}`
  const released = await inSlices(deps, {
    begin: async (tx) => {
      await getAccount(tx, accountId)
      await append(tx, actor, 'account_released', { target: accountId, details: { conversations: count } })
    },
    slice: (tx) =>
      tx.all<Row>(sql`
        DELETE FROM ${affinity} WHERE (kind, key_hash) IN (SELECT kind, key_hash FROM ${affinity} WHERE ${conversations} LIMIT ${SLICE})
        RETURNING kind, key_hash AS "keyHash"`),
    inMemory: ({ kind, keyHash }) => owners.forget(kind, keyHash),
  })
  owners.forgetFirstRequests(accountId)
  await inSlices(deps, {
    slice: (tx) =>
      tx.all<Row>(sql`
        UPDATE ${affinity} SET mixed = 1 WHERE (kind, key_hash) IN (SELECT kind, key_hash FROM ${affinity}
          WHERE ${notIndexed(affinity.kind)} = 'ciphertext' AND mixed = 0 AND ${own} LIMIT ${SLICE})
        RETURNING kind, key_hash AS "keyHash"`),
    inMemory: ({ keyHash }) => owners.detach(keyHash),
  })
  return released
}

interface Work {
  /** Runs in the first commit. */
  begin?: (tx: Tx) => Promise<unknown>
  /** Changes at most `SLICE` rows and returns them. */
  slice: (tx: Tx) => Promise<Row[]>
  /** Does the same in memory. */
  inMemory: (row: Row) => void
}

const inSlices = async (deps: DeleteSessionsDeps, { begin, slice, inMemory }: Work): Promise<number> => {
  let changed = 0
  for (let isFirst = true; ; isFirst = false) {
    const count = await afterLedger(deps, async (tx) => {
      if (isFirst) await begin?.(tx)
      const rows = await slice(tx)
      onCommitted(tx, () => {
        for (const row of rows) inMemory(row)
      })
      return rows.length
    })
    changed += count
    if (count < SLICE) return changed
    await deps.clock.sleep(PAUSE_MS)
  }
}
