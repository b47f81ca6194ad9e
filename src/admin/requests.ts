/** `/api/request-logs`: what was asked through the proxy, and what became of it. */
import type { Context } from 'hono'
import { demand, type Principal } from '../auth/principal.ts'
import type { AppEnv } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { query } from '../http/params.ts'
import { holds } from '../model/permissions.ts'
import { PRICES_VERSION } from '../model/pricing.ts'
import type { Sight } from '../model/request-log.ts'
import { LogFilters, LogQuery } from '../model/request-log-query.ts'
import type { Blinders } from '../model/request-view.ts'

export const listRequests = createHandlers(requires('dashboard:read'), query(LogQuery), async (c) => {
  const asked = c.req.valid('query')
  demandSight(c, asked)
  return c.json(await c.env.reader.requestLogs(asked, sightOf(c)))
})

/**
 * `status` is accepted and does not narrow: the statuses offered are those that could be chosen instead. `pricesVersion` is
 * of the table in force now; stored costs may be older.
 */
export const listRequestOptions = createHandlers(requires('dashboard:read'), query(LogFilters), async (c) => {
  const asked = c.req.valid('query')
  demandSight(c, asked)
  const options = await c.env.reader.requestLogOptions(asked)
  const { hidesKeys } = blindersOf(c.var.principal)
  return c.json({ ...options, ...(hidesKeys && { apiKeys: [] }), pricesVersion: PRICES_VERSION })
})

export const showRequest = createHandlers(requires('dashboard:read'), async (c) => {
  const found = await c.env.reader.requestLog(c.req.param('id') ?? '', sightOf(c))
  if (!found) throw new AppError('not_found', { message: 'There is no such request in the log.' })
  return c.json(found)
})

const sightOf = (c: Context<AppEnv>): Sight => ({
  sensitive: holds(c.var.principal.grants, 'conversations:read'),
  ...blindersOf(c.var.principal),
})

/** Asking for one conversation is looking into it. Throws `permission_required`. */
const demandSight = (c: Context<AppEnv>, asked: LogFilters): void => {
  if (asked.conversation_id !== undefined) demand(c.var.principal, 'conversations:read')
}

/** Upstream accounts are named to those who work with them, keys to those who may list them (spec §2, capability summary). */
export const blindersOf = ({ grants }: Principal): Blinders => ({
  hidesAccounts: !holds(grants, 'accounts:write'),
  hidesKeys: !holds(grants, 'api_keys:read'),
})
