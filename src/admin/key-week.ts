/** `/api/api-keys/:id/trends` and `…/usage-7d`: seven days of one key. */
import { requireScope } from '../auth/view-scope.ts'
import type { Ctx } from '../boot/bindings.ts'
import { requiresOwn } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { getPathId } from '../http/path-id.ts'
import { maskEmails } from '../model/accounts/account-summary.ts'
import { getKey } from '../model/keys/api-keys.ts'
import { type KeyWeek, keyTrends, keyUsage7d } from '../model/keys/key-trends.ts'
import { toReader } from './reader-for-caller.ts'
import { getHiddenFields } from './requests.ts'

/** Throws `not_found`. */
export const showKeyTrends = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { id } = getKey(c.env.db, getPathId(c), requireScope(c.var.principal, 'api_keys:read'))
  return c.json(keyTrends(id, await getWeek(c, id)))
})

/** Throws `not_found`. */
export const showKeyUsage7d = createHandlers(requiresOwn('api_keys:read'), async (c) => {
  const { id } = getKey(c.env.db, getPathId(c), requireScope(c.var.principal, 'api_keys:read'))
  return c.json(keyUsage7d(id, await getWeek(c, id)))
})

/** Accounts are masked for users who do not manage them, and left out for users who see only their own keys. */
export const getWeek = async (c: Ctx, keyId: string): Promise<KeyWeek> => {
  const week = await toReader(c).keyWeek(keyId, c.env.clock.now())
  if (requireScope(c.var.principal, 'api_keys:read') !== 'all') return { ...week, accounts: [] }
  if (!getHiddenFields(c.var.principal).hidesAccounts) return week
  const masked = week.accounts.map((share) => ({
    ...share,
    email: share.email && maskEmails(share.email),
  }))
  return { ...week, accounts: masked }
}
