/** Whether an invite is still valid: its author must still be allowed to grant the role. */
import type { Db } from '../../../db/commit.ts'
import type { invites } from '../../../db/schema/people.ts'
import { mayInviteAs } from './delegation.ts'
import { findPerson, type Person } from './people.ts'
import type { Role } from './roles.ts'

export type InviteRow = typeof invites.$inferSelect

/** Prefix of the token hash of a voided link, followed by the user id. */
export const VOID = 'void:'

/**
 * Why an invite is void, or null: the role or its grants changed since the link was created, or the author is disabled,
 * deleted or may no longer grant the role.
 */
export const getVoidReason = async (
  db: Db,
  invite: InviteRow,
  role: Role,
): Promise<'role_changed' | 'author_may_not' | null> => {
  if (invite.tokenHash?.startsWith(VOID)) return 'role_changed'
  const author = await getAuthor(db, invite)
  return author && mayInviteAs(author, role) ? null : 'author_may_not'
}

export const getAuthor = async (db: Db, { createdBy }: InviteRow): Promise<Person | null> =>
  createdBy === null ? null : await findPerson(db, createdBy)
