/**
 * Makes the audit log verifiable: each row is hashed with the previous row's hash, and the newest hash is stored
 * separately.
 */
import { createHash } from 'node:crypto'
import { count } from 'drizzle-orm'
import { z } from 'zod'
import type { Db, Tx } from '../../../db/commit.ts'
import { auditLogs } from '../../../db/schema/system.ts'
import { parseJson } from '../../lib/json.ts'
import { readFact, writeFact } from '../facts.ts'

export type AuditRow = typeof auditLogs.$inferSelect

const HEAD = 'audit_head'

/** The end of the chain. The chain alone cannot show that its newest row is missing. */
const ChainHead = z.strictObject({
  /** The first chained row; earlier ones are from a release without hashes. */
  sinceId: z.int(),
  /** The newest row and its hash. */
  id: z.int(),
  hash: z.string(),
  /** Number of rows, chained or not. */
  count: z.int(),
})
export type ChainHead = z.output<typeof ChainHead>

/** null: nothing is chained yet, or the fact was removed. */
export const readHead = (db: Db): ChainHead | null => {
  const stored = readFact(db, HEAD)
  return stored === null ? null : (ChainHead.safeParse(parseJson(stored)).data ?? null)
}

type NewRow = Omit<AuditRow, 'id' | 'hash' | 'previousHash'>

/** Appends the row. It follows the stored head, not the newest row, so a missing row leaves a permanent gap. */
export const extendChain = (tx: Tx, row: NewRow): void => {
  const head = readHead(tx)
  const linked = { ...row, previousHash: head?.hash ?? '' }
  const hash = getHash(linked)
  const { id } = tx
    .insert(auditLogs)
    .values({ ...linked, hash })
    .returning({ id: auditLogs.id })
    .get()
  writeHead(tx, { sinceId: head?.sinceId ?? id, id, hash, count: head ? head.count + 1 : countRows(tx) })
}

const countRows = (db: Db): number => db.select({ n: count() }).from(auditLogs).get()?.n ?? 0

/** Records that the `count` oldest rows were deleted. */
export const shortenChain = (tx: Tx, count: number): void => {
  const head = readHead(tx)
  if (head) writeHead(tx, { ...head, count: head.count - count })
}

const writeHead = (tx: Tx, head: ChainHead): void => writeFact(tx, HEAD, JSON.stringify(head))

/** Hash of every member in fixed order, including the previous hash. */
export const getHash = (row: Omit<AuditRow, 'id' | 'hash'>): string =>
  createHash('sha256')
    .update(JSON.stringify(HASHED.map((name) => row[name])))
    .digest('hex')

const HASHED = [
  'previousHash',
  'at',
  'event',
  'actor',
  'actorName',
  'actorRole',
  'target',
  'method',
  'address',
  'severity',
  'details',
] as const
