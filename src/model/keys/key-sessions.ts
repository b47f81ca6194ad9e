/** Sessions of the page of a key. They open nothing else, and the sessions of the dashboard do not open the page. */
import { and, desc, eq, gt, lte, ne, notInArray } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { keySessions } from '../../../db/schema/keys.ts'
import { HOUR_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import { hashToken } from '../users/sessions.ts'

export type KeySession = typeof keySessions.$inferSelect

const LIFE_MS = 12 * HOUR_MS
const TOKEN_BYTES = 32
/** Per key; beyond that the oldest end. */
const MAX_SESSIONS = 20

/** Returns the token for the cookie; only its hash is stored. */
export const createKeySession = async (
  tx: Tx,
  random: Random,
  { keyHash, now }: { keyHash: string; now: number },
): Promise<{ token: string; expiresAt: number }> => {
  const token = random.token(TOKEN_BYTES)
  const id = hashToken(token)
  const expiresAt = now + LIFE_MS
  await tx.insert(keySessions).values({ id, keyHash, createdAt: now, expiresAt }).run()
  const others = and(eq(keySessions.keyHash, keyHash), ne(keySessions.id, id))
  const kept = tx
    .select({ id: keySessions.id })
    .from(keySessions)
    .where(others)
    .orderBy(desc(keySessions.createdAt), desc(keySessions.id))
    .limit(MAX_SESSIONS - 1)
  await tx
    .delete(keySessions)
    .where(and(others, notInArray(keySessions.id, kept)))
    .run()
  return { token, expiresAt }
}

/** The session of a cookie's token if not expired, or null. */
export const findKeySession = async (db: Db, token: string, now: number): Promise<KeySession | null> =>
  (await db
    .select()
    .from(keySessions)
    .where(and(eq(keySessions.id, hashToken(token)), gt(keySessions.expiresAt, now)))
    .get()) ?? null

export const endKeySession = async (tx: Tx, token: string): Promise<void> => {
  await tx
    .delete(keySessions)
    .where(eq(keySessions.id, hashToken(token)))
    .run()
}

/** Ends all sessions of a secret. */
export const endKeySessions = async (tx: Tx, keyHash: string): Promise<void> => {
  await tx.delete(keySessions).where(eq(keySessions.keyHash, keyHash)).run()
}

export const dropExpiredKeySessions = async (tx: Tx, now: number): Promise<void> => {
  await tx.delete(keySessions).where(lte(keySessions.expiresAt, now)).run()
}
