/** Signed-in browsers: made at sign-in, found by what their cookie holds, ended by deleting their row (spec §3). */
import { createHash } from 'node:crypto'
import { and, desc, eq, gt, isNull, lte, ne, notInArray, type SQL } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { sessions } from '../../db/schema/people.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import type { Random } from '../lib/random.ts'

export type SessionRow = typeof sessions.$inferSelect
export type SignInMethod = SessionRow['method']

/** A confirmation holds for five minutes (spec §8). */
export const STEP_UP_MS = 5 * MINUTE_MS
/** Last seen is written at most this often. */
const TOUCH_MS = 60_000
const TOKEN_BYTES = 32
/** Of one account: a script that signs in for each of its calls would make lists and pages without end. */
const MAX_SESSIONS = 100

export interface NewSession {
  /** null: a guest. */
  userId: string | null
  method: SignInMethod
  /** False while the second factor is still to come. */
  isComplete: boolean
  /** Whether the sign-in covered every factor the person holds, which counts as a confirmation. */
  isConfirmed: boolean
  now: number
  expiresAt: number
  address: string | null
  userAgent: string | null
}

/**
 * The token stands here once, for the cookie; stored is its hash. Where the person has too many, those go that were not used
 * for longest.
 */
export const createSession = (tx: Tx, random: Random, input: NewSession): { row: SessionRow; token: string } => {
  const { isConfirmed, now, ...rest } = input
  const token = random.token(TOKEN_BYTES)
  const row = tx
    .insert(sessions)
    .values({
      ...rest,
      id: random.id('ses'),
      tokenHash: hashToken(token),
      confirmedUntil: isConfirmed ? now + STEP_UP_MS : null,
      createdAt: now,
      lastSeenAt: now,
      userAgent: input.userAgent?.slice(0, 300) ?? null,
    })
    .returning()
    .get()
  if (row.userId !== null) makeRoom(tx, row, row.userId)
  return { row, token }
}

/** Whole and half sessions each by themselves: a password alone must not push out those that showed the second factor. */
const makeRoom = (tx: Tx, { id, isComplete }: SessionRow, userId: string): void => {
  const others = and(eq(sessions.userId, userId), eq(sessions.isComplete, isComplete), ne(sessions.id, id))
  const kept = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(others)
    .orderBy(...NEWEST_USE)
    .limit(MAX_SESSIONS - 1)
  remove(tx, and(others, notInArray(sessions.id, kept)))
}

const NEWEST_USE = [desc(sessions.lastSeenAt), desc(sessions.id)]

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The living session of a cookie, or null. */
export const findSession = (db: Db, token: string, now: number): SessionRow | null =>
  db
    .select()
    .from(sessions)
    .where(and(eq(sessions.tokenHash, hashToken(token)), gt(sessions.expiresAt, now)))
    .get() ?? null

/**
 * Until when a confirmation holds, in ms since epoch; null: none does. One with more than its whole time to go was made by a
 * clock that was ahead, and may be hours old.
 */
export const confirmationEnd = (session: SessionRow | null, now: number): number | null => {
  const until = session?.confirmedUntil ?? 0
  return until > now && until <= now + STEP_UP_MS ? until : null
}

/** Whether it is time to note that the session was seen. */
export const isTouchDue = ({ lastSeenAt }: SessionRow, now: number): boolean => now - lastSeenAt >= TOUCH_MS

export const touchSession = (tx: Tx, id: string, seen: { now: number; address: string | null }): void => {
  tx.update(sessions).set({ lastSeenAt: seen.now, address: seen.address }).where(eq(sessions.id, id)).run()
}

/** A new token for the same session, after a sign-in step or a confirmation (decisions §4). */
export const rotateSession = (
  tx: Tx,
  random: Random,
  id: string,
  change: Partial<Pick<SessionRow, 'isComplete' | 'confirmedUntil' | 'expiresAt' | 'method'>>,
): string => {
  const token = random.token(TOKEN_BYTES)
  tx.update(sessions)
    .set({ ...change, tokenHash: hashToken(token) })
    .where(eq(sessions.id, id))
    .run()
  return token
}

/** Of one person, newest use first. */
export const listSessions = (db: Db, userId: string, now: number): SessionRow[] =>
  db
    .select()
    .from(sessions)
    .where(and(eq(sessions.userId, userId), gt(sessions.expiresAt, now)))
    .orderBy(...NEWEST_USE)
    .all()

/** Ends one session. False when there is none of that name, or not of that person. */
export const endSession = (tx: Tx, id: string, userId: string | null): boolean =>
  remove(tx, and(eq(sessions.id, id), userId === null ? isNull(sessions.userId) : eq(sessions.userId, userId))) > 0

/** Ends every session of the person but `except`. Returns how many. */
export const endSessionsOf = (tx: Tx, userId: string, except: string | null = null): number =>
  remove(tx, and(eq(sessions.userId, userId), except === null ? undefined : ne(sessions.id, except)))

/** Logs every guest out. */
export const endGuestSessions = (tx: Tx): number => remove(tx, isNull(sessions.userId))

export const dropExpiredSessions = (tx: Tx, now: number): number => remove(tx, lte(sessions.expiresAt, now))

/** Open event streams look at `sessions` when it is announced, so that an end reaches them, too. */
const remove = (tx: Tx, which: SQL | undefined): number => {
  const { changes } = tx.delete(sessions).where(which).run()
  if (changes > 0) notice(tx, 'sessions')
  return changes
}
