/** Sessions of signed-in browsers: created at sign-in, found by the cookie's token, ended by deleting their row (spec §3). */
import { createHash } from 'node:crypto'
import { and, desc, eq, gt, isNull, lte, ne, notInArray, type SQL } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { sessions } from '../../../db/schema/people.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'

export type SessionRow = typeof sessions.$inferSelect
export type SignInMethod = SessionRow['method']

/** A confirmation is valid for five minutes (spec §8). */
export const STEP_UP_MS = 5 * MINUTE_MS
/** `lastSeenAt` is written at most this often. */
const TOUCH_MS = 60_000
const TOKEN_BYTES = 32
/** Per user, because a script may sign in for every call. */
const MAX_SESSIONS = 100

export interface NewSession {
  /** null: a guest. */
  userId: string | null
  method: SignInMethod
  /** False while the second factor is missing. */
  isComplete: boolean
  /** Whether the sign-in used all of the user's factors, which counts as a confirmation. */
  isConfirmed: boolean
  now: number
  expiresAt: number
  address: string | null
  userAgent: string | null
}

/**
 * Returns the token for the cookie; only its hash is stored. Beyond the maximum, the least recently used sessions are
 * deleted.
 */
export const createSession = async (
  tx: Tx,
  random: Random,
  input: NewSession,
): Promise<{ row: SessionRow; token: string }> => {
  const { isConfirmed, now, ...rest } = input
  const token = random.token(TOKEN_BYTES)
  const row = await tx
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
  if (row.userId !== null) await deleteOldest(tx, row, row.userId)
  return { row, token }
}

/** Complete and half sessions separately: a password alone must not push out sessions with a second factor. */
const deleteOldest = async (tx: Tx, { id, isComplete }: SessionRow, userId: string): Promise<void> => {
  const others = and(eq(sessions.userId, userId), eq(sessions.isComplete, isComplete), ne(sessions.id, id))
  const kept = tx
    .select({ id: sessions.id })
    .from(sessions)
    .where(others)
    .orderBy(...NEWEST_USE)
    .limit(MAX_SESSIONS - 1)
  await remove(tx, and(others, notInArray(sessions.id, kept)))
}

const NEWEST_USE = [desc(sessions.lastSeenAt), desc(sessions.id)]

export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The session of a cookie token if not expired, or null. */
export const findSession = async (db: Db, token: string, now: number): Promise<SessionRow | null> =>
  (await db
    .select()
    .from(sessions)
    .where(and(eq(sessions.tokenHash, hashToken(token)), gt(sessions.expiresAt, now)))
    .get()) ?? null

/**
 * Until when a confirmation is valid, in ms since epoch; null: none. One with more than the full time left was made by
 * a wrong clock and may be hours old.
 */
export const confirmationEnd = (session: SessionRow | null, now: number): number | null => {
  const until = session?.confirmedUntil ?? 0
  return until > now && until <= now + STEP_UP_MS ? until : null
}

/** Whether `lastSeenAt` is due. */
export const isTouchDue = ({ lastSeenAt }: SessionRow, now: number): boolean => now - lastSeenAt >= TOUCH_MS

/** Not again if another request of the same page was faster. */
export const touchSession = async (
  tx: Tx,
  id: string,
  seen: { now: number; address: string | null },
): Promise<void> => {
  await tx
    .update(sessions)
    .set({ lastSeenAt: seen.now, address: seen.address })
    .where(and(eq(sessions.id, id), lte(sessions.lastSeenAt, seen.now - TOUCH_MS)))
    .run()
}

/** A new token for the same session, after a sign-in step or a confirmation (decisions §4). */
export const rotateSession = async (
  tx: Tx,
  random: Random,
  id: string,
  change: Partial<Pick<SessionRow, 'isComplete' | 'confirmedUntil' | 'expiresAt' | 'method'>>,
): Promise<string> => {
  const token = random.token(TOKEN_BYTES)
  await tx
    .update(sessions)
    .set({ ...change, tokenHash: hashToken(token) })
    .where(eq(sessions.id, id))
    .run()
  return token
}

/** A user's sessions, most recently used first. */
export const listSessions = (db: Db, userId: string, now: number): Promise<SessionRow[]> =>
  db
    .select()
    .from(sessions)
    .where(and(eq(sessions.userId, userId), gt(sessions.expiresAt, now)))
    .orderBy(...NEWEST_USE)
    .all()

/** Ends one session. False when there is none with this id for the user. */
export const endSession = async (tx: Tx, id: string, userId: string | null): Promise<boolean> =>
  (await remove(
    tx,
    and(eq(sessions.id, id), userId === null ? isNull(sessions.userId) : eq(sessions.userId, userId)),
  )) > 0

/** Ends every session of the user except `except`. Returns how many. */
export const endSessionsOf = (tx: Tx, userId: string, except: string | null = null): Promise<number> =>
  remove(tx, and(eq(sessions.userId, userId), except === null ? undefined : ne(sessions.id, except)))

/** Ends all guest sessions. */
export const endGuestSessions = (tx: Tx): Promise<number> => remove(tx, isNull(sessions.userId))

export const dropExpiredSessions = (tx: Tx, now: number): Promise<number> => remove(tx, lte(sessions.expiresAt, now))

/** Open event streams recheck their session on this notice, so they end too. */
const remove = async (tx: Tx, which: SQL | undefined): Promise<number> => {
  const { changes } = await tx.delete(sessions).where(which).run()
  if (changes > 0) notice(tx, 'sessions')
  return changes
}
