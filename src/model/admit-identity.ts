/** Takes in somebody a reverse proxy announces for the first time: a waiting account, one of the same e-mail, or a new one. */
import { and, eq, ne } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { identities, users } from '../../db/schema/people.ts'
import { HOUR_MS } from '../lib/durations.ts'
import type { Random } from '../lib/random.ts'
import { type Actor, append } from './audit.ts'
import { getProvider } from './auth-providers.ts'
import { getPerson, type Person } from './people.ts'
import { usernameFrom } from './usernames.ts'
import { endWaiting, waitingFor } from './waiting-accounts.ts'

interface Arrival {
  random: Random
  address: string | null
  /** ms since epoch */
  now: number
}

/** Longer ones are nobody's name. */
export const MAX_SUBJECT = 512
/** When somebody was last here is written at most this often. */
const SEEN_MS = HOUR_MS

/** How an account comes to its identity. */
export type Match = { via: 'invite' | 'email'; userId: string } | { via: 'first_seen'; roleId: string }

/**
 * Who a stranger of this name is; null: nobody. An identity that an account waits for is that account or nobody: it must not
 * come in as a new one instead.
 */
export const matchFor = (db: Db, subject: string): Match | null => {
  if (subject.length > MAX_SUBJECT) return null
  const waiting = waitingFor(db, subject)
  if (waiting) return waiting.isStanding ? { via: 'invite', userId: waiting.userId } : null
  const { linkByEmail, unknownIdentityRoleId: roleId } = getProvider(db)
  const match = linkByEmail ? sameEmail(db, subject) : null
  return match ?? (roleId === null ? null : { via: 'first_seen', roleId })
}

/** Takes the stranger in as whom `matchFor` has found. */
export const admitIdentity = (tx: Tx, subject: string, { match, ...arrival }: Arrival & { match: Match }): Person => {
  const { random, now } = arrival
  const userId = match.via === 'first_seen' ? create(tx, subject, { ...arrival, roleId: match.roleId }) : match.userId
  if (match.via === 'invite') activate(tx, userId, now)
  tx.insert(identities)
    .values({ id: random.id('idn'), userId, provider: 'trusted_header', subject, createdAt: now, lastSeenAt: now })
    .run()
  append(tx, selfOf(tx, userId, arrival), 'identity_linked', { target: userId, details: { subject, via: match.via } })
  notice(tx, 'people')
  return getPerson(tx, userId)
}

/** Whether it is time to note that somebody known was here again. */
export const isSightingDue = (db: Db, subject: string, now: number): boolean => {
  const seen = db.select({ at: identities.lastSeenAt }).from(identities).where(eq(identities.subject, subject)).get()
  return seen !== undefined && now - (seen.at ?? 0) >= SEEN_MS
}

export const noteSighting = (tx: Tx, subject: string, now: number): void => {
  const seen = tx
    .update(identities)
    .set({ lastSeenAt: now })
    .where(eq(identities.subject, subject))
    .returning({ userId: identities.userId })
    .get()
  if (seen) tx.update(users).set(signedInAt(now)).where(eq(users.id, seen.userId)).run()
}

const signedInAt = (now: number) => ({ lastLoginAt: now, lastLoginMethod: 'trusted_header' })

const selfOf = (tx: Tx, id: string, { address, now }: Arrival): Actor => {
  const { row, role } = getPerson(tx, id)
  return { id, name: row.username, role: role.slug, method: 'trusted_header', address, at: now }
}

/** The account an administrator has made for just this identity. */
const activate = (tx: Tx, userId: string, now: number): void => {
  endWaiting(tx, userId)
  tx.update(users)
    .set({ status: 'active', ...signedInAt(now) })
    .where(eq(users.id, userId))
    .run()
}

/**
 * Only by an address that an administrator wrote: anybody may claim one. A disabled account is linked, too: it must not come
 * back as a new one.
 */
const sameEmail = (db: Db, subject: string): Match | null => {
  const found = db
    .select({ userId: users.id })
    .from(users)
    .where(and(eq(users.email, subject), eq(users.isEmailOwn, false), ne(users.status, 'invited')))
    .get()
  return found ? { userId: found.userId, via: 'email' } : null
}

const create = (tx: Tx, subject: string, { roleId, ...arrival }: Arrival & { roleId: string }): string => {
  const id = arrival.random.id('usr')
  const username = usernameFrom(tx, subject)
  tx.insert(users)
    .values({ id, username, roleId, status: 'active', createdAt: arrival.now, ...signedInAt(arrival.now) })
    .run()
  const self = selfOf(tx, id, arrival)
  append(tx, self, 'user_created', { target: id, details: { username, subject, role: self.role } })
  return id
}
