/** Passkeys and challenges as rows: challenges are used once, and the last way to sign in cannot be removed. */
import { and, asc, count, desc, eq, gt, isNull, lt, lte, or, sql } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { challenges, identities, passkeys, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'

export type PasskeyRow = typeof passkeys.$inferSelect
export type ChallengePurpose = (typeof challenges.$inferSelect)['purpose']

/** Time limit for the authenticator. */
export const CHALLENGE_MS = 5 * MINUTE_MS
const CHALLENGE_BYTES = 32
/** Anyone can request one; the oldest are dropped. */
const MAX_SIGN_IN_CHALLENGES = 1000
/** Per user. */
const MAX_PASSKEYS = 20

/** What lists show of one. */
export const toPasskey = ({ id, name, createdAt, lastUsedAt }: PasskeyRow) => ({
  id,
  name,
  createdAt: iso(createdAt),
  lastUsedAt: isoOrNull(lastUsedAt),
})

/** A user's passkeys, oldest first. */
export const listPasskeys = (db: Db, userId: string): Promise<PasskeyRow[]> =>
  db.select().from(passkeys).where(eq(passkeys.userId, userId)).orderBy(asc(passkeys.createdAt), asc(passkeys.id)).all()

/** Whether any user has a passkey. */
export const isAnyPasskey = async (db: Db): Promise<boolean> =>
  (await db.select({ id: passkeys.id }).from(passkeys).limit(1).get()) !== undefined

/** By the credential id from the authenticator. */
export const findCredential = async (db: Db, credentialId: string): Promise<PasskeyRow | null> =>
  (await db.select().from(passkeys).where(eq(passkeys.credentialId, credentialId)).get()) ?? null

interface NewChallenge {
  purpose: ChallengePurpose
  /** The session it belongs to; null: for signing in, or for a proxy user without a Sluice session. */
  sessionId: string | null
  now: number
}

/** Returns the challenge as base64url, as clients send it back. */
export const openChallenge = async (
  tx: Tx,
  random: Random,
  { purpose, sessionId, now }: NewChallenge,
): Promise<string> => {
  const challenge = random.token(CHALLENGE_BYTES)
  await tx
    .insert(challenges)
    .values({ challenge, purpose, sessionId, expiresAt: now + CHALLENGE_MS })
    .run()
  if (purpose === 'sign_in') await deleteOldest(tx)
  return challenge
}

const deleteOldest = async (tx: Tx): Promise<void> => {
  const isSignIn = eq(challenges.purpose, 'sign_in')
  const newest = await tx
    .select({ expiresAt: challenges.expiresAt })
    .from(challenges)
    .where(isSignIn)
    .orderBy(desc(challenges.expiresAt))
    .limit(1)
    .offset(MAX_SIGN_IN_CHALLENGES)
    .get()
  if (newest)
    await tx
      .delete(challenges)
      .where(and(isSignIn, lte(challenges.expiresAt, newest.expiresAt)))
      .run()
}

/** Uses up the challenge; false when unknown, used, expired or for another purpose. */
export const takeChallenge = async (
  tx: Tx,
  challenge: string,
  { purpose, sessionId, now }: NewChallenge,
): Promise<boolean> =>
  (await tx
    .delete(challenges)
    .where(
      and(
        eq(challenges.challenge, challenge),
        eq(challenges.purpose, purpose),
        sessionId === null ? isNull(challenges.sessionId) : eq(challenges.sessionId, sessionId),
        gt(challenges.expiresAt, now),
      ),
    )
    .returning({ challenge: challenges.challenge })
    .get()) !== undefined

export const dropExpiredChallenges = async (tx: Tx, now: number): Promise<number> =>
  (await tx.delete(challenges).where(lte(challenges.expiresAt, now)).run()).changes

/** The result of a verified registration. */
interface NewPasskey
  extends Pick<PasskeyRow, 'userId' | 'name' | 'credentialId' | 'publicKey' | 'counter' | 'transports'> {}

/** Throws `invalid_passkey` for a known one, and beyond the maximum. */
export const addPasskey = async (
  tx: Tx,
  input: NewPasskey,
  { random, actor }: { random: Random; actor: Actor },
): Promise<PasskeyRow> => {
  const held = (await tx.select({ n: count() }).from(passkeys).where(eq(passkeys.userId, input.userId)).get())?.n ?? 0
  if (held >= MAX_PASSKEYS)
    throw new AppError('invalid_passkey', { message: `You can have at most ${MAX_PASSKEYS} passkeys.` })
  const [row] = await tx
    .insert(passkeys)
    .values({ ...input, id: random.id('pky'), createdAt: actor.at })
    .onConflictDoNothing({ target: passkeys.credentialId })
    .returning()
    .all()
  if (!row) throw new AppError('invalid_passkey', { message: 'This passkey is already registered.' })
  await append(tx, actor, 'passkey_added', { target: row.id, details: { name: row.name, user: row.userId } })
  notice(tx, 'people')
  return row
}

/** Throws `not_found`, also for other users' passkeys. */
export const renamePasskey = async (
  tx: Tx,
  id: string,
  { userId, name, actor }: { userId: string; name: string; actor: Actor },
): Promise<PasskeyRow> => {
  const before = await getPasskey(tx, id, userId)
  const row = await tx.update(passkeys).set({ name }).where(eq(passkeys.id, id)).returning().get()
  await append(tx, actor, 'passkey_renamed', { target: id, details: { from: before.name, to: name, user: userId } })
  notice(tx, 'people')
  return row
}

/** Throws `not_found`, also for other users' passkeys, and `credential_required` for the last way to sign in. */
export const removePasskey = async (tx: Tx, id: string, removal: Removal): Promise<void> => {
  const { userId, actor } = removal
  const { name } = await getPasskey(tx, id, userId)
  const { changes } = await tx
    .delete(passkeys)
    .where(and(eq(passkeys.id, id), hasAnotherWayIn(removal)))
    .run()
  if (changes === 0) throw new AppError('credential_required')
  await append(tx, actor, 'passkey_removed', { target: id, details: { name, user: userId } })
  notice(tx, 'people')
}

interface Removal {
  userId: string
  actor: Actor
  /** Whether the user can also sign in through the proxy. */
  isProxyTrusted: boolean
}

const hasAnotherWayIn = ({ userId, isProxyTrusted }: Removal) =>
  or(
    sql`EXISTS (SELECT 1 FROM ${users} WHERE ${users.id} = ${userId} AND ${users.passwordHash} IS NOT NULL)`,
    isProxyTrusted ? sql`EXISTS (SELECT 1 FROM ${identities} WHERE ${identities.userId} = ${userId})` : undefined,
    sql`(SELECT count(*) FROM passkeys AS held WHERE held.user_id = ${userId}) > 1`,
  )

const getPasskey = async (db: Db, id: string, userId: string): Promise<PasskeyRow> => {
  const row = await db
    .select()
    .from(passkeys)
    .where(and(eq(passkeys.id, id), eq(passkeys.userId, userId)))
    .get()
  if (!row) throw new AppError('not_found', { message: 'Passkey not found.' })
  return row
}

/**
 * Records a use. A counter must grow, so that of two equal answers, or of an original and its copy, one is rejected;
 * authenticators without a counter stay at 0. Throws `invalid_passkey`.
 */
export const recordPasskeyUse = async (
  tx: Tx,
  id: string,
  { counter, now }: { counter: number; now: number },
): Promise<void> => {
  const hasGrown = counter === 0 ? eq(passkeys.counter, 0) : lt(passkeys.counter, counter)
  const { changes } = await tx
    .update(passkeys)
    .set({ counter, lastUsedAt: now })
    .where(and(eq(passkeys.id, id), hasGrown))
    .run()
  if (changes === 0) throw new AppError('invalid_passkey')
}
