/** The URLs of account pages. Every view, filter and tab has one; defaults are omitted. */
import type { AccountQuery } from '../../src/model/accounts/account-filter.ts'
import { withQuery } from '../ui/with-query.ts'

export const SIMULATOR = '/accounts/simulator'

export const accountPath = (accountId: string): string => `/accounts/${encodeURIComponent(accountId)}`

/** The account list with a changed query, on its first page unless `change` sets one. */
export const listLink = (query: AccountQuery, change: Partial<AccountQuery>): string => {
  const { q, state, eligible, plan, tag, sort, order, view, per, page } = { ...query, page: 1, ...change }
  return withQuery('/accounts', {
    q,
    state,
    eligible,
    plan,
    tag,
    sort: sort === 'name' ? null : sort,
    order: order === 'asc' ? null : order,
    view: view === 'table' ? null : view,
    per: per === 25 ? null : per,
    page: page === 1 ? null : page,
  })
}
