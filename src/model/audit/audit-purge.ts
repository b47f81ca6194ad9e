/** Deletes the oldest part of the audit log so that the rest stays verifiable. */
import { and, asc, gte, lt, lte, min, ne } from 'drizzle-orm'
import type { Tx } from '../../../db/commit.ts'
import { auditLogs } from '../../../db/schema/system.ts'
import { append } from './audit.ts'
import { shortenChain } from './audit-chain.ts'
import type { PurgeAnchor } from './audit-verify.ts'

interface Purge {
  /** ms since epoch; later rows are kept. */
  before: number
  /** Maximum number of rows. */
  limit: number
  now: number
}

/**
 * Deletes the oldest rows and adds a row with their last hash, so that the rest stays verifiable. Returns the number
 * deleted. Old anchors alone are not purged, because that would only add a new one.
 */
export const purgeAuditLog = async (tx: Tx, { before, limit, now }: Purge): Promise<number> => {
  const kept =
    (
      await tx
        .select({ id: min(auditLogs.id) })
        .from(auditLogs)
        .where(gte(auditLogs.at, before))
        .get()
    )?.id ?? null
  const isOld = kept === null ? undefined : lt(auditLogs.id, kept)
  const worth = tx
    .select({ id: auditLogs.id })
    .from(auditLogs)
    .where(and(isOld, ne(auditLogs.event, 'audit_purged')))
  if ((await worth.limit(1).get()) === undefined) return 0
  const doomed = await tx.select().from(auditLogs).where(isOld).orderBy(asc(auditLogs.id)).limit(limit).all()
  const last = doomed.at(-1)
  if (!last) return 0
  await tx.delete(auditLogs).where(lte(auditLogs.id, last.id)).run()
  await shortenChain(tx, doomed.length)
  const details: PurgeAnchor = { throughId: last.id, lastHash: last.hash, count: doomed.length }
  await append(tx, { id: 'system', method: null, address: null, at: now }, 'audit_purged', { details: { ...details } })
  return doomed.length
}
