/** Invites: one-day links that create a user once, and users that wait for an identity from the proxy. */

import { and, eq, gt, inArray, isNotNull, type SQL, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { invites, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import type { Random } from '../../lib/random.ts'
import { append } from '../audit/audit.ts'
import { type Caller, requireDelegation, requireGrantable } from './delegation.ts'
import { dropExpiredInvites } from './expired-invites.ts'
import { getAuthor, getVoidReason, type InviteRow, VOID } from './invite-validity.ts'
import { findPerson, getPerson, type Person, toPerson } from './people.ts'
import { type NewPerson, roleReference } from './people-input.ts'
import { getRole } from './roles.ts'
import { hashToken } from './sessions.ts'
import { isEmailTaken, isTaken, requireFreeUsername } from './usernames.ts'
import { toWaitingInvite } from './waiting-users.ts'

/** The invited user in its current state. */
interface Invitation {
  invite: InviteRow
  person: Person
}

/** A link is valid for a day (spec §8). */
const INVITE_MS = DAY_MS
const TOKEN_BYTES = 32

/** Returned once; only the token's hash is stored. */
export interface Link {
  token: string
  /** ms since epoch */
  expiresAt: number
}

interface Doing {
  caller: Caller
  random: Random
  /** Whether the reverse proxy signs in users. */
  isProxyTrusted: boolean
}

/**
 * Adds a user with status `invited`, until the link is used or the identity arrives; the latter has no link. Throws
 * `sso_not_available`, `role_not_found`, `role_not_assignable`, `insufficient_delegation`, `username_taken`,
 * `email_taken`, `identity_taken`.
 */
export const invitePerson = async (
  tx: Tx,
  input: NewPerson,
  doing: Doing,
): Promise<{ person: Person; link: Link | null }> => {
  const { caller, random } = doing
  const { at, id: createdBy } = caller.actor
  const { username, displayName = null, email = null, usernameLocked, ssoOnly } = input
  if (ssoOnly && !doing.isProxyTrusted) throw new AppError('sso_not_available')
  const role = await getRole(tx, roleReference(input) ?? '')
  requireGrantable(caller, role)
  await dropExpiredInvites(tx, at)
  if (await isTaken(tx, username)) throw new AppError('username_taken', { param: 'username' })
  if (email && (await isEmailTaken(tx, email))) throw new AppError('email_taken', { param: 'email' })
  const expected = ssoOnly ? await toWaitingInvite(tx, input.expectedIdentity?.subject ?? '') : null
  const id = random.id('usr')
  await tx
    .insert(users)
    .values({ id, username, displayName, email, roleId: role.id, status: 'invited', createdAt: at, createdBy })
    .run()
  const { link, columns } = expected === null ? newLink(random, at) : { link: null, columns: expected }
  await tx
    .insert(invites)
    .values({ ...columns, userId: id, usernameLocked, createdBy, createdAt: at })
    .run()
  await append(tx, caller.actor, 'user_invited', {
    target: id,
    details: { username, role: role.slug, ssoOnly, ...(expected && { subject: expected.expectedSubject }) },
  })
  notice(tx, 'people')
  return { person: await getPerson(tx, id), link }
}

/**
 * A new link for another day; the old one stops working. Throws `user_not_found`, `insufficient_delegation`,
 * `invite_not_pending`, `sso_only_invite`.
 */
export const resendInvite = async (
  tx: Tx,
  userId: string,
  { caller, random }: Omit<Doing, 'isProxyTrusted'>,
): Promise<Link> => {
  const invite = await pendingInvite(tx, userId, caller)
  if (invite.tokenHash === null) throw new AppError('sso_only_invite')
  requireGrantable(caller, (await getPerson(tx, userId)).role) // a user with the link can get this role
  const { actor } = caller
  const { link, columns } = newLink(random, actor.at)
  await tx
    .update(invites)
    .set({ ...columns, createdBy: actor.id })
    .where(eq(invites.userId, userId))
    .run()
  await append(tx, actor, 'invite_resent', { target: userId })
  notice(tx, 'people')
  return link
}

/** Deletes the invited user with the invite. Throws `user_not_found`, `insufficient_delegation`, `invite_not_pending`. */
export const revokeInvite = async (tx: Tx, userId: string, caller: Caller): Promise<void> => {
  await pendingInvite(tx, userId, caller)
  const { username } = (await getPerson(tx, userId)).row
  await tx.delete(users).where(eq(users.id, userId)).run()
  await append(tx, caller.actor, 'invite_revoked', { target: userId, details: { username } })
  notice(tx, 'people')
}

const pendingInvite = async (tx: Tx, userId: string, caller: Caller): Promise<InviteRow> => {
  const { row, role } = await getPerson(tx, userId)
  requireDelegation(caller, role)
  const invite = row.status === 'invited' ? await findInvite(tx, userId) : null
  if (!invite) throw new AppError('invite_not_pending')
  return invite
}

const findInvite = async (db: Db, userId: string): Promise<InviteRow | null> =>
  (await db.select().from(invites).where(eq(invites.userId, userId)).get()) ?? null

/** Every open invite, oldest first. */
export const listInvites = async (db: Db): Promise<Invitation[]> =>
  mapInOrder(
    await db
      .select()
      .from(invites)
      .innerJoin(users, eq(users.id, invites.userId))
      .orderBy(invites.createdAt, invites.userId)
      .all(),
    async ({ invites: invite, users: row }) => ({ invite, person: await toPerson(db, row) }),
  )

export interface OpenInvite {
  invite: InviteRow & { expiresAt: number }
  person: Person
  inviter: Person
}

/**
 * The invite of a link. Does not use it up, because link previews call this too. Throws `invite_not_found` for every
 * invalid link.
 */
export const lookUpInvite = async (db: Db, token: string, now: number): Promise<OpenInvite> => {
  const invite = await db.select().from(invites).where(isOpen(token, now)).get()
  const person = invite && (await findPerson(db, invite.userId))
  if (!invite || invite.expiresAt === null || person?.row.status !== 'invited') throw new AppError('invite_not_found')
  return {
    invite: { ...invite, expiresAt: invite.expiresAt },
    person,
    inviter: await standingInviter(db, invite, person),
  }
}

/** Throws `invite_not_found` for a void invite. */
const standingInviter = async (db: Db, invite: InviteRow, { role }: Person): Promise<Person> => {
  const inviter = await getAuthor(db, invite)
  if (!inviter || (await getVoidReason(db, invite, role)) !== null) throw new AppError('invite_not_found')
  return inviter
}

/** Voids the links of invited users whose role changed. The invites stay and can be sent again. Returns how many. */
export const voidLinks = async (tx: Tx, which: { userId: string } | { roleId: string }): Promise<number> => {
  const meant =
    'userId' in which
      ? eq(invites.userId, which.userId)
      : inArray(invites.userId, tx.select({ id: users.id }).from(users).where(eq(users.roleId, which.roleId)))
  return (
    await tx
      .update(invites)
      .set({ tokenHash: sql`${VOID} || ${invites.userId}` })
      .where(and(isNotNull(invites.tokenHash), meant))
      .run()
  ).changes
}

/** Throws `username_locked`, `username_taken`, `validation_error` for the reserved name. */
export const requireAcceptable = async (db: Db, { invite, person }: Invitation, username: string): Promise<void> => {
  if (username === person.row.username) return
  if (invite.usernameLocked) throw new AppError('username_locked', { param: 'username' })
  await requireFreeUsername(db, username)
}

interface Acceptance {
  token: string
  username: string
  /** undefined: unchanged. */
  displayName?: string | null
  passwordHash: string
  /** ms since epoch */
  now: number
}

/**
 * Uses up the link and activates the user. Of several parallel calls one succeeds. Throws as `lookUpInvite` and
 * `requireAcceptable` do.
 */
export const acceptInvite = async (tx: Tx, { token, now, ...profile }: Acceptance): Promise<void> => {
  const invite = await tx.delete(invites).where(isOpen(token, now)).returning().get()
  if (!invite) throw new AppError('invite_not_found')
  const person = await getPerson(tx, invite.userId)
  await standingInviter(tx, invite, person)
  await requireAcceptable(tx, { invite, person }, profile.username)
  await tx
    .update(users)
    .set({ ...profile, status: 'active' })
    .where(and(eq(users.id, invite.userId), eq(users.status, 'invited')))
    .run()
  notice(tx, 'people')
}

const isOpen = (token: string, now: number): SQL | undefined =>
  and(eq(invites.tokenHash, hashToken(token)), gt(invites.expiresAt, now))

const newLink = (random: Random, now: number) => {
  const link: Link = { token: random.token(TOKEN_BYTES), expiresAt: now + INVITE_MS }
  return { link, columns: { tokenHash: hashToken(link.token), expiresAt: link.expiresAt } }
}
