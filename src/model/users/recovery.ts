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
export const createAdmin = (tx: Tx, { id, username, hash, actor }: NewAdmin): Person => {
  dropBootstrapToken(tx)
  if (isTaken(tx, username)) throw new AppError('username_taken')
  if (username === RESERVED_USERNAME) return createPasswordAdmin(tx, { id, hash, actor })
  const isFirst = tx.select({ id: users.id }).from(users).limit(1).get() === undefined
  const row = { id, username, roleId: ADMIN_ROLE_ID, status: 'active', passwordHash: hash } as const
  tx.insert(users)
    .values({ ...row, createdAt: actor.at, createdBy: actor.id })
    .run()
  const adoptedKeys = isFirst ? adoptKeys(tx, id) : 0
  append(tx, actor, 'user_created', { target: id, details: { username, role: ADMIN_ROLE_ID, adoptedKeys } })
  notice(tx, 'people')
  return getPerson(tx, id)
}

/**
 * Also for users without one. Ends all sessions. Throws `invite_pending`: the user sets a password by accepting the
 * invite.
 */
export const setPassword = (tx: Tx, { row }: Person, { hash, actor }: { hash: string; actor: Actor }): void => {
  if (row.status === 'invited') throw new AppError('invite_pending')
  tx.update(users).set({ passwordHash: hash }).where(eq(users.id, row.id)).run()
  dropBootstrapToken(tx)
  const endedSessions = endSessionsOf(tx, row.id)
  append(tx, actor, 'password_set', { target: row.id, details: { username: row.username, endedSessions } })
  notice(tx, 'people')
}

/** Removes the authenticator and the recovery codes and ends every session. A two-factor requirement stays in force. */
export const takeTotp = (tx: Tx, { row }: Person, actor: Actor): void => {
  clearTotp(tx, row.id)
  const endedSessions = endSessionsOf(tx, row.id)
  append(tx, actor, 'user_totp_reset', { target: row.id, details: { endedSessions } })
  notice(tx, 'people')
}

/** Returns how many. */
export const signOutEverywhere = (tx: Tx, { row }: Person, actor: Actor): number => {
  const count = endSessionsOf(tx, row.id)
  append(tx, actor, 'user_sessions_revoked', { target: row.id, details: { scope: 'admin', count } })
  return count
}
