/** Whether an invite still opens what it was made for: it is worth what its author may still give. */
import type { Db } from '../../db/commit.ts'
import type { invites } from '../../db/schema/people.ts'
import { mayInviteAs } from './delegation.ts'
import { findPerson, type Person } from './people.ts'
import type { Role } from './roles.ts'

export type InviteRow = typeof invites.$inferSelect

/** What the hash of a link begins with that was ended before its time; its account's id follows. */
export const VOID = 'void:'

/**
 * Why an invite opens nothing as it stands, null when it does: the role, or what it grants, was changed since the link was
 * given out, or the author is disabled, gone, or may not give that role any more.
 */
export const voidReason = (db: Db, invite: InviteRow, role: Role): 'role_changed' | 'author_may_not' | null => {
  if (invite.tokenHash?.startsWith(VOID)) return 'role_changed'
  const author = authorOf(db, invite)
  return author && mayInviteAs(author, role) ? null : 'author_may_not'
}

export const authorOf = (db: Db, { createdBy }: InviteRow): Person | null =>
  createdBy === null ? null : findPerson(db, createdBy)
