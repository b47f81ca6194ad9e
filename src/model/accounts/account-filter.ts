/** The filters and the order of the account list, from the query of its URL. */
import { z } from 'zod'
import { ACCOUNT_STATUSES } from '../../../db/schema/accounts.ts'
import { naturalOrder } from '../../lib/natural-order.ts'
import type { WireAccount } from './account-view.ts'

const ACCOUNT_SORTS = ['name', 'state', 'five_hour', 'weekly', 'in_flight', 'requests', 'cost', 'used'] as const
export type AccountSort = (typeof ACCOUNT_SORTS)[number]

/** An unknown value filters nothing, so a link from another version still opens the list; the page names it. */
const choice = <T extends readonly [string, ...string[]]>(values: T) => z.enum(values).optional().catch(undefined)

export const AccountQuery = z.object({
  q: z.string().trim().max(200).default('').catch(''),
  state: choice(ACCOUNT_STATUSES),
  eligible: choice(['yes', 'no']),
  plan: z
    .string()
    .max(100)
    .optional()
    .transform((plan) => plan || undefined),
  tag: z
    .string()
    .max(100)
    .optional()
    .transform((tag) => tag || undefined),
  sort: z.enum(ACCOUNT_SORTS).default('name').catch('name'),
  order: z.enum(['asc', 'desc']).default('asc').catch('asc'),
  view: z.enum(['table', 'cards']).default('table').catch('table'),
  /** Rows per page: 25 keeps phones fast, 100 is for changing many at once. */
  per: z.coerce
    .number()
    .pipe(z.literal([25, 100]))
    .default(25)
    .catch(25),
  page: z.coerce.number().int().min(1).max(10_000).default(1).catch(1),
})
export type AccountQuery = z.output<typeof AccountQuery>

/** An account with what it has served since it was added. */
export interface ListedAccount extends WireAccount {
  requests: number
  costUsd: number
  /** ISO 8601; null: never. */
  lastUsedAt: string | null
}

/** The matching accounts, sorted. Mask before filtering, so that users cannot search for hidden values. */
export const filterAccounts = (accounts: readonly ListedAccount[], query: AccountQuery): ListedAccount[] =>
  accounts.filter((account) => passes(account, query)).toSorted(comparing(query))

const passes = (account: ListedAccount, { q, state, eligible, plan, tag }: AccountQuery): boolean =>
  (state === undefined || account.status === state) &&
  (eligible === undefined || account.eligible === (eligible === 'yes')) &&
  (plan === undefined || account.planType === plan) &&
  (tag === undefined || account.tags.includes(tag)) &&
  includes(`${account.displayName}\n${account.email}\n${account.accountId}`, q)

const includes = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase())

/** Most urgent first. */
const STATE_ORDER: readonly string[] = [
  'reauth_required',
  'deactivated',
  'quota_exceeded',
  'rate_limited',
  'paused',
  'active',
]

const SORT_VALUES: Record<Exclude<AccountSort, 'name'>, (account: ListedAccount) => string | number | null> = {
  state: ({ status, eligible }) => STATE_ORDER.indexOf(status) * 2 + Number(eligible),
  five_hour: ({ windows }) => windows.fiveHour?.usedPercent ?? null,
  weekly: ({ windows }) => (windows.weekly ?? windows.monthly)?.usedPercent ?? null,
  in_flight: ({ inFlight }) => inFlight,
  requests: ({ requests }) => requests,
  cost: ({ costUsd }) => costUsd,
  used: ({ lastUsedAt }) => lastUsedAt,
}

/** Unknown values come last in either direction; ties are sorted by name. */
const comparing = ({ sort, order }: AccountQuery) => {
  const direction = order === 'asc' ? 1 : -1
  if (sort === 'name') return (a: ListedAccount, b: ListedAccount): number => direction * byName(a, b)
  const value = SORT_VALUES[sort]
  return (a: ListedAccount, b: ListedAccount): number => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return x === y ? byName(a, b) : x === null ? 1 : -1
    return x === y ? byName(a, b) : x < y ? -direction : direction
  }
}

const byName = (a: ListedAccount, b: ListedAccount): number =>
  naturalOrder(a.displayName, b.displayName) || (a.accountId < b.accountId ? -1 : 1)

/** Every tag that an account has, sorted. */
export const getDistinctTags = (accounts: readonly Pick<ListedAccount, 'tags'>[]): string[] =>
  [...new Set(accounts.flatMap(({ tags }) => tags))].toSorted(naturalOrder)

/** The accounts of one plan together. */
export interface PlanTotal {
  plan: string
  accounts: number
  available: number
  requests: number
  costUsd: number
}

/** Over all accounts, whatever the filters show. */
export const planTotals = (accounts: readonly ListedAccount[]): PlanTotal[] =>
  [...Map.groupBy(accounts, ({ planType }) => planType)]
    .map(([plan, group]) => ({
      plan,
      accounts: group.length,
      available: group.filter(({ eligible }) => eligible).length,
      requests: group.reduce((sum, { requests }) => sum + requests, 0),
      costUsd: group.reduce((sum, { costUsd }) => sum + costUsd, 0),
    }))
    .toSorted((a, b) => naturalOrder(a.plan, b.plan))
