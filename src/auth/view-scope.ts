/** Whose keys a dashboard user may see and change, by the scope of the permission. */
import { holds, mayWrite, type Permission } from '../model/users/permissions.ts'
import type { ViewScope } from '../model/users/view-scope.ts'
import { demand, type Principal, requireWrite } from './principal.ts'

/** Permissions whose reads can be limited to own keys. */
export type OwnRead = Extract<Permission, 'dashboard:read' | 'api_keys:read'>

/** null: the user does not hold the permission in any scope. */
export const getScope = (principal: Principal, permission: OwnRead): ViewScope | null => {
  if (holds(principal.grants, permission)) return 'all'
  // Only users own keys.
  if (principal.kind !== 'account' || !holds(principal.grants, permission, 'own')) return null
  return { ownerUserId: principal.id }
}

/** Throws `permission_required` for users who do not hold the permission in any scope. */
export const requireScope = (principal: Principal, permission: OwnRead): ViewScope => {
  const scope = getScope(principal, permission)
  if (scope === null) demand(principal, permission)
  return scope ?? 'all'
}

/** Whether the user sees requests or keys, but only their own. */
export const seesOnlyOwnKeys = (principal: Principal): boolean => {
  const scope = getScope(principal, 'dashboard:read') ?? getScope(principal, 'api_keys:read')
  return scope !== null && scope !== 'all'
}

/** The id of every change for these users: unlike others, it does not count the changes of everyone. */
export const OWN_LIVE_ID = 'own'

/**
 * Whose keys the user may change: everyone's after the general write check, own ones with `api_keys:write` alone. Throws
 * what `requireWrite` does.
 */
export const requireKeyScope = (principal: Principal): 'all' | { ownerUserId: string } => {
  if (canChangeOwnKeys(principal)) return { ownerUserId: principal.id }
  requireWrite(principal)
  return 'all'
}

/** Whether the user may create, change and delete their own keys only. */
export const canChangeOwnKeys = ({ kind, grants }: Principal): boolean =>
  kind === 'account' && !mayWrite(grants) && holds(grants, 'api_keys:write', 'own')
