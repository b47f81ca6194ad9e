/** Verifies that no audit row was changed, removed or added, or names the first one that shows it. */
import { asc, gt, max, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Db, engineOf } from '../../../db/commit.ts'
import { auditLogs } from '../../../db/schema/system.ts'
import { type AuditRow, type ChainHead, getHash, readHead } from './audit-chain.ts'

export type AuditVerdict =
  /** `unchained`: rows of a release without hashes; `purgedThroughId`: the last row of the newest purge, or null. */
  | { isWhole: true; rows: number; unchained: number; purgedThroughId: number | null }
  /** `rowId` is null when no remaining row can be named. */
  | { isWhole: false; rowId: number | null; problem: string }

/** Details of an `audit_purged` row: rows up to `throughId` were deleted, and the next one follows `lastHash`. */
export const PurgeAnchor = z.strictObject({ throughId: z.int(), lastHash: z.string(), count: z.int() })
export type PurgeAnchor = z.output<typeof PurgeAnchor>

const SLICE = 1000

/** Verifies the whole log in slices. Run inside a read transaction if others may write at the same time. */
export const verifyAuditLog = async (db: Db): Promise<AuditVerdict> => {
  const head = await readHead(db)
  if (head === null && (await isCutShort(db))) return broken(null, 'its newest entries are missing')
  return verifyChain(getSlices(db), head)
}

/** The database's own record of the last ID, which remains when rows are deleted. */
const isCutShort = async (db: Db): Promise<boolean> => {
  const given = sql<number | null>`(${LAST_ID[engineOf(db)]})`
  const ids = await db
    .select({ newest: max(auditLogs.id), given })
    .from(auditLogs)
    .get()
  return (ids?.newest ?? 0) < (ids?.given ?? 0)
}

/** On PostgreSQL it is the second to last ID (`extendChain`). */
const LAST_ID = {
  sqlite: sql`SELECT seq FROM sqlite_sequence WHERE name = 'audit_logs'`,
  postgres: sql`SELECT last_value FROM audit_logs_id_seq WHERE is_called`,
}

async function* getSlices(db: Db): AsyncGenerator<AuditRow[]> {
  let lastId = 0
  while (true) {
    const rows = await db
      .select()
      .from(auditLogs)
      .where(gt(auditLogs.id, lastId))
      .orderBy(asc(auditLogs.id))
      .limit(SLICE)
      .all()
    const last = rows.at(-1)
    if (!last) return
    yield rows
    lastId = last.id
  }
}

interface Walk {
  first: AuditRow | null
  last: AuditRow | null
  /** The newest purge found. */
  anchor: PurgeAnchor | null
  rows: number
  unchained: number
}

/** `slices` are all rows ordered by id; `head` is the stored end of the chain. */
export const verifyChain = async (slices: Slices, head: ChainHead | null): Promise<AuditVerdict> => {
  const walk: Walk = { first: null, last: null, anchor: null, rows: 0, unchained: 0 }
  for await (const row of flatten(slices)) {
    const problem = isChained(row, head) ? getProblem(row, walk, head) : problemOfOld(row)
    if (problem !== null) return broken(row.id, problem)
    advance(walk, row, head)
  }
  return problemOfStart(walk, head) ?? problemOfEnd(walk, head) ?? wholeness(walk)
}

type Slices = Iterable<readonly AuditRow[]> | AsyncIterable<readonly AuditRow[]>

async function* flatten(slices: Slices): AsyncGenerator<AuditRow> {
  for await (const slice of slices) yield* slice
}

const isChained = ({ id }: AuditRow, head: ChainHead | null): boolean => head !== null && id >= head.sinceId

const problemOfOld = ({ hash }: AuditRow): string | null =>
  hash === '' ? null : 'it belongs to a chain whose beginning or end is missing'

const getProblem = (row: AuditRow, { last }: Walk, head: ChainHead | null): string | null => {
  const expected = row.id === head?.sinceId ? '' : last?.hash
  if (expected !== undefined && expected !== row.previousHash)
    return 'the entry before it was changed, moved or removed'
  return getHash(row) === row.hash ? null : 'its content was changed'
}

const advance = (walk: Walk, row: AuditRow, head: ChainHead | null): void => {
  walk.first ??= row
  walk.last = row
  walk.rows++
  if (!isChained(row, head)) walk.unchained++
  else if (row.event === 'audit_purged') walk.anchor = PurgeAnchor.safeParse(row.details).data ?? walk.anchor
}

/** The oldest remaining row must be the very first, or follow the newest purge. */
const problemOfStart = ({ first, anchor }: Walk, head: ChainHead | null): AuditVerdict | null => {
  if (first === null || !isChained(first, head)) return null
  const isNext = first.id === (anchor?.throughId ?? 0) + 1
  if (isNext && first.previousHash === (anchor?.lastHash ?? '')) return null
  return broken(first.id, 'entries before it were removed, and not by retention')
}

const problemOfEnd = ({ last, rows }: Walk, head: ChainHead | null): AuditVerdict | null => {
  if (head === null) return null
  if (last === null || last.id < head.id) return broken(head.id, 'it was the newest entry and is missing')
  if (last.hash !== head.hash) return broken(last.id, 'it is not the entry the log ended with')
  if (rows === head.count) return null
  return broken(null, `expected ${head.count} entries, found ${rows}`)
}

const broken = (rowId: number | null, problem: string): AuditVerdict => ({ isWhole: false, rowId, problem })

const wholeness = ({ rows, unchained, anchor }: Walk): AuditVerdict => ({
  isWhole: true,
  rows,
  unchained,
  purgedThroughId: anchor?.throughId ?? null,
})
