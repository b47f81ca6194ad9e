/** Stored credentials: the first user, passwords and second factors. */
import { and, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { identities, users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import { dropExpiredInvites } from './expired-invites.ts'
import { getPerson, hasPasswordAccount, type Person, type UserRow } from './people.ts'
import { createRecoveryCodes, deleteRecoveryCodes } from './recovery-codes.ts'
import { ADMIN_ROLE_ID } from './roles.ts'
import { endSessionsOf } from './sessions.ts'
import { RESERVED_USERNAME } from './usernames.ts'

const MAX_PASSWORD_CHARS = 1024

/** A new password (decisions §4). */
export const NewPassword = z
  .string()
  .min(8, 'must have at least 8 characters')
  .max(MAX_PASSWORD_CHARS)
  .describe('The new password.')
/** A password to check: anything that could be set; too short ones are simply wrong. */
export const GivenPassword = z.string().max(MAX_PASSWORD_CHARS).describe('The current password.')

/** Time steps before and after the current one that are accepted, because clocks differ. */
export const TOTP_WINDOW = 1

/** The encryption context of a TOTP secret. */
export const totpContext = (userId: string): string => `users/totp_secret/${userId}`

/** Reads only the row, so that unknown names take the same time. `username` is in lower case. */
export const findLogin = async (db: Db, username: string): Promise<UserRow | null> =>
  (await db.select().from(users).where(eq(users.username, username)).get()) ?? null

/**
 * Creates the local user `admin` with the Admin role. The first user of an install takes over the API keys without
 * owner (decisions §4). Throws `password_already_configured`.
 */
export const createPasswordAdmin = async (tx: Tx, { id, hash, actor }: NewAdmin): Promise<Person> => {
  if (await hasPasswordAccount(tx)) throw new AppError('password_already_configured')
  const isFirst = (await tx.select({ id: users.id }).from(users).limit(1).get()) === undefined
  await tx
    .insert(users)
    .values({
      id,
      username: RESERVED_USERNAME,
      roleId: ADMIN_ROLE_ID,
      status: 'active',
      passwordHash: hash,
      createdAt: actor.at,
      createdBy: actor.id,
    })
    .run()
  const adoptedKeys = isFirst ? await adoptKeys(tx, id) : 0
  await append(tx, actor, 'password_set', { target: id, details: { username: RESERVED_USERNAME, adoptedKeys } })
  notice(tx, 'people')
  return getPerson(tx, id)
}

interface NewAdmin {
  id: string
  hash: string
  actor: Actor
}

export const adoptKeys = async (tx: Tx, ownerUserId: string): Promise<number> => {
  const ownerless = isNull(apiKeys.ownerUserId)
  // Keys disabled with a deleted owner must not become active with this one.
  await tx
    .update(apiKeys)
    .set({ deactivatedReason: 'manual' })
    .where(and(ownerless, eq(apiKeys.deactivatedReason, 'owner_disabled')))
    .run()
  const { changes } = await tx.update(apiKeys).set({ ownerUserId }).where(ownerless).run()
  if (changes > 0) notice(tx, 'keys')
  return changes
}

/**
 * Signs out the user's other browsers. Throws `invalid_credentials` when the checked password is no longer the stored
 * one.
 */
export const changePassword = async (
  tx: Tx,
  row: UserRow,
  { hash, exceptSession, actor }: PasswordChange,
): Promise<void> => {
  const { changes } = await tx.update(users).set({ passwordHash: hash }).where(isStill(row)).run()
  if (changes === 0) throw new AppError('invalid_credentials')
  const endedSessions = await endSessionsOf(tx, row.id, exceptSession)
  await append(tx, actor, 'password_changed', { target: row.id, details: { endedSessions } })
}

interface PasswordChange {
  hash: string
  exceptSession: string | null
  actor: Actor
}

/**
 * Makes the install passwordless again: deletes the only user with its sessions, passkeys and second factor; its keys
 * lose their owner (spec §5 Signing in 7). Throws `other_users_exist`, and `invalid_credentials` as above.
 */
export const removeOnlyAccount = async (tx: Tx, row: UserRow, actor: Actor): Promise<void> => {
  await dropExpiredInvites(tx, actor.at)
  await endSessionsOf(tx, row.id)
  const { changes } = await tx
    .delete(users)
    .where(and(isStill(row), sql`(SELECT count(*) FROM ${users}) = 1`, sql`NOT EXISTS (SELECT 1 FROM ${identities})`))
    .run()
  if (changes === 0) throw new AppError((await isUnchanged(tx, row)) ? 'other_users_exist' : 'invalid_credentials')
  await tx.update(apiKeys).set({ ownerUserId: null }).where(eq(apiKeys.ownerUserId, row.id)).run()
  await append(tx, actor, 'password_removed', { target: row.id, details: { username: row.username } })
  notice(tx, 'people')
  notice(tx, 'keys')
}

/** Unchanged since the password check, which takes a while: a second factor may have been added. */
const isStill = ({ id, passwordHash, totpSecretSealed }: UserRow) =>
  and(
    eq(users.id, id),
    eq(users.status, 'active'),
    passwordHash === null ? isNull(users.passwordHash) : eq(users.passwordHash, passwordHash),
    totpSecretSealed === null ? isNull(users.totpSecretSealed) : eq(users.totpSecretSealed, totpSecretSealed),
  )

export const isUnchanged = async (tx: Tx, row: UserRow): Promise<boolean> =>
  (await tx.select({ id: users.id }).from(users).where(isStill(row)).get()) !== undefined

/**
 * Uses up `step`, the step of the code that proved the secret. Signs out browsers that signed in without the second
 * factor. Returns the new recovery codes, shown once. Throws `invalid_totp_setup` when there is already an
 * authenticator.
 */
export const enableTotp = async (
  tx: Tx,
  userId: string,
  { sealed, step, exceptSession, random, actor }: NewTotp,
): Promise<string[]> => {
  const { changes } = await tx
    .update(users)
    .set({ totpSecretSealed: sealed, totpLastStep: step })
    .where(and(eq(users.id, userId), isNull(users.totpSecretSealed)))
    .run()
  if (changes === 0) throw new AppError('invalid_totp_setup')
  const endedSessions = await endSessionsOf(tx, userId, exceptSession)
  await append(tx, actor, 'totp_enabled', { target: userId, details: { endedSessions } })
  notice(tx, 'people')
  return createRecoveryCodes(tx, userId, { random, now: actor.at })
}

interface NewTotp {
  sealed: string
  step: number
  exceptSession: string | null
  random: Random
  actor: Actor
}

/** Removes the authenticator and the recovery codes. The caller has used up a code. */
export const disableTotp = async (tx: Tx, row: UserRow, actor: Actor): Promise<void> => {
  await clearTotp(tx, row.id)
  await append(tx, actor, 'totp_disabled', { target: row.id })
  notice(tx, 'people')
}

/**
 * False when the code of `step` was used before: of several parallel uses, one passes. A stored step more than two
 * windows ahead comes from a wrong clock and is ignored.
 */
export const spendTotpStep = async (tx: Tx, { id, totpSecretSealed }: UserRow, step: number): Promise<boolean> =>
  (
    await tx
      .update(users)
      .set({ totpLastStep: step })
      .where(
        and(
          eq(users.id, id),
          eq(users.status, 'active'),
          totpSecretSealed === null ? sql`FALSE` : eq(users.totpSecretSealed, totpSecretSealed),
          or(isNull(users.totpLastStep), lt(users.totpLastStep, step), gt(users.totpLastStep, step + 2 * TOTP_WINDOW)),
        ),
      )
      .run()
  ).changes > 0

/** Removes the authenticator and its recovery codes. */
export const clearTotp = async (tx: Tx, userId: string): Promise<void> => {
  await tx.update(users).set({ totpSecretSealed: null, totpLastStep: null }).where(eq(users.id, userId)).run()
  await deleteRecoveryCodes(tx, userId)
}
