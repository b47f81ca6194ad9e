/** User management from the command line, without signing in: for administrators who are locked out. */
import { eq } from 'drizzle-orm'
import { notice, type Tx } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { type Actor, append } from '../audit/audit.ts'
import { dropBootstrapToken } from './bootstrap-token.ts'
import { adoptKeys, clearTotp, createPasswordAdmin } from './passwords.ts'
import { getPerson, type Person } from './people.ts'
import { ADMIN_ROLE_ID } from './roles.ts'
import { endSessionsOf } from './sessions.ts'
import { isTaken, RESERVED_USERNAME } from './usernames.ts'

interface NewAdmin {
  id: string
  username: string
  hash: string
  actor: Actor
}

/**
 * Creates an active user with the Admin role and a password. The very first user takes over the API keys without owner
 * (decisions §4). Throws `username_taken`, and `password_already_configured` for the reserved name.
 */
export const createAdmin = async (tx: Tx, { id, username, hash, actor }: NewAdmin): Promise<Person> => {
  await dropBootstrapToken(tx)
  if (await isTaken(tx, username)) throw new AppError('username_taken')
  if (username === RESERVED_USERNAME) return createPasswordAdmin(tx, { id, hash, actor })
  const isFirst = (await tx.select({ id: users.id }).from(users).limit(1).get()) === undefined
  const row = { id, username, roleId: ADMIN_ROLE_ID, status: 'active', passwordHash: hash } as const
  await tx
    .insert(users)
    .values({ ...row, createdAt: actor.at, createdBy: actor.id })
    .run()
  const adoptedKeys = isFirst ? await adoptKeys(tx, id) : 0
  await append(tx, actor, 'user_created', { target: id, details: { username, role: ADMIN_ROLE_ID, adoptedKeys } })
  notice(tx, 'people')
  return getPerson(tx, id)
}

/**
 * Also for users without one. Ends all sessions. Throws `invite_pending`: the user sets a password by accepting the
 * invite.
 */
export const setPassword = async (
  tx: Tx,
  { row }: Person,
  { hash, actor }: { hash: string; actor: Actor },
): Promise<void> => {
  if (row.status === 'invited') throw new AppError('invite_pending')
  await tx.update(users).set({ passwordHash: hash }).where(eq(users.id, row.id)).run()
  await dropBootstrapToken(tx)
  const endedSessions = await endSessionsOf(tx, row.id)
  await append(tx, actor, 'password_set', { target: row.id, details: { username: row.username, endedSessions } })
  notice(tx, 'people')
}

/** Removes the authenticator and the recovery codes and ends every session. A two-factor requirement stays in force. */
export const takeTotp = async (tx: Tx, { row }: Person, actor: Actor): Promise<void> => {
  await clearTotp(tx, row.id)
  const endedSessions = await endSessionsOf(tx, row.id)
  await append(tx, actor, 'user_totp_reset', { target: row.id, details: { endedSessions } })
  notice(tx, 'people')
}

/** Returns how many. */
export const signOutEverywhere = async (tx: Tx, { row }: Person, actor: Actor): Promise<number> => {
  const count = await endSessionsOf(tx, row.id)
  await append(tx, actor, 'user_sessions_revoked', { target: row.id, details: { scope: 'admin', count } })
  return count
}
