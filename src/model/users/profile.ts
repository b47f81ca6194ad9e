/** A user's own profile: display name and e-mail. */
import { eq } from 'drizzle-orm'
import { notice, type Tx } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { requireVersion } from '../edit-version.ts'
import { getPerson, personVersion } from './people.ts'
import { isEmailTaken } from './usernames.ts'

interface Profile {
  displayName?: string | null
  email?: string | null
  expectedVersion?: string
}

/** Missing and unchanged members are ignored. Throws `user_not_found`, `edit_conflict`, `email_taken`. */
export const updateProfile = async (
  tx: Tx,
  id: string,
  { expectedVersion, ...profile }: Profile,
  actor: Actor,
): Promise<void> => {
  const { row } = await getPerson(tx, id)
  requireVersion(expectedVersion, personVersion(row))
  const change = getChanges(row, profile)
  const changed = Object.keys(change)
  if (changed.length === 0) return
  if (change.email && (await isEmailTaken(tx, change.email))) throw new AppError('email_taken', { param: 'email' })
  const isEmailOwn = change.email === undefined ? {} : { isEmailOwn: true }
  await tx
    .update(users)
    .set({ ...change, ...isEmailOwn })
    .where(eq(users.id, id))
    .run()
  await append(tx, actor, 'profile_updated', { target: id, details: { changed } })
  notice(tx, 'people')
}
