/**
 * Makes the audit log verifiable: each row is hashed with the previous row's hash, and the newest hash is stored
 * separately.
 */
import { createHash } from 'node:crypto'
import { count, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Db, engineOf, type Tx } from '../../../db/commit.ts'
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
export const readHead = async (db: Db): Promise<ChainHead | null> => {
  const stored = await readFact(db, HEAD)
  return stored === null ? null : (ChainHead.safeParse(parseJson(stored)).data ?? null)
}

type NewRow = Omit<AuditRow, 'id' | 'hash' | 'previousHash'>

/** Appends the row. It follows the stored head, not the newest row, so a missing row leaves a permanent gap. */
export const extendChain = async (tx: Tx, row: NewRow): Promise<void> => {
  const head = await readHead(tx)
  const linked = { ...row, previousHash: head?.hash ?? '' }
  const hash = getHash(linked)
  const { id } = await tx
    .insert(auditLogs)
    .values({ ...linked, ...idOnPostgres(tx, head), hash })
    .returning({ id: auditLogs.id })
    .get()
  await writeHead(tx, { sinceId: head?.sinceId ?? id, id, hash, count: head ? head.count + 1 : await countRows(tx) })
}

/**
 * On PostgreSQL, rolled-back rows use up IDs, which would look like deleted rows. Only one commit runs at a time across
 * all nodes, so the next ID is known. The sequence is set to the last committed ID for `audit-verify.ts`.
 */
const idOnPostgres = (tx: Tx, head: ChainHead | null) => {
  if (engineOf(tx) !== 'postgres') return {}
  return { id: head ? sql<number>`setval('audit_logs_id_seq', ${head.id}) + 1` : sql<number>`${NEXT_ID}` }
}

const NEXT_ID = sql`(
  SELECT GREATEST(CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT MAX(id) FROM audit_logs)) + 1 FROM audit_logs_id_seq)`

const countRows = async (db: Db): Promise<number> => (await db.select({ n: count() }).from(auditLogs).get())?.n ?? 0

/** Records that the `count` oldest rows were deleted. */
export const shortenChain = async (tx: Tx, count: number): Promise<void> => {
  const head = await readHead(tx)
  if (head) await writeHead(tx, { ...head, count: head.count - count })
}

const writeHead = (tx: Tx, head: ChainHead): Promise<void> => writeFact(tx, HEAD, JSON.stringify(head))

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
