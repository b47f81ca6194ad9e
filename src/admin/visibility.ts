/** What a user may see of requests, accounts and keys. */
import { demand, type Principal } from '../auth/principal.ts'
import { getScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import type { LogFilters } from '../model/log/request-log-query.ts'
import type { Visibility } from '../model/log/request-log-where.ts'
import type { HiddenFields } from '../model/log/request-view.ts'
import { holds } from '../model/users/permissions.ts'
import type { ViewScope } from '../model/users/view-scope.ts'

export const getVisibility = (c: Ctx): Visibility => ({
  sensitive: holds(c.var.principal.grants, 'conversations:read'),
  ...getHiddenFields(c.var.principal),
})

/** Rejects filters for hidden values, because the result would reveal them. Throws `permission_required`. */
export const requireVisibility = (
  c: Ctx,
  asked: Partial<Pick<LogFilters, 'conversation_id' | 'apiKeyId' | 'accountId'>>,
): void => {
  const { principal } = c.var
  const { scope, hidesKeys } = getHiddenFields(principal)
  if (asked.conversation_id !== undefined) demand(principal, 'conversations:read')
  if (asked.apiKeyId?.length && hidesKeys) demand(principal, 'api_keys:read')
  if (asked.accountId?.length && scope !== 'all') demand(principal, 'accounts:read')
}

/**
 * The rows a user may see, and what is hidden in them: accounts are named to users who manage them, keys to users who
 * may list them (spec §2, capability summary).
 */
export const getHiddenFields = (principal: Principal): HiddenFields => {
  const { grants } = principal
  const scope = getScope(principal, 'dashboard:read') ?? getScope(principal, 'api_keys:read') ?? NOTHING
  return {
    scope,
    hidesAccounts: !holds(grants, 'accounts:write'),
    hidesKeys: !holds(grants, 'api_keys:read', scope === 'all' ? 'all' : 'own'),
  }
}

/** No user has this id. */
const NOTHING: ViewScope = { ownerUserId: '' }
