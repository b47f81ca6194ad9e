/** An administrator's changes to a user: name, e-mail, role and status. */
import { eq } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { identities, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { requireVersion } from '../edit-version.ts'
import { storeShare } from '../shares/share-rows.ts'
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
export const editPerson = async (tx: Tx, id: string, patch: PersonPatch, caller: Editor): Promise<Person> => {
  const target = await getPerson(tx, id)
  requireVersion(patch.expectedVersion, personVersion(target.row))
  const standing = await getWantedStatus(tx, target, patch)
  requireNotSelf(caller, standing)
  if (standing.status !== undefined && target.row.status === 'invited') throw new AppError('invite_pending')
  if (standing.role) requireGrantable(caller, standing.role)
  requireDelegation(caller, target.role)
  await changeStanding(tx, target, standing, caller)
  if (roleReference(patch) !== undefined) await confirmInvite(tx, target, standing, caller)
  await changeProfile(tx, target, patch, caller)
  if (patch.share !== undefined && (await storeShare(tx, id, patch.share)))
    await append(tx, caller.actor, 'user_updated', { target: id, details: { changed: ['share'], share: patch.share } })
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

const getWantedStatus = async (db: Db, { row }: Person, patch: PersonPatch): Promise<Standing> => {
  const reference = roleReference(patch)
  const role = reference === undefined ? undefined : await getRole(db, reference)
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

const changeStanding = async (
  tx: Tx,
  { row, role: before }: Person,
  { role, status }: Standing,
  editor: Editor,
): Promise<void> => {
  const { actor } = editor
  if (!role && !status) return
  const target = row.id
  if (row.status === 'invited') {
    if (role) await changeInvitedRole(tx, { row, role: before }, { role, actor })
    return
  }
  await setRoleAndStatus(tx, target, { roleId: role?.id ?? row.roleId, status: status ?? row.status })
  if (status === 'active') await requireCredential(tx, row, editor)
  if (role) await append(tx, actor, 'user_role_changed', { target, details: { from: before.slug, to: role.slug } })
  if (status) await append(tx, actor, status === 'active' ? 'user_enabled' : 'user_disabled', { target })
  if (status === 'disabled') await deactivateKeysOf(tx, target, actor)
  await endSessionsOf(tx, target)
  notice(tx, 'keys')
}

/** Naming the role of an invited user makes the caller responsible for the invite; a role change has its own audit row. */
const confirmInvite = async (tx: Tx, { row, role }: Person, standing: Standing, caller: Caller): Promise<void> => {
  if (row.status !== 'invited' || !(await adoptInvite(tx, row.id, caller)) || standing.role) return
  await append(tx, caller.actor, 'invite_confirmed', { target: row.id, details: { role: role.slug } })
}

/**
 * An invited user has no sessions and is never the last Admin. The link was created for another role, so it must be
 * sent again.
 */
const changeInvitedRole = async (
  tx: Tx,
  { row, role: before }: Person,
  { role, actor }: { role: Role; actor: Actor },
): Promise<void> => {
  const target = row.id
  await tx.update(users).set({ roleId: role.id }).where(eq(users.id, target)).run()
  const voidedLinks = await voidLinks(tx, { userId: target })
  const details = { from: before.slug, to: role.slug, ...(voidedLinks > 0 && { voidedLinks }) }
  await append(tx, actor, 'user_role_changed', { target, details })
}

/** Throws `credential_required`: a user who cannot sign in is not activated. */
const requireCredential = async (db: Db, { id, passwordHash }: UserRow, { isProxyTrusted }: Editor): Promise<void> => {
  const isAnnounced = async () =>
    isProxyTrusted &&
    (await db.select({ id: identities.id }).from(identities).where(eq(identities.userId, id)).limit(1).get()) !==
      undefined
  if (passwordHash === null && !(await hasPasskey(db, id)) && !(await isAnnounced()))
    throw new AppError('credential_required')
}

const changeProfile = async (tx: Tx, { row }: Person, patch: PersonPatch, { actor }: Caller): Promise<void> => {
  const target = row.id
  const change = changesIn(row, patch)
  const { username, email } = change
  if (username !== undefined) await requireFreeUsername(tx, username)
  if (email && email !== row.email && (await isEmailTaken(tx, email)))
    throw new AppError('email_taken', { param: 'email' })
  const names = Object.keys(change)
  if (names.length === 0) return
  await tx
    .update(users)
    .set({ ...change, ...(email !== undefined && { isEmailOwn: false }) })
    .where(eq(users.id, target))
    .run()
  if (username !== undefined)
    await append(tx, actor, 'user_renamed', { target, details: { from: row.username, to: username } })
  const others = names.filter((name) => name !== 'username')
  if (others.length > 0) await append(tx, actor, 'user_updated', { target, details: { changed: others } })
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
