/** Admits users a reverse proxy announces for the first time: an invited user, one with the same e-mail, or a new one. */
import { and, eq, gt } from 'drizzle-orm'
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
export const matchFor = (db: Db, subject: string, now: number): Match | null => {
  if (subject.length > MAX_SUBJECT) return null
  const waiting = findWaitingUser(db, subject)
  if (waiting) return waiting.isStanding ? { via: 'invite', userId: waiting.userId } : null
  const { linkByEmail, unknownIdentityRoleId: roleId } = getProvider(db)
  const owner = linkByEmail ? ownerOfAddress(db, subject) : null
  if (owner?.row.status === 'invited') {
    const invite = openInvite(db, owner, now)
    if (invite) return getVoidReason(db, invite, owner.role) === null ? { via: 'email', userId: owner.row.id } : null
  } else if (owner) return { via: 'email', userId: owner.row.id }
  return roleId === null ? null : { via: 'first_seen', roleId }
}

/** Admits the identity as the user found by `matchFor`. */
export const admitIdentity = (tx: Tx, subject: string, { match, ...arrival }: Arrival & { match: Match }): Person => {
  const { random, now } = arrival
  const userId = match.via === 'first_seen' ? create(tx, subject, { ...arrival, roleId: match.roleId }) : match.userId
  if (getPerson(tx, userId).row.status === 'invited') activate(tx, userId, now)
  tx.insert(identities)
    .values({ id: random.id('idn'), userId, provider: 'trusted_header', subject, createdAt: now, lastSeenAt: now })
    .run()
  append(tx, getSelf(tx, userId, arrival), 'identity_linked', { target: userId, details: { subject, via: match.via } })
  notice(tx, 'people')
  return getPerson(tx, userId)
}

/** Whether `lastSeenAt` of a known identity is due. */
export const isSightingDue = (db: Db, subject: string, now: number): boolean => {
  const seen = db.select({ at: identities.lastSeenAt }).from(identities).where(eq(identities.subject, subject)).get()
  return seen !== undefined && now - (seen.at ?? 0) >= SEEN_MS
}

export const recordSighting = (tx: Tx, subject: string, now: number): void => {
  const seen = tx
    .update(identities)
    .set({ lastSeenAt: now })
    .where(eq(identities.subject, subject))
    .returning({ userId: identities.userId })
    .get()
  if (seen) tx.update(users).set(signedInAt(now)).where(eq(users.id, seen.userId)).run()
}

const signedInAt = (now: number) => ({ lastLoginAt: now, lastLoginMethod: 'trusted_header' })

const getSelf = (tx: Tx, id: string, { address, now }: Arrival): Actor => {
  const { row, role } = getPerson(tx, id)
  return { id, name: row.username, role: role.slug, method: 'trusted_header', address, at: now }
}

/** For a user that an administrator created for this identity, or with its address. */
const activate = (tx: Tx, userId: string, now: number): void => {
  endWaiting(tx, userId)
  tx.update(users)
    .set({ status: 'active', ...signedInAt(now) })
    .where(eq(users.id, userId))
    .run()
}

/**
 * The user with this address, if an administrator entered it or its owner could have. A disabled user counts too, so
 * that its owner is not admitted as a new user.
 */
const ownerOfAddress = (db: Db, subject: string): Person | null => {
  const found = db.select({ id: users.id }).from(users).where(eq(users.email, subject)).get()
  const owner = found ? findPerson(db, found.id) : null
  return owner && (!owner.row.isEmailOwn || holds(owner.role.grants, 'users:manage')) ? owner : null
}

/** The unexpired invite of a waiting user; null: expired, or reserved for another identity. */
const openInvite = (db: Db, { row }: Person, now: number): InviteRow | null =>
  db
    .select()
    .from(invites)
    .where(and(eq(invites.userId, row.id), gt(invites.expiresAt, now)))
    .get() ?? null

const create = (tx: Tx, subject: string, { roleId, ...arrival }: Arrival & { roleId: string }): string => {
  const id = arrival.random.id('usr')
  const username = usernameFrom(tx, subject)
  // A transliterated name is not how the user writes it.
  const displayName = isAscii(subject) ? null : subject.slice(0, MAX_DISPLAY_NAME)
  tx.insert(users)
    .values({ id, username, displayName, roleId, status: 'active', createdAt: arrival.now, ...signedInAt(arrival.now) })
    .run()
  const self = getSelf(tx, id, arrival)
  append(tx, self, 'user_created', { target: id, details: { username, subject, role: self.role } })
  return id
}
