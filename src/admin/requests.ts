/** `/api/request-logs`: client requests and their results. */
import { demand, type Principal } from '../auth/principal.ts'
import { getScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { AppError } from '../errors.ts'
import { requiresOwn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { query } from '../http/query.ts'
import { PRICES_VERSION } from '../model/catalog/pricing.ts'
import { RejectedQuery } from '../model/log/rejected-clients.ts'
import type { LogDetail } from '../model/log/request-log.ts'
import { LogFilters, LogQuery } from '../model/log/request-log-query.ts'
import type { Visibility } from '../model/log/request-log-where.ts'
import type { HiddenFields } from '../model/log/request-view.ts'
import { holds } from '../model/users/permissions.ts'
import type { ViewScope } from '../model/users/view-scope.ts'
import { toReader } from './reader-for-caller.ts'

export const listRequests = createHandlers(requiresOwn('dashboard:read'), query(LogQuery), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  return c.json(await toReader(c).requestLogs(asked, getVisibility(c)))
})

/**
 * `status` is accepted but does not filter the offered statuses. `pricesVersion` is the current table's; stored costs
 * may be older.
 */
export const listRequestOptions = createHandlers(requiresOwn('dashboard:read'), query(LogFilters), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  const options = await toReader(c).requestLogOptions(asked, getVisibility(c))
  const { hidesKeys } = getHiddenFields(c.var.principal)
  return c.json({ ...options, ...(hidesKeys && { apiKeys: [] }), pricesVersion: PRICES_VERSION })
})

export const listRejectedClients = createHandlers(requiresOwn('dashboard:read'), query(RejectedQuery), async (c) => {
  const asked = c.req.valid('query')
  requireVisibility(c, asked)
  return c.json(await toReader(c).rejectedPage(asked, getVisibility(c)))
})

export const showRequest = createHandlers(requiresOwn('dashboard:read'), async (c) =>
  c.json(await getRequest(c, getPathId(c))),
)

/** The request with row id `id`, as the user may see it. Throws `not_found`. */
export const getRequest = async (c: Ctx, id: string): Promise<LogDetail> => {
  const found = await toReader(c).requestLog(id, getVisibility(c))
  if (!found)
    throw new AppError('not_found', {
      message: 'Request not found. It may have been deleted from the log, or the link is wrong.',
    })
  return found
}

export const getVisibility = (c: Ctx): Visibility => ({
  sensitive: holds(c.var.principal.grants, 'conversations:read'),
  ...getHiddenFields(c.var.principal),
})

/** Hidden values cannot be filtered either: filtering by a conversation or key reveals it. Throws `permission_required`. */
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
