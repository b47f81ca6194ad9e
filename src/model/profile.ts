/** What people say about themselves: display name and e-mail. */
import { eq } from 'drizzle-orm'
import { notice, type Tx } from '../../db/commit.ts'
import { users } from '../../db/schema/people.ts'
import { AppError } from '../errors.ts'
import { type Actor, append } from './audit.ts'
import { changesOf } from './changes-of.ts'
import { getPerson } from './people.ts'
import { isEmailTaken } from './usernames.ts'

interface Profile {
  displayName?: string | null
  email?: string | null
}

/** What is left out, or is so already, stays. Throws `user_not_found`, `email_taken`. */
export const updateProfile = (tx: Tx, id: string, profile: Profile, actor: Actor): void => {
  const change = changesOf(getPerson(tx, id).row, profile)
  const changed = Object.keys(change)
  if (changed.length === 0) return
  if (change.email && isEmailTaken(tx, change.email)) throw new AppError('email_taken', { param: 'email' })
  const isEmailOwn = change.email === undefined ? {} : { isEmailOwn: true }
  tx.update(users)
    .set({ ...change, ...isEmailOwn })
    .where(eq(users.id, id))
    .run()
  append(tx, actor, 'profile_updated', { target: id, details: { changed } })
  notice(tx, 'people')
}
