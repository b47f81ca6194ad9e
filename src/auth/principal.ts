/** Who is using the dashboard, what they may do, and their name in the audit log. */
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../model/audit/audit.ts'
import type { Person } from '../model/users/people.ts'
import { type Grants, holds, mayWrite, type Permission, PRESETS, WRITE } from '../model/users/permissions.ts'
import { missingPermissionText } from '../model/users/roles.ts'
import { confirmationEnd, type SessionRow, type SignInMethod } from '../model/users/sessions.ts'

/** Every `switch` over `kind` must handle each case. */
export type Principal =
  /** The local user of an install without a password, or everyone when authentication is off: Admin without a user. */
  | { kind: 'local_bootstrap' | 'disabled'; id: string; grants: Grants }
  | { kind: 'guest'; id: 'guest'; grants: Grants; session: SessionRow | null }
  | AccountPrincipal

export interface AccountPrincipal {
  kind: 'account'
  id: string
  grants: Grants
  person: Person
  method: SignInMethod
  /** Null: announced by the proxy, without a Sluice session. */
  session: SessionRow | null
  /** How this user can confirm a sensitive change; empty: not at all (spec §5, step-up 3). */
  stepUpMethods: readonly StepUpMethod[]
}

export type StepUpMethod = 'password' | 'totp' | 'passkey'

export const BOOTSTRAP: Principal = Object.freeze({
  kind: 'local_bootstrap',
  id: 'bootstrap',
  grants: PRESETS.admin,
})
export const UNGUARDED: Principal = Object.freeze({ kind: 'disabled', id: 'disabled', grants: PRESETS.admin })

/** Throws `permission_required`, naming the permission and who can grant it. */
export const demand = (principal: Principal, permission: Permission): void => {
  if (holds(principal.grants, permission)) return
  const message = missingPermissionText(permission, principal.kind === 'guest')
  throw new AppError('permission_required', { param: permission, message })
}

/**
 * The general write check. Throws `read_only_access`, or `permission_required` for users who may change their own keys.
 */
export const requireWrite = (principal: Principal): void => {
  const { grants } = principal
  if (mayWrite(grants)) return
  if (holds(grants, 'api_keys:write', 'own')) for (const permission of WRITE) demand(principal, permission)
  throw new AppError('read_only_access')
}

/**
 * Throws `step_up_required` with `details.methods` unless the user confirmed within the last five minutes, and
 * `step_up_unavailable` when they have no way to confirm. Principals without a user pass. `now` is ms since epoch.
 */
export const requireStepUp = (principal: Principal, now: number): void => {
  if (principal.kind !== 'account') return
  const { stepUpMethods } = principal
  if (stepUpMethods.length === 0) throw new AppError('step_up_unavailable')
  if (mustConfirm(principal, now)) throw new AppError('step_up_required', { details: { methods: stepUpMethods } })
}

/** Whether a sensitive change requires confirmation first. */
export const mustConfirm = (principal: Principal, now: number): boolean =>
  principal.kind === 'account' && confirmationEnd(principal.session, now) === null

/** Managing users requires being one (spec §5 Signing in 8). Throws `admin_account_required`. */
export const requireAccount = (principal: Principal): AccountPrincipal => {
  if (principal.kind !== 'account') throw new AppError('admin_account_required')
  return principal
}

/** For things only users have: sessions, passkeys, a profile. Throws `user_account_required`. */
export const requireOwnAccount = (principal: Principal): AccountPrincipal => {
  if (principal.kind !== 'account') throw new AppError('user_account_required')
  return principal
}

/** The actor of this request for the audit log. */
export const actor = (c: Ctx): Actor => getActor(c.var.principal, c)

export const getActor = (principal: Principal, c: Ctx): Actor =>
  principal.kind === 'account'
    ? actorFor(c, principal.person, principal.method)
    : { id: principal.id, method: principal.kind, address: c.var.clientIp, at: c.env.clock.now() }

/** `person` as an actor in the audit log. */
export const actorFor = (c: Ctx, { row, role }: Person, method: string): Actor => ({
  id: row.id,
  name: row.username,
  role: role.slug,
  method,
  address: c.var.clientIp,
  at: c.env.clock.now(),
})
