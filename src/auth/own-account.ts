/** The account that asks about itself: its profile, its password, its second factor. */
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import type { AuditEvent } from '../model/audit.ts'
import { type AccountPrincipal, demandOwnAccount } from './principal.ts'
import { resolve } from './resolve.ts'

/**
 * Who asks, also while they are held at the enrollment gate (spec §3). Throws the 401 of the case, `totp_required`, and
 * `user_account_required` to those who are nobody in particular. Sets `c.var.principal`.
 */
export const ownAccount = (c: Ctx): AccountPrincipal => accountOf(c).principal

/** The same past the enrollment gate. Throws `totp_enrollment_required` too. */
export const settledAccount = (c: Ctx): AccountPrincipal => {
  const { principal, mustEnroll } = accountOf(c)
  if (mustEnroll) throw new AppError('totp_enrollment_required')
  return principal
}

/**
 * Counts a change of theirs that leaves an audit row. Each event by itself: who has a copy of somebody's cookie must not keep
 * them from changing the password by using up what there is. Throws `own_account_rate_limited`.
 */
export const countOwnChange = (c: Ctx, { id }: AccountPrincipal, event: AuditEvent): void => {
  c.env.ownChanges.take(`${id} ${event}`, 'own_account_rate_limited')
}

/** Whether this person has signed in here themselves; behind a proxy, besides being announced by it. */
export const hasOwnSession = ({ session }: AccountPrincipal): boolean =>
  session !== null && session.method !== 'trusted_header'

/** Throws `password_management_disabled` where the authentication mode leaves nothing to manage (spec §5). */
export const demandManaged = (c: Ctx): void => {
  if (c.env.env.DASHBOARD_AUTH_MODE === 'disabled') throw new AppError('password_management_disabled')
}

/** Behind a proxy a password of ours is managed by those who gave it (spec §5). Throws `authentication_required`. */
export const demandOwnSession = (principal: AccountPrincipal): void => {
  if (!hasOwnSession(principal))
    throw new AppError('authentication_required', { message: 'Sign in with your password first.' })
}

const accountOf = (c: Ctx): { principal: AccountPrincipal; mustEnroll: boolean } => {
  const resolution = resolve(c)
  if (resolution.kind === 'nobody') throw resolution.error
  if (resolution.kind === 'half') throw new AppError('totp_required')
  const { principal, mustEnroll } = resolution
  c.set('principal', principal)
  return { principal: demandOwnAccount(principal), mustEnroll }
}
