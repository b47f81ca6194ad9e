/** The API keys page: search, order and the state of each key. */

import { z } from 'zod'
import { naturalOrder } from '../../lib/natural-order.ts'
import type { ApiKey } from './api-key-view.ts'

const KEY_SORTS = ['name', 'owner', 'requests', 'tokens', 'cost', 'limit', 'used', 'state'] as const
export type KeySort = (typeof KEY_SORTS)[number]

/** From the address bar: invalid values are not applied, and the page names them. */
export const KeysQuery = z.object({
  q: z.string().trim().max(100).catch('').default(''),
  sort: z.enum(KEY_SORTS).catch('name').default('name'),
  dir: z.enum(['asc', 'desc']).catch('asc').default('asc'),
  /** First page is 1. */
  page: z.coerce.number().int().min(1).max(10_000).catch(1).default(1),
})
export type KeysQuery = z.output<typeof KeysQuery>

/** `off`: disabled manually; `orphaned`: its owner is disabled or deleted. Only `active` keys work. */
const KEY_STATES = ['active', 'off', 'orphaned', 'expired'] as const
export type KeyState = (typeof KEY_STATES)[number]

export const keyState = ({ isActive, deactivatedReason, owner }: ApiKey): KeyState => {
  if (deactivatedReason === 'owner_disabled' || (owner !== null && owner.status !== 'active')) return 'orphaned'
  if (!isActive) return 'off'
  return deactivatedReason === 'expired' ? 'expired' : 'active'
}

/** Used percent of a limit, at most 100. */
const limitPercent = ({ currentValue, maxValue }: Pick<ApiKey['limits'][number], 'currentValue' | 'maxValue'>) =>
  Math.min(100, (currentValue / maxValue) * 100)

/** Keys whose name, prefix or owner contains `q`, in the requested order; equal ones oldest first. */
export const arrangeKeys = <K extends ApiKey>(
  keys: readonly K[],
  { q, sort, dir }: Pick<KeysQuery, 'q' | 'sort' | 'dir'>,
): K[] => {
  const wanted = q.toLowerCase()
  const found = keys.filter(({ name, keyPrefix, owner }) =>
    [name, keyPrefix, owner?.username ?? ''].some((text) => text.toLowerCase().includes(wanted)),
  )
  const sign = dir === 'asc' ? 1 : -1
  return found.toSorted((a, b) => sign * compare(RANKS[sort](a), RANKS[sort](b)))
}

const RANKS: Record<KeySort, (key: ApiKey) => string | number> = {
  name: ({ name }) => name.toLowerCase(),
  owner: ({ owner }) => owner?.username.toLowerCase() ?? '',
  requests: ({ usageSummary }) => usageSummary.requestCount,
  tokens: ({ usageSummary }) => usageSummary.totalTokens,
  cost: ({ usageSummary }) => usageSummary.totalCostUsd,
  limit: ({ limits }) => Math.max(-1, ...limits.map(limitPercent)),
  used: ({ lastUsedAt }) => lastUsedAt ?? '',
  state: (key) => KEY_STATES.indexOf(keyState(key)),
}

const compare = (a: string | number, b: string | number): number =>
  typeof a === 'string' && typeof b === 'string' ? naturalOrder(a, b) : Number(a) - Number(b)
