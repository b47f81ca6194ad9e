/** Looking without an account: the one password all guests share, if there is one. Whether guests may look is a setting. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'
import { type Actor, append } from './audit.ts'
import { endGuestSessions } from './sessions.ts'

const NAME = 'guest_password_hash'

/** null: guests come in without one. */
export const guestPasswordHash = (db: Db): string | null =>
  db.select({ value: facts.value }).from(facts).where(eq(facts.name, NAME)).get()?.value ?? null

/** null takes it away. Every guest has to come in anew. */
export const setGuestPassword = (tx: Tx, hash: string | null, actor: Actor): void => {
  if (hash === null) tx.delete(facts).where(eq(facts.name, NAME)).run()
  else
    tx.insert(facts)
      .values({ name: NAME, value: hash })
      .onConflictDoUpdate({ target: facts.name, set: { value: hash } })
      .run()
  endGuestSessions(tx)
  append(tx, actor, hash === null ? 'guest_password_removed' : 'guest_password_set')
  notice(tx, 'people')
}

export const logOutGuests = (tx: Tx, actor: Actor): void => {
  const count = endGuestSessions(tx)
  append(tx, actor, 'guest_sessions_revoked', { details: { count } })
}
