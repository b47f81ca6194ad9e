/** Which accounts the list shows, and in what order: the query of its URL, applied to what the visitor may see. */
import { z } from 'zod'
import { ACCOUNT_STATUSES } from '../../db/schema/accounts.ts'
import type { WireAccount } from './account-view.ts'

const ACCOUNT_SORTS = ['name', 'state', 'five_hour', 'weekly', 'in_flight'] as const
export type AccountSort = (typeof ACCOUNT_SORTS)[number]

/** An unknown value filters nothing: a link of another version still opens the list. */
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
  sort: z.enum(ACCOUNT_SORTS).default('name').catch('name'),
  order: z.enum(['asc', 'desc']).default('asc').catch('asc'),
  view: z.enum(['table', 'cards']).default('table').catch('table'),
  /** How many a page shows: 25 stay light on a phone, 100 are for changing many at once. */
  per: z.coerce
    .number()
    .pipe(z.literal([25, 100]))
    .default(25)
    .catch(25),
  page: z.coerce.number().int().min(1).max(10_000).default(1).catch(1),
})
export type AccountQuery = z.output<typeof AccountQuery>

/** Those that pass, sorted. What a visitor is not shown cannot be searched for: mask before filtering. */
export const filterAccounts = (accounts: readonly WireAccount[], query: AccountQuery): WireAccount[] =>
  accounts.filter((account) => passes(account, query)).toSorted(comparing(query))

const passes = (account: WireAccount, { q, state, eligible, plan }: AccountQuery): boolean =>
  (state === undefined || account.status === state) &&
  (eligible === undefined || account.eligible === (eligible === 'yes')) &&
  (plan === undefined || account.planType === plan) &&
  includes(`${account.displayName}\n${account.email}\n${account.accountId}`, q)

const includes = (text: string, part: string): boolean => text.toLowerCase().includes(part.toLowerCase())

/** By what needs somebody most. */
const STATE_ORDER: readonly string[] = [
  'reauth_required',
  'deactivated',
  'quota_exceeded',
  'rate_limited',
  'paused',
  'active',
]

const SORT_VALUES: Record<AccountSort, (account: WireAccount) => string | number | null> = {
  name: ({ displayName }) => displayName.toLowerCase(),
  state: ({ status, eligible }) => STATE_ORDER.indexOf(status) * 2 + Number(eligible),
  five_hour: ({ windows }) => windows.fiveHour?.usedPercent ?? null,
  weekly: ({ windows }) => (windows.weekly ?? windows.monthly)?.usedPercent ?? null,
  in_flight: ({ inFlight }) => inFlight,
}

/** What is not known stands last in either direction; equals go by name. */
const comparing = ({ sort, order }: AccountQuery) => {
  const direction = order === 'asc' ? 1 : -1
  const value = SORT_VALUES[sort]
  return (a: WireAccount, b: WireAccount): number => {
    const [x, y] = [value(a), value(b)]
    if (x === null || y === null) return x === y ? byName(a, b) : x === null ? 1 : -1
    return x === y ? byName(a, b) : x < y ? -direction : direction
  }
}

const byName = (a: WireAccount, b: WireAccount): number =>
  a.displayName.localeCompare(b.displayName, 'en') || (a.accountId < b.accountId ? -1 : 1)
