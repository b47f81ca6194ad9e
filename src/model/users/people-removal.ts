/** What an administrator removes from a user: the second factor, the sessions, or the user as a whole. */
import { notice, type Tx } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import { disownAccounts } from '../accounts/accounts.ts'
import { append } from '../audit/audit.ts'
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
export const deletePerson = (tx: Tx, id: string, caller: Caller): void => {
  const { row, role } = reachable(tx, id, caller, { isSelfAllowed: false })
  abandonKeysOf(tx, id, caller.actor)
  disownAccounts(tx, id)
  endSessionsOf(tx, id)
  removeUser(tx, id)
  append(tx, caller.actor, 'user_deleted', { target: id, details: { username: row.username, role: role.slug } })
  notice(tx, 'people')
}

/**
 * Removes the authenticator and the recovery codes. A two-factor requirement stays. Throws as `deletePerson`, except
 * `last_admin_protected`.
 */
export const resetTotp = (tx: Tx, id: string, caller: Caller): void => {
  reachable(tx, id, caller, { isSelfAllowed: false })
  clearTotp(tx, id)
  endSessionsOf(tx, id)
  append(tx, caller.actor, 'user_totp_reset', { target: id })
  notice(tx, 'people')
}

/**
 * Includes the caller's own session if the user is the caller. Returns how many. Throws `user_not_found`,
 * `insufficient_delegation`.
 */
export const revokeSessions = (tx: Tx, id: string, caller: Caller): number => {
  const target = reachable(tx, id, caller, { isSelfAllowed: true })
  return signOutEverywhere(tx, target, caller.actor)
}

/** Returns how many keys are enabled again. Throws `user_not_found`, `insufficient_delegation`. */
export const restoreKeys = (tx: Tx, id: string, caller: Caller): number => {
  reachable(tx, id, caller, { isSelfAllowed: true })
  return reactivateKeysOf(tx, id, caller.actor)
}

const reachable = (tx: Tx, id: string, caller: Caller, { isSelfAllowed }: { isSelfAllowed: boolean }): Person => {
  const target = getPerson(tx, id)
  if (!isSelfAllowed && id === caller.person.row.id) throw new AppError('self_modification_forbidden')
  requireDelegation(caller, target.role)
  return target
}
