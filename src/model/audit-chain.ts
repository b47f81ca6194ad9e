/** What makes the audit log provable: each row is hashed with the hash of the row before, and the end is kept apart. */
import { createHash } from 'node:crypto'
import { count } from 'drizzle-orm'
import { z } from 'zod'
import type { Db, Tx } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { parseJson } from '../lib/json.ts'
import { readFact, writeFact } from './facts.ts'

export type AuditRow = typeof auditLogs.$inferSelect

const HEAD = 'audit_head'

/** Where the chain stands. A chain alone cannot tell that its newest row is gone. */
const ChainHead = z.strictObject({
  /** The first row that is chained; those before it are of a release without hashes. */
  sinceId: z.int(),
  /** The newest row and its hash. */
  id: z.int(),
  hash: z.string(),
  /** Rows there are, chained or not. */
  count: z.int(),
})
export type ChainHead = z.output<typeof ChainHead>

/** null: nothing was chained yet, or somebody took the fact away. */
export const readHead = (db: Db): ChainHead | null => {
  const stored = readFact(db, HEAD)
  return stored === null ? null : (ChainHead.safeParse(parseJson(stored)).data ?? null)
}

type NewRow = Omit<AuditRow, 'id' | 'hash' | 'previousHash'>

/** Puts the row at the end. What it follows is the kept head, not the newest row, so a missing one leaves a gap for ever. */
export const extendChain = (tx: Tx, row: NewRow): void => {
  const head = readHead(tx)
  const linked = { ...row, previousHash: head?.hash ?? '' }
  const hash = hashOf(linked)
  const { id } = tx
    .insert(auditLogs)
    .values({ ...linked, hash })
    .returning({ id: auditLogs.id })
    .get()
  writeHead(tx, { sinceId: head?.sinceId ?? id, id, hash, count: head ? head.count + 1 : countRows(tx) })
}

const countRows = (db: Db): number => db.select({ n: count() }).from(auditLogs).get()?.n ?? 0

/** Notes that `count` of the oldest rows were taken out. */
export const shortenChain = (tx: Tx, count: number): void => {
  const head = readHead(tx)
  if (head) writeHead(tx, { ...head, count: head.count - count })
}

const writeHead = (tx: Tx, head: ChainHead): void => writeFact(tx, HEAD, JSON.stringify(head))

/** Over every member in a fixed order, the hash of the row before among them. */
export const hashOf = (row: Omit<AuditRow, 'id' | 'hash'>): string =>
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
