/** Guest access: the shared guest password, if there is one. Whether guests are allowed is a setting. */
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { type Actor, append } from '../audit/audit.ts'
import { dropFact, readFact, writeFact } from '../facts.ts'
import { endGuestSessions } from './sessions.ts'

const NAME = 'guest_password_hash'

/** null: guests need no password. */
export const guestPasswordHash = (db: Db): Promise<string | null> => readFact(db, NAME)

/** null removes the password. Every guest has to sign in again. */
export const setGuestPassword = async (tx: Tx, hash: string | null, actor: Actor): Promise<void> => {
  if (hash === null) await dropFact(tx, NAME)
  else await writeFact(tx, NAME, hash)
  await endGuestSessions(tx)
  await append(tx, actor, hash === null ? 'guest_password_removed' : 'guest_password_set')
  notice(tx, 'people')
}

export const logOutGuests = async (tx: Tx, actor: Actor): Promise<void> => {
  const count = await endGuestSessions(tx)
  await append(tx, actor, 'guest_sessions_revoked', { details: { count } })
}
