/** `/accounts` and `GET /api/accounts`: the accounts as a page, limited to what the user may see, and as JSON. */

import { AccountsPage, type AccountsProps } from '../../../views/accounts/list.tsx'
import type { Ctx } from '../../boot/bindings.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { tokenHealth } from '../../model/accounts/account-export.ts'
import {
  AccountQuery,
  filterAccounts,
  getDistinctTags,
  type ListedAccount,
  planTotals,
} from '../../model/accounts/account-filter.ts'
import { withUniqueNames } from '../../model/accounts/account-names.ts'
import {
  ACCOUNT_STATUSES,
  type AccountSummary,
  masked,
  maskedView,
  summarise,
} from '../../model/accounts/account-summary.ts'
import { openTokens } from '../../model/accounts/account-tokens.ts'
import { getLastUses, getUses, NO_USE } from '../../model/accounts/account-totals.ts'
import { type AccountView, wireAccount } from '../../model/accounts/account-view.ts'
import { additionalQuotas } from '../../model/accounts/additional-quotas.ts'
import { resetCreditsView } from '../../model/accounts/reset-credits.ts'
import { lastWindowStarts } from '../../model/accounts/window-starts.ts'
import { holds } from '../../model/users/permissions.ts'
import { REFRESH_AFTER_MS } from '../../upstream/credentials.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { getHiddenFields } from '../visibility.ts'

/** `{accounts}`: each with its state, whether it is available now, and why not. */
export const listAccounts = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), async (c) => {
  const mayWrite = holds(c.var.principal.grants, 'accounts:write')
  const accounts = await getSummaries(c, { withTokens: mayWrite })
  return c.json({ accounts: mayWrite ? accounts : accounts.map(masked) })
})

const getSummaries = async (c: Ctx, { withTokens }: { withTokens: boolean }): Promise<AccountSummary[]> => {
  const { db, pool, resetCredits, clock, sealer } = c.env
  const now = clock.now()
  const views = pool.describe()
  const sharing = Map.groupBy(views, ({ email }) => email)
  const uses = await getUses(db)
  const starts = await lastWindowStarts(db)
  return views.flatMap((view) => {
    const account = pool.get(view.accountId)
    if (!account) return []
    const { row, usage } = account
    const credits = resetCredits.of(view.accountId)
    return summarise(view, row, {
      isEmailDuplicate: (sharing.get(view.email)?.length ?? 0) > 1,
      resetCredits: credits && resetCreditsView(credits, now),
      windowStart: starts.get(view.accountId) ?? null,
      use: uses.get(view.accountId) ?? NO_USE,
      additional: additionalQuotas(usage, now),
      tokens: withTokens ? tokenHealth(row, openTokens(sealer, row), { now, renewAfterMs: REFRESH_AFTER_MS }) : null,
    })
  })
}

/** Masked before filtering, so that users cannot search for hidden values. */
export const showAccounts = createHandlers(requires('accounts:read'), query(AccountQuery), async (c) => {
  const asked = c.req.valid('query')
  const all = await listedAccounts(c)
  const found = filterAccounts(all, asked)
  const pages = Math.max(1, Math.ceil(found.length / asked.per))
  const page = Math.min(asked.page, pages)
  const counted = ACCOUNT_STATUSES.map((status) => [status, all.filter((one) => one.status === status).length] as const)
  const value: AccountsProps = {
    accounts: found.slice((page - 1) * asked.per, page * asked.per),
    found: found.length,
    total: all.length,
    pages,
    query: { ...asked, page },
    plans: planTotals(all),
    tags: getDistinctTags(all),
    states: Object.fromEntries(counted.filter(([status, count]) => count > 0 || status === asked.state)),
    mayWrite: mayWrite(c),
    mayExport: holds(c.var.principal.grants, 'accounts:export'),
    now: iso(c.env.clock.now()),
    ...getFormFeedback(c),
  }
  return reply(c, value, AccountsPage)
})

const listedAccounts = async (c: Ctx): Promise<ListedAccount[]> => {
  const uses = await getUses(c.env.db)
  const lastUses = await getLastUses(c.env.db)
  return viewsFor(c).map((view) => {
    const { requestCount, totalCostUsd } = uses.get(view.accountId) ?? NO_USE
    const lastUsedAt = isoOrNull(lastUses.get(view.accountId))
    return { ...wireAccount(view), requests: requestCount, costUsd: totalCostUsd, lastUsedAt }
  })
}

export const mayWrite = (c: Ctx): boolean => holds(c.var.principal.grants, 'accounts:write')

export const viewsFor = (c: Ctx): AccountView[] => {
  const views = c.env.pool.describe()
  return withUniqueNames(getHiddenFields(c.var.principal).hidesAccounts ? views.map(maskedView) : views)
}
