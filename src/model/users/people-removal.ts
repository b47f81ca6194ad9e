/** What an administrator removes from a user: the second factor, the sessions, or the user as a whole. */
import { notice, type Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import { disownAccounts } from '../accounts/accounts.ts'
import { append } from '../audit/audit.ts'
import { storeShare } from '../shares/share-rows.ts'
import { type Caller, requireDelegation } from './delegation.ts'
import { clearTotp } from './passwords.ts'
import { getPerson, type Person } from './people.ts'
import { removeUser } from './people-admins.ts'
import { abandonKeysOf, reactivateKeysOf } from './people-keys.ts'
import { signOutEverywhere } from './recovery.ts'
import { endSessionsOf } from './sessions.ts'

/**
 * Its keys stay, disabled and without owner, and so do its accounts. Throws `user_not_found`, `self_modification_forbidden`,
 * `insufficient_delegation`, `last_admin_protected`.
 */
export const deletePerson = async (tx: Tx, id: string, caller: Caller): Promise<void> => {
  const { row, role } = await reachable(tx, id, caller, { isSelfAllowed: false })
  await abandonKeysOf(tx, id, caller.actor)
  await disownAccounts(tx, id)
  await endSessionsOf(tx, id)
  await removeUser(tx, id)
  await storeShare(tx, id, null)
  await append(tx, caller.actor, 'user_deleted', { target: id, details: { username: row.username, role: role.slug } })
  notice(tx, 'people')
}

/**
 * Removes the authenticator and the recovery codes. A two-factor requirement stays. Throws as `deletePerson`, except
 * `last_admin_protected`.
 */
export const resetTotp = async (tx: Tx, id: string, caller: Caller): Promise<void> => {
  await reachable(tx, id, caller, { isSelfAllowed: false })
  await clearTotp(tx, id)
  await endSessionsOf(tx, id)
  await append(tx, caller.actor, 'user_totp_reset', { target: id })
  notice(tx, 'people')
}

/**
 * Includes the caller's own session if the user is the caller. Returns how many. Throws `user_not_found`,
 * `insufficient_delegation`.
 */
export const revokeSessions = async (tx: Tx, id: string, caller: Caller): Promise<number> => {
  const target = await reachable(tx, id, caller, { isSelfAllowed: true })
  return signOutEverywhere(tx, target, caller.actor)
}

/** Returns how many keys are enabled again. Throws `user_not_found`, `insufficient_delegation`. */
export const restoreKeys = async (tx: Tx, id: string, caller: Caller): Promise<number> => {
  await reachable(tx, id, caller, { isSelfAllowed: true })
  return reactivateKeysOf(tx, id, caller.actor)
}

const reachable = async (
  tx: Tx,
  id: string,
  caller: Caller,
  { isSelfAllowed }: { isSelfAllowed: boolean },
): Promise<Person> => {
  const target = await getPerson(tx, id)
  if (!isSelfAllowed && id === caller.person.row.id) throw new AppError('self_modification_forbidden')
  requireDelegation(caller, target.role)
  return target
}
