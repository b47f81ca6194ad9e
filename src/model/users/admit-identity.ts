/** Admits users a reverse proxy announces for the first time: an invited user, one with the same e-mail, or a new one. */
import { and, eq, gt, isNull, lte, or } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { identities, invites, users } from '../../../db/schema/people.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getProvider } from './auth-providers.ts'
import { getVoidReason, type InviteRow } from './invite-validity.ts'
import { findPerson, getPerson, type Person } from './people.ts'
import { holds } from './permissions.ts'
import { isAscii, usernameFrom } from './usernames.ts'
import { endWaiting, findWaitingUser } from './waiting-users.ts'

interface Arrival {
  random: Random
  address: string | null
  /** ms since epoch */
  now: number
}

/** Longer names are rejected. */
export const MAX_SUBJECT = 512
/** The limit of users' own display names. */
const MAX_DISPLAY_NAME = 128
/** `lastSeenAt` is written at most this often. */
const SEEN_MS = HOUR_MS

/** How a user gets the identity. */
export type Match = { via: 'invite' | 'email'; userId: string } | { via: 'first_seen'; roleId: string }

/**
 * The user a new identity gets; null: rejected. An invite for this identity or its address decides alone, even when
 * expired, so that the identity cannot come in as a new user instead. `now` is ms since epoch.
 */
export const matchFor = async (db: Db, subject: string, now: number): Promise<Match | null> => {
  if (subject.length > MAX_SUBJECT) return null
  const waiting = await findWaitingUser(db, subject)
  if (waiting) return waiting.isStanding ? { via: 'invite', userId: waiting.userId } : null
  const { linkByEmail, unknownIdentityRoleId: roleId } = await getProvider(db)
  const owner = linkByEmail ? await ownerOfAddress(db, subject) : null
  if (owner?.row.status === 'invited') {
    const invite = await openInvite(db, owner, now)
    if (invite)
      return (await getVoidReason(db, invite, owner.role)) === null ? { via: 'email', userId: owner.row.id } : null
  } else if (owner) return { via: 'email', userId: owner.row.id }
  return roleId === null ? null : { via: 'first_seen', roleId }
}

/** Admits the identity as the user found by `matchFor`. */
export const admitIdentity = async (
  tx: Tx,
  subject: string,
  { match, ...arrival }: Arrival & { match: Match },
): Promise<Person> => {
  const { random, now } = arrival
  const userId =
    match.via === 'first_seen' ? await create(tx, subject, { ...arrival, roleId: match.roleId }) : match.userId
  if ((await getPerson(tx, userId)).row.status === 'invited') await activate(tx, userId, now)
  await tx
    .insert(identities)
    .values({ id: random.id('idn'), userId, provider: 'trusted_header', subject, createdAt: now, lastSeenAt: now })
    .run()
  await append(tx, await getSelf(tx, userId, arrival), 'identity_linked', {
    target: userId,
    details: { subject, via: match.via },
  })
  notice(tx, 'people')
  return getPerson(tx, userId)
}

/** Whether `lastSeenAt` of a known identity is due. */
export const isSightingDue = async (db: Db, subject: string, now: number): Promise<boolean> => {
  const seen = await db
    .select({ at: identities.lastSeenAt })
    .from(identities)
    .where(eq(identities.subject, subject))
    .get()
  return seen !== undefined && now - (seen.at ?? 0) >= SEEN_MS
}

export const recordSighting = async (tx: Tx, subject: string, now: number): Promise<void> => {
  const seen = await tx
    .update(identities)
    .set({ lastSeenAt: now })
    .where(
      and(
        eq(identities.subject, subject),
        or(isNull(identities.lastSeenAt), lte(identities.lastSeenAt, now - SEEN_MS)),
      ),
    )
    .returning({ userId: identities.userId })
    .get()
  if (seen) await tx.update(users).set(signedInAt(now)).where(eq(users.id, seen.userId)).run()
}

const signedInAt = (now: number) => ({ lastLoginAt: now, lastLoginMethod: 'trusted_header' })

const getSelf = async (tx: Tx, id: string, { address, now }: Arrival): Promise<Actor> => {
  const { row, role } = await getPerson(tx, id)
  return { id, name: row.username, role: role.slug, method: 'trusted_header', address, at: now }
}

/** For a user that an administrator created for this identity, or with its address. */
const activate = async (tx: Tx, userId: string, now: number): Promise<void> => {
  await endWaiting(tx, userId)
  await tx
    .update(users)
    .set({ status: 'active', ...signedInAt(now) })
    .where(eq(users.id, userId))
    .run()
}

/**
 * The user with this address, if an administrator entered it or its owner could have. A disabled user counts too, so
 * that its owner is not admitted as a new user.
 */
const ownerOfAddress = async (db: Db, subject: string): Promise<Person | null> => {
  const found = await db.select({ id: users.id }).from(users).where(eq(users.email, subject)).get()
  const owner = found ? await findPerson(db, found.id) : null
  return owner && (!owner.row.isEmailOwn || holds(owner.role.grants, 'users:manage')) ? owner : null
}

/** The unexpired invite of a waiting user; null: expired, or reserved for another identity. */
const openInvite = async (db: Db, { row }: Person, now: number): Promise<InviteRow | null> =>
  (await db
    .select()
    .from(invites)
    .where(and(eq(invites.userId, row.id), gt(invites.expiresAt, now)))
    .get()) ?? null

const create = async (
  tx: Tx,
  subject: string,
  { roleId, ...arrival }: Arrival & { roleId: string },
): Promise<string> => {
  const id = arrival.random.id('usr')
  const username = await usernameFrom(tx, subject)
  // A transliterated name is not how the user writes it.
  const displayName = isAscii(subject) ? null : subject.slice(0, MAX_DISPLAY_NAME)
  await tx
    .insert(users)
    .values({ id, username, displayName, roleId, status: 'active', createdAt: arrival.now, ...signedInAt(arrival.now) })
    .run()
  const self = await getSelf(tx, id, arrival)
  await append(tx, self, 'user_created', { target: id, details: { username, subject, role: self.role } })
  return id
}
