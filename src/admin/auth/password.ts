/** `/api/dashboard-auth/password`: changes or removes the user's own password. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { showBootstrapToken } from '../../auth/bootstrap.ts'
import {
  countOwnChange,
  ownAccount,
  requireEnrolledAccount,
  requireManaged,
  requireOwnSession,
} from '../../auth/own-account.ts'
import { type AccountPrincipal, getActor, requireOwnAccount } from '../../auth/principal.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { clearSessionToken } from '../../auth/session-cookie.ts'
import { endOthers } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { rotateBootstrapToken } from '../../model/users/bootstrap-token.ts'
import { changePassword, GivenPassword, NewPassword, removeOnlyAccount } from '../../model/users/passwords.ts'
import { hasPasswordAccount } from '../../model/users/people.ts'
import { writeSettings } from '../../settings/store.ts'

const Change = z.strictObject({ currentPassword: GivenPassword, newPassword: NewPassword })
const Removal = z.strictObject({ password: GivenPassword })

/**
 * Signs out all other browsers. Throws `password_management_disabled`, `password_not_configured`,
 * `invalid_credentials`, `password_rate_limited`, `own_account_rate_limited` and the 401 of the case.
 */
export const replacePassword = createHandlers(
  open('the signed-in user, also before setting up required two-factor', {
    audit: 'password_changed',
    check: (c) => requirePasswordHolder(c, ownAccount),
  }),
  body(Change),
  async (c) => {
    const { currentPassword, newPassword } = c.req.valid('json')
    const principal = requireOwnAccount(c.var.principal)
    const { row } = principal.person
    const doer = getActor(principal, c)
    await attempt(c, { limited: 'password_rate_limited', method: 'password_change', target: row.id }, async () => {
      await requirePassword(c, row.passwordHash, currentPassword)
      await countOwnChange(c, principal, 'password_changed')
      const hash = await c.env.passwords.hash(newPassword)
      await endOthers(c, principal, (tx, exceptSession) =>
        changePassword(tx, row, { hash, exceptSession, actor: doer }),
      )
    })
    return proceed(c, { status: 'ok' }, '/me?done=password_changed#password')
  },
)

/**
 * Returns to an install without a password: deletes the only user, turns off both two-factor requirements, and creates
 * a new bootstrap token (spec §5 Signing in 7). Throws `other_users_exist`, `totp_enrollment_required`, and what
 * changing it does.
 */
export const removePassword = createHandlers(
  open('the signed-in user, with their password', {
    audit: 'password_removed',
    check: (c) => requirePasswordHolder(c, requireEnrolledAccount),
  }),
  body(Removal),
  async (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const { row } = principal.person
    await attempt(c, { limited: 'password_rate_limited', method: 'password_removal', target: row.id }, async () => {
      await requirePassword(c, row.passwordHash, c.req.valid('json').password)
      await undoSetup(c, principal)
    })
    clearSessionToken(c)
    return proceed(c, { status: 'ok' }, '/dashboard')
  },
)

/** Behind a proxy setup needs no token, so none is created. */
const undoSetup = async (c: Ctx, principal: AccountPrincipal): Promise<void> => {
  const { db, random, env } = c.env
  const doer = getActor(principal, c)
  const token = await commit(db, async (tx) => {
    await removeOnlyAccount(tx, principal.person.row, doer)
    await writeSettings(tx, { totpRequiredOnLogin: false, totpRequiredForAdminRole: false }, { now: doer.at })
    return env.DASHBOARD_AUTH_MODE === 'standard' ? await rotateBootstrapToken(tx, { random, actor: doer }) : null
  })
  if (token !== null) showBootstrapToken(c.env, token)
}

const requirePasswordHolder = async (c: Ctx, whoAsks: (c: Ctx) => Promise<AccountPrincipal>): Promise<void> => {
  requireManaged(c)
  if (!(await hasPasswordAccount(c.env.db))) throw new AppError('password_not_configured')
  const principal = await whoAsks(c)
  if (principal.person.row.passwordHash === null) throw new AppError('password_not_configured')
  requireOwnSession(principal)
}

const requirePassword = async (c: Ctx, hash: string | null, password: string): Promise<void> => {
  if (!(await c.env.passwords.verify(password, hash))) throw new AppError('invalid_credentials')
}
