/** Access to the user's own profile, password and second factor. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import type { AuditEvent } from '../model/audit/audit.ts'
import { type AccountPrincipal, requireOwnAccount } from './principal.ts'
import { resolve } from './resolve.ts'

/**
 * The signed-in user, also while held at the enrollment gate (spec §3). Throws the 401 of the case, `totp_required`,
 * and `user_account_required` for principals without a user. Sets `c.var.principal`.
 */
export const ownAccount = async (c: Ctx): Promise<AccountPrincipal> => (await toAccount(c)).principal

/** The same, but only past the enrollment gate. Also throws `totp_enrollment_required`. */
export const requireEnrolledAccount = async (c: Ctx): Promise<AccountPrincipal> => {
  const { principal, mustEnroll } = await toAccount(c)
  if (mustEnroll) throw new AppError('totp_enrollment_required')
  return principal
}

/**
 * Limits the user's own changes that add an audit row. Counted per event, so that a stolen cookie cannot use up the
 * limit and stop the user from changing the password. Throws `own_account_rate_limited`.
 */
export const countOwnChange = async (c: Ctx, { id }: AccountPrincipal, event: AuditEvent): Promise<void> => {
  await c.env.ownChanges.take(`${id} ${event}`, 'own_account_rate_limited')
}

/** Whether this user has signed in here; behind a proxy, in addition to being announced. */
export const hasOwnSession = ({ session }: AccountPrincipal): boolean =>
  session !== null && session.method !== 'trusted_header'

/** Throws `password_management_disabled` where the authentication mode leaves nothing to manage (spec §5). */
export const requireManaged = (c: Ctx): void => {
  if (c.env.env.DASHBOARD_AUTH_MODE === 'disabled') throw new AppError('password_management_disabled')
}

/**
 * Behind a proxy, a Sluice password may only be managed by users who have signed in with it (spec §5). Throws
 * `authentication_required`.
 */
export const requireOwnSession = (principal: AccountPrincipal): void => {
  if (!hasOwnSession(principal))
    throw new AppError('authentication_required', { message: 'Sign in with your password first.' })
}

const toAccount = async (c: Ctx): Promise<{ principal: AccountPrincipal; mustEnroll: boolean }> => {
  const resolution = await resolve(c)
  if (resolution.kind === 'unauthenticated') throw resolution.error
  if (resolution.kind === 'half') throw new AppError('totp_required')
  const { principal, mustEnroll } = resolution
  c.set('principal', principal)
  return { principal: requireOwnAccount(principal), mustEnroll }
}
