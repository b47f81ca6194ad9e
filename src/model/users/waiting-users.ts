/** Users without link or password, activated when the reverse proxy first announces their identity. */
import { eq } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { identities, invites } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { type Caller, mayInviteAs } from './delegation.ts'
import { getVoidReason } from './invite-validity.ts'
import { findPerson, getPerson } from './people.ts'

/** The user waiting for this identity, if any; `isStanding`: the invite is valid. */
export const findWaitingUser = async (
  db: Db,
  subject: string,
): Promise<{ userId: string; isStanding: boolean } | null> => {
  const invite = await db.select().from(invites).where(eq(invites.expectedSubject, subject)).get()
  const person = invite && (await findPerson(db, invite.userId))
  if (!person) return null
  return { userId: person.row.id, isStanding: (await getVoidReason(db, invite, person.role)) === null }
}

/** Invite columns for waiting on an identity instead of a link. One user per identity. Throws `identity_taken`. */
export const toWaitingInvite = async (db: Db, subject: string) => {
  const isLinked = await db.select({ id: identities.id }).from(identities).where(eq(identities.subject, subject)).get()
  if (isLinked || (await findWaitingUser(db, subject)))
    throw new AppError('identity_taken', { param: 'expectedIdentity' })
  return { expectedProvider: 'trusted_header' as const, expectedSubject: subject }
}

/** Deletes the invite after its identity arrived. */
export const endWaiting = async (tx: Tx, userId: string): Promise<void> => {
  await tx.delete(invites).where(eq(invites.userId, userId)).run()
}

/**
 * Makes the caller the author of a waiting user's void invite, if they may grant its role; link invites are resent
 * instead. Returns whether anything changed.
 */
export const adoptInvite = async (tx: Tx, userId: string, { person, actor }: Caller): Promise<boolean> => {
  const invite = await tx.select().from(invites).where(eq(invites.userId, userId)).get()
  const { role } = await getPerson(tx, userId)
  if (invite?.tokenHash !== null || (await getVoidReason(tx, invite, role)) === null || !mayInviteAs(person, role))
    return false
  await tx.update(invites).set({ createdBy: actor.id }).where(eq(invites.userId, userId)).run()
  return true
}
