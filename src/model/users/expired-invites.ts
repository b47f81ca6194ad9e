/** Expired invites, and the users created for them. */
import { and, eq, inArray, lte } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { invites, users } from '../../../db/schema/people.ts'
import { type Actor, append } from '../audit/audit.ts'

export const hasExpiredInvites = async (db: Db, now: number): Promise<boolean> =>
  (await db.select({ userId: invites.userId }).from(invites).where(lte(invites.expiresAt, now)).limit(1).get()) !==
  undefined

/** Deletes expired invites with their users. Returns how many. */
export const dropExpiredInvites = async (tx: Tx, now: number): Promise<number> => {
  const expired = tx.select({ id: invites.userId }).from(invites).where(lte(invites.expiresAt, now))
  const gone = await tx
    .delete(users)
    .where(and(eq(users.status, 'invited'), inArray(users.id, expired)))
    .returning({ id: users.id, username: users.username })
    .all()
  const actor: Actor = { id: 'system', method: null, address: null, at: now }
  for (const { id, username } of gone)
    await append(tx, actor, 'invite_revoked', { target: id, details: { username, reason: 'expired' } })
  if (gone.length > 0) notice(tx, 'people')
  return gone.length
}
