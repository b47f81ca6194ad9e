/** Who is asking the dashboard, what they may do there, and the name they act under in the audit log. */
import type { Context } from 'hono'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import type { Actor } from '../model/audit.ts'
import { type Grants, holds, mayWrite, type Permission, PRESETS } from '../model/permissions.ts'

/**
 * A tagged union with one member until people can sign in: the local user of an install without a password.
 * Accounts, guests and proxy identities become members of their own; every `switch` over `kind` then has to say what it does.
 */
export interface Principal {
  kind: 'bootstrap'
  id: 'bootstrap'
  grants: Grants
}

/** Acts as Admin without holding an account, and has nothing to confirm a step-up with, so is never asked (spec §5). */
const BOOTSTRAP: Principal = Object.freeze({ kind: 'bootstrap', id: 'bootstrap', grants: PRESETS.admin })

/** The principal of this request. Throws `bootstrap_required` for a caller that is not on this machine. */
export const resolvePrincipal = (c: Context<AppEnv>): Principal => {
  if (c.var.isLocal) return BOOTSTRAP
  throw new AppError('bootstrap_required', { message: howToReach(c.env.env.PORT) })
}

/** Throws `permission_required`, naming the permission in `param`. */
export const demand = (principal: Principal, permission: Permission): void => {
  if (!holds(principal.grants, permission)) throw new AppError('permission_required', { param: permission })
}

/** The generic write check (dashboard API §0.3). Throws `read_only_access`. */
export const demandWrite = (principal: Principal): void => {
  if (!mayWrite(principal.grants)) throw new AppError('read_only_access')
}

/** Throws `step_up_required` unless the principal confirmed within the last five minutes, or has nothing to confirm with. */
export const demandStepUp = (principal: Principal): void => {
  switch (principal.kind) {
    case 'bootstrap':
      return
  }
}

/** How this request signs the audit log. */
export const actor = (c: Context<AppEnv>): Actor => ({
  id: c.var.principal.id,
  method: c.var.principal.kind,
  address: c.var.clientIp,
  at: c.env.clock.now(),
})

const howToReach = (port: number): string =>
  'Signing in from other machines is not available yet, so this dashboard answers its own machine only. ' +
  `On that machine open http://127.0.0.1:${port}/dashboard. ` +
  'In a container use the command line instead: docker exec <container> sluice --help.'
