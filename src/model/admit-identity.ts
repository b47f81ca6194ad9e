/** Takes in somebody a reverse proxy announces for the first time: a waiting account, one of the same e-mail, or a new one. */
import { and, eq, ne } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { identities, users } from '../../db/schema/people.ts'
import { HOUR_MS } from '../lib/durations.ts'
import type { Random } from '../lib/random.ts'
import { type Actor, append } from './audit.ts'
import { getProvider } from './auth-providers.ts'
import { findByIdentity, findPerson, type Person } from './people.ts'
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

/** Whether anybody is taken in under this name at all: if not, a stranger costs no commit. */
export const isAdmissible = (db: Db, subject: string): boolean => {
  if (subject.length > MAX_SUBJECT) return false
  const waiting = waitingFor(db, subject)
  if (waiting) return waiting.isStanding
  return getProvider(db).unknownIdentityRoleId !== null || sameEmail(db, subject) !== null
}

/** Of somebody with no identity yet. null: strangers are refused. */
export const admitIdentity = (tx: Tx, subject: string, arrival: Arrival): Person | null => {
  const found = accountFor(tx, subject, arrival)
  if (found === null) return null
  const { userId, via } = found
  const { random, now } = arrival
  tx.insert(identities)
    .values({ id: random.id('idn'), userId, provider: 'trusted_header', subject, createdAt: now, lastSeenAt: now })
    .run()
  append(tx, selfOf(tx, userId, arrival), 'identity_linked', { target: userId, details: { subject, via } })
  notice(tx, 'people')
  return findByIdentity(tx, subject)
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

/** How an account came to its identity. */
interface Match {
  userId: string
  via: 'invite' | 'email' | 'first_seen'
}

const signedInAt = (now: number) => ({ lastLoginAt: now, lastLoginMethod: 'trusted_header' })

const selfOf = (tx: Tx, id: string, { address, now }: Arrival): Actor => {
  const person = findPerson(tx, id)
  return { id, name: person?.row.username, role: person?.role.slug, method: 'trusted_header', address, at: now }
}

/** An identity that an account waits for is that account or nobody: it must not come in as a stranger instead. */
const accountFor = (tx: Tx, subject: string, arrival: Arrival): Match | null => {
  const waiting = waitingFor(tx, subject)
  if (waiting) return waiting.isStanding ? activated(tx, waiting.userId, arrival) : null
  return sameEmail(tx, subject) ?? createdFor(tx, subject, arrival)
}

/** The account an administrator has made for just this identity. */
const activated = (tx: Tx, userId: string, { now }: Arrival): Match => {
  endWaiting(tx, userId)
  tx.update(users)
    .set({ status: 'active', ...signedInAt(now) })
    .where(eq(users.id, userId))
    .run()
  return { userId, via: 'invite' }
}

/**
 * Only by an address that an administrator wrote: anybody may claim one. A disabled account is linked, too: it must not come
 * back as a new one.
 */
const sameEmail = (db: Db, subject: string): Match | null => {
  if (!getProvider(db).linkByEmail) return null
  const found = db
    .select({ userId: users.id })
    .from(users)
    .where(and(eq(users.email, subject), eq(users.isEmailOwn, false), ne(users.status, 'invited')))
    .get()
  return found ? { userId: found.userId, via: 'email' } : null
}

const createdFor = (tx: Tx, subject: string, arrival: Arrival): Match | null => {
  const roleId = getProvider(tx).unknownIdentityRoleId
  if (roleId === null) return null
  const id = arrival.random.id('usr')
  const username = usernameFrom(tx, subject)
  tx.insert(users)
    .values({ id, username, roleId, status: 'active', createdAt: arrival.now, ...signedInAt(arrival.now) })
    .run()
  const self = selfOf(tx, id, arrival)
  append(tx, self, 'user_created', { target: id, details: { username, subject, role: self.role } })
  return { userId: id, via: 'first_seen' }
}
