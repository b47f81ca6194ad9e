/** An administrator's changes to a user: name, e-mail, role and status. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { identities, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { requireVersion } from '../edit-version.ts'
import { type Caller, requireDelegation, requireGrantable } from './delegation.ts'
import { voidLinks } from './invites.ts'
import { getPerson, hasPasskey, type Person, personVersion, type UserRow } from './people.ts'
import { setRoleAndStatus } from './people-admins.ts'
import { type PersonPatch, roleReference } from './people-input.ts'
import { deactivateKeysOf } from './people-keys.ts'
import { getRole, type Role } from './roles.ts'
import { endSessionsOf } from './sessions.ts'
import { isEmailTaken, requireFreeUsername } from './usernames.ts'
import { adoptInvite } from './waiting-users.ts'

/**
 * Applies `patch`; unchanged values are ignored. Throws, in this order, `user_not_found`, `edit_conflict`,
 * `role_not_found`, `self_modification_forbidden`, `invite_pending`, `role_not_assignable`, `insufficient_delegation`,
 * `last_admin_protected`, `credential_required`, `validation_error`, `username_taken`, `email_taken`.
 */
export const editPerson = (tx: Tx, id: string, patch: PersonPatch, caller: Editor): Person => {
  const target = getPerson(tx, id)
  requireVersion(patch.expectedVersion, personVersion(target.row))
  const standing = getWantedStatus(tx, target, patch)
  requireNotSelf(caller, standing)
  if (standing.status !== undefined && target.row.status === 'invited') throw new AppError('invite_pending')
  if (standing.role) requireGrantable(caller, standing.role)
  requireDelegation(caller, target.role)
  changeStanding(tx, target, standing, caller)
  if (roleReference(patch) !== undefined) confirmInvite(tx, target, standing, caller)
  changeProfile(tx, target, patch, caller)
  notice(tx, 'people')
  return getPerson(tx, id)
}

interface Editor extends Caller {
  /** Whether the user can also sign in through the proxy. */
  isProxyTrusted: boolean
}

/** The changed parts of role and status. */
interface Standing {
  targetId: string
  role?: Role
  status?: 'active' | 'disabled'
}

const getWantedStatus = (db: Db, { row }: Person, patch: PersonPatch): Standing => {
  const reference = roleReference(patch)
  const role = reference === undefined ? undefined : getRole(db, reference)
  return {
    targetId: row.id,
    ...(role && role.id !== row.roleId && { role }),
    ...(patch.status !== undefined && patch.status !== row.status && { status: patch.status }),
  }
}

/** Users cannot change their own role or disable themselves (spec §5, delegation 2). */
const requireNotSelf = ({ person }: Caller, { targetId, role, status }: Standing): void => {
  if (targetId === person.row.id && (role || status)) throw new AppError('self_modification_forbidden')
}

const changeStanding = (tx: Tx, { row, role: before }: Person, { role, status }: Standing, editor: Editor): void => {
  const { actor } = editor
  if (!role && !status) return
  const target = row.id
  if (row.status === 'invited') {
    if (role) changeInvitedRole(tx, { row, role: before }, { role, actor })
    return
  }
  setRoleAndStatus(tx, target, { roleId: role?.id ?? row.roleId, status: status ?? row.status })
  if (status === 'active') requireCredential(tx, row, editor)
  if (role) append(tx, actor, 'user_role_changed', { target, details: { from: before.slug, to: role.slug } })
  if (status) append(tx, actor, status === 'active' ? 'user_enabled' : 'user_disabled', { target })
  if (status === 'disabled') deactivateKeysOf(tx, target, actor)
  endSessionsOf(tx, target)
  notice(tx, 'keys')
}

/** Naming the role of an invited user makes the caller responsible for the invite; a role change has its own audit row. */
const confirmInvite = (tx: Tx, { row, role }: Person, standing: Standing, caller: Caller): void => {
  if (row.status !== 'invited' || !adoptInvite(tx, row.id, caller) || standing.role) return
  append(tx, caller.actor, 'invite_confirmed', { target: row.id, details: { role: role.slug } })
}

/**
 * An invited user has no sessions and is never the last Admin. The link was created for another role, so it must be
 * sent again.
 */
const changeInvitedRole = (
  tx: Tx,
  { row, role: before }: Person,
  { role, actor }: { role: Role; actor: Actor },
): void => {
  const target = row.id
  tx.update(users).set({ roleId: role.id }).where(eq(users.id, target)).run()
  const voidedLinks = voidLinks(tx, { userId: target })
  const details = { from: before.slug, to: role.slug, ...(voidedLinks > 0 && { voidedLinks }) }
  append(tx, actor, 'user_role_changed', { target, details })
}

/** Throws `credential_required`: a user who cannot sign in is not activated. */
const requireCredential = (db: Db, { id, passwordHash }: UserRow, { isProxyTrusted }: Editor): void => {
  const isAnnounced = () =>
    isProxyTrusted &&
    db.select({ id: identities.id }).from(identities).where(eq(identities.userId, id)).limit(1).get() !== undefined
  if (passwordHash === null && !hasPasskey(db, id) && !isAnnounced()) throw new AppError('credential_required')
}

const changeProfile = (tx: Tx, { row }: Person, patch: PersonPatch, { actor }: Caller): void => {
  const target = row.id
  const change = changesIn(row, patch)
  const { username, email } = change
  if (username !== undefined) requireFreeUsername(tx, username)
  if (email && email !== row.email && isEmailTaken(tx, email)) throw new AppError('email_taken', { param: 'email' })
  const names = Object.keys(change)
  if (names.length === 0) return
  tx.update(users)
    .set({ ...change, ...(email !== undefined && { isEmailOwn: false }) })
    .where(eq(users.id, target))
    .run()
  if (username !== undefined)
    append(tx, actor, 'user_renamed', { target, details: { from: row.username, to: username } })
  const others = names.filter((name) => name !== 'username')
  if (others.length > 0) append(tx, actor, 'user_updated', { target, details: { changed: others } })
}

const changesIn = (row: UserRow, patch: PersonPatch): Partial<UserRow> => {
  const { username, displayName, email } = patch
  return { ...getChanges(row, { username, displayName, email }), ...(isEntered(row, patch) && { email }) }
}

/** The user's own address, unchanged in an edit of nothing else; forms that send it along do not count. */
const isEntered = ({ email, isEmailOwn }: UserRow, patch: PersonPatch): boolean =>
  patch.email !== undefined &&
  email !== null &&
  isEmailOwn &&
  Object.keys(patch).every((field) => field === 'email' || field === 'expectedVersion')
