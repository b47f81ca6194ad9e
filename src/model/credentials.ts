/** What people prove themselves with, as it is stored: the first account, passwords and second factors. */
import { and, eq, gt, isNull, lt, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Db, notice, type Tx } from '../../db/commit.ts'
import { apiKeys } from '../../db/schema/keys.ts'
import { identities, users } from '../../db/schema/people.ts'
import { AppError } from '../errors.ts'
import type { Random } from '../lib/random.ts'
import { type Actor, append } from './audit.ts'
import { dropExpiredInvites } from './expired-invites.ts'
import { getPerson, hasPasswordAccount, type Person, type UserRow } from './people.ts'
import { createRecoveryCodes, deleteRecoveryCodes } from './recovery-codes.ts'
import { ADMIN_ROLE_ID } from './roles.ts'
import { endSessionsOf } from './sessions.ts'
import { RESERVED_USERNAME } from './usernames.ts'

const MAX_PASSWORD_CHARS = 1024

/** One that is chosen (decisions §4). */
export const NewPassword = z
  .string()
  .min(8, 'must have at least 8 characters')
  .max(MAX_PASSWORD_CHARS)
  .describe('The new password.')
/** One that is checked: whatever could have been chosen, and too short ones, which are wrong. */
export const GivenPassword = z.string().max(MAX_PASSWORD_CHARS).describe('The current password.')

/** Steps before and after the present one whose codes count, too: clocks differ. */
export const TOTP_WINDOW = 1

/** The place a second factor's secret is sealed for. */
export const totpContext = (userId: string): string => `users/totp_secret/${userId}`

/** The row alone, so that a name nobody has costs what any other costs. `username` is in lower case. */
export const findLogin = (db: Db, username: string): UserRow | null =>
  db.select().from(users).where(eq(users.username, username)).get() ?? null

/**
 * Makes the local password account: `admin`, with the Admin role. The first account of an install takes over the API keys
 * that belong to nobody (decisions §4). Throws `password_already_configured`.
 */
export const createPasswordAdmin = (tx: Tx, { id, hash, actor }: NewAdmin): Person => {
  if (hasPasswordAccount(tx)) throw new AppError('password_already_configured')
  const isFirst = tx.select({ id: users.id }).from(users).limit(1).get() === undefined
  tx.insert(users)
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
  const adoptedKeys = isFirst ? adoptKeys(tx, id) : 0
  append(tx, actor, 'password_set', { target: id, details: { username: RESERVED_USERNAME, adoptedKeys } })
  notice(tx, 'people')
  return getPerson(tx, id)
}

interface NewAdmin {
  id: string
  hash: string
  actor: Actor
}

export const adoptKeys = (tx: Tx, ownerUserId: string): number => {
  const ownerless = isNull(apiKeys.ownerUserId)
  // What went down with an owner who is gone must not come back with this one.
  tx.update(apiKeys)
    .set({ deactivatedReason: 'manual' })
    .where(and(ownerless, eq(apiKeys.deactivatedReason, 'owner_disabled')))
    .run()
  const { changes } = tx.update(apiKeys).set({ ownerUserId }).where(ownerless).run()
  if (changes > 0) notice(tx, 'keys')
  return changes
}

/**
 * Every other browser of the person has to sign in anew. Throws `invalid_credentials` when the password that was checked
 * is no longer the stored one.
 */
export const changePassword = (tx: Tx, row: UserRow, { hash, exceptSession, actor }: PasswordChange): void => {
  const { changes } = tx.update(users).set({ passwordHash: hash }).where(isStill(row)).run()
  if (changes === 0) throw new AppError('invalid_credentials')
  const endedSessions = endSessionsOf(tx, row.id, exceptSession)
  append(tx, actor, 'password_changed', { target: row.id, details: { endedSessions } })
}

interface PasswordChange {
  hash: string
  exceptSession: string | null
  actor: Actor
}

/**
 * Makes the install passwordless again: the only account is gone, its sessions, passkeys and second factor with it, and
 * its keys belong to nobody (spec §5 Signing in 7). Throws `other_users_exist`, and `invalid_credentials` as above.
 */
export const removeOnlyAccount = (tx: Tx, row: UserRow, actor: Actor): void => {
  dropExpiredInvites(tx, actor.at)
  endSessionsOf(tx, row.id)
  const { changes } = tx
    .delete(users)
    .where(and(isStill(row), sql`(SELECT count(*) FROM ${users}) = 1`, sql`NOT EXISTS (SELECT 1 FROM ${identities})`))
    .run()
  if (changes === 0) throw new AppError(isUnchanged(tx, row) ? 'other_users_exist' : 'invalid_credentials')
  tx.update(apiKeys).set({ ownerUserId: null }).where(eq(apiKeys.ownerUserId, row.id)).run()
  append(tx, actor, 'password_removed', { target: row.id, details: { username: row.username } })
  notice(tx, 'people')
  notice(tx, 'keys')
}

/** As it was when the password was checked, which took a while: a second factor may have come meanwhile. */
const isStill = ({ id, passwordHash, totpSecretSealed }: UserRow) =>
  and(
    eq(users.id, id),
    eq(users.status, 'active'),
    passwordHash === null ? isNull(users.passwordHash) : eq(users.passwordHash, passwordHash),
    totpSecretSealed === null ? isNull(users.totpSecretSealed) : eq(users.totpSecretSealed, totpSecretSealed),
  )

export const isUnchanged = (tx: Tx, row: UserRow): boolean =>
  tx.select({ id: users.id }).from(users).where(isStill(row)).get() !== undefined

/**
 * Spends `step`, the step of the code that proved the secret. Signs out browsers that signed in without the second factor.
 * Returns the new recovery codes, to be shown once. Throws `invalid_totp_setup` when there is an authenticator already.
 */
export const enableTotp = (
  tx: Tx,
  userId: string,
  { sealed, step, exceptSession, random, actor }: NewTotp,
): string[] => {
  const { changes } = tx
    .update(users)
    .set({ totpSecretSealed: sealed, totpLastStep: step })
    .where(and(eq(users.id, userId), isNull(users.totpSecretSealed)))
    .run()
  if (changes === 0) throw new AppError('invalid_totp_setup')
  const endedSessions = endSessionsOf(tx, userId, exceptSession)
  append(tx, actor, 'totp_enabled', { target: userId, details: { endedSessions } })
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

/** Removes the authenticator and the recovery codes. The caller has spent a code before. */
export const disableTotp = (tx: Tx, row: UserRow, actor: Actor): void => {
  clearTotp(tx, row.id)
  append(tx, actor, 'totp_disabled', { target: row.id })
  notice(tx, 'people')
}

/**
 * False when the code of `step` was used before: of several that show the same one at once, one passes. A code that counts was
 * then at most two windows ahead of this one; what is further ahead was noted by a clock that was, and says nothing.
 */
export const spendTotpStep = (tx: Tx, { id, totpSecretSealed }: UserRow, step: number): boolean =>
  tx
    .update(users)
    .set({ totpLastStep: step })
    .where(
      and(
        eq(users.id, id),
        eq(users.status, 'active'),
        totpSecretSealed === null ? sql`0` : eq(users.totpSecretSealed, totpSecretSealed),
        or(isNull(users.totpLastStep), lt(users.totpLastStep, step), gt(users.totpLastStep, step + 2 * TOTP_WINDOW)),
      ),
    )
    .run().changes > 0

/** Removes the authenticator and the recovery codes that belong to it. */
export const clearTotp = (tx: Tx, userId: string): void => {
  tx.update(users).set({ totpSecretSealed: null, totpLastStep: null }).where(eq(users.id, userId)).run()
  deleteRecoveryCodes(tx, userId)
}
