/** `/api/dashboard-auth/password/login`: user name and password start a session, complete or waiting for a second factor. */
import { z } from 'zod'
import type { Tx } from '../../../db/commit.ts'
import { requireManaged } from '../../auth/own-account.ts'
import type { Resolution } from '../../auth/resolve.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { sessionView } from '../../auth/session-view.ts'
import { signIn } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { returnPath, withReturn } from '../../http/return-path.ts'
import { findLogin, GivenPassword, isUnchanged } from '../../model/users/passwords.ts'
import { hasPasswordAccount, passwordHolders, toPerson, type UserRow } from '../../model/users/people.ts'

/** Not validated as a user name: an impossible name is simply wrong. */
const Login = z.strictObject({
  username: z.string().max(64).nullish().describe('Required if several users have a password.'),
  password: GivenPassword,
})

/**
 * Throws `password_management_disabled`, `password_not_configured`, `username_required`, `password_rate_limited`, and
 * `invalid_credentials` for a wrong name, password or status, always after the same time (spec §5).
 */
export const logIn = createHandlers(open('sign-in', { audit: 'login_success' }), body(Login), async (c) => {
  const { username, password } = c.req.valid('json')
  requireManaged(c)
  const row = await wanted(c, username ?? '')
  const tried = { limited: 'password_rate_limited', method: 'password', target: row?.id ?? null } as const
  const resolution = await attempt(c, tried, () => checkAndSignIn(c, row, password))
  const path = returnPath(c)
  return proceed(c, await sessionView(c, resolution), resolution.kind === 'half' ? withReturn('/totp', path) : path)
})

/** The requested user; null for an unknown name. */
const wanted = async ({ env: { db } }: Ctx, username: string): Promise<UserRow | null> => {
  if (!(await hasPasswordAccount(db))) throw new AppError('password_not_configured')
  const name = username.trim().toLowerCase()
  if (name !== '') return findLogin(db, name)
  const [only = null, second] = await passwordHolders(db)
  if (second) throw new AppError('username_required', { param: 'username' })
  return only
}

/** Always checks a hash, also for unknown users. The checked hash must still be current when the session starts. */
const checkAndSignIn = async (c: Ctx, row: UserRow | null, password: string): Promise<Resolution> => {
  const hash = row?.status === 'active' ? row.passwordHash : null
  const isRight = await c.env.passwords.verify(password, hash)
  if (!row || !isRight) throw new AppError('invalid_credentials')
  const hasSecondFactor = row.totpSecretSealed !== null
  return signIn(c, {
    person: await toPerson(c.env.db, row),
    method: 'password',
    isComplete: !hasSecondFactor,
    first: (tx) => requireUnchanged(tx, row),
  })
}

const requireUnchanged = async (tx: Tx, row: UserRow): Promise<void> => {
  if (!(await isUnchanged(tx, row))) throw new AppError('invalid_credentials')
}
