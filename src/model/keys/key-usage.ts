/** What a client can see about its own key: usage, limits, and what is left in its pool (`GET /v1/usage`). */
import { iso, isoOrNull } from '../../lib/iso.ts'
import { type PoolWindow, remainingPercent } from '../overview/pool-usage.ts'
import type { StoredKey } from './api-keys.ts'
import type { UsageSection } from './key-input.ts'
import type { KeyPolicy } from './key-ring.ts'
import { type LiveLimit, rollOver } from './reservations.ts'

type Totals = Pick<StoredKey, 'requestCount' | 'inputTokens' | 'cachedInputTokens' | 'outputTokens' | 'costMicros'>

interface Facts {
  totals: Totals
  policy: KeyPolicy
  /** The accounts in the key's scope. */
  pool: readonly PoolWindow[]
  hidesUpstreamQuota: boolean
  now: number
}

/**
 * Snake case, as clients expect. Hidden sections are absent; a key without limits shows those of the pool, if visible.
 */
export const keyUsage = ({ totals, policy, pool, hidesUpstreamQuota, now }: Facts) => {
  const shows = (section: UsageSection) => !hidesUpstreamQuota && policy.usageSections.has(section)
  const upstream = shows('upstream_limits') ? pool.map(aggregateLimit) : null
  const own = ownLimits(policy, now)
  return {
    request_count: totals.requestCount,
    total_tokens: totals.inputTokens + totals.outputTokens,
    cached_input_tokens: totals.cachedInputTokens,
    total_cost_usd: totals.costMicros / 1e6,
    limits: own.length > 0 ? own : (upstream ?? []),
    ...(upstream && { upstream_limits: upstream }),
    ...(shows('account_pool_usage') && { account_pool_usage: poolUsage(pool) }),
  }
}

/** The limits of the key itself. */
export const ownLimits = ({ limits }: Pick<KeyPolicy, 'limits'>, now: number) =>
  limits.map((limit) => ownLimit(limit, now))

const ownLimit = (limit: LiveLimit, now: number) => {
  rollOver(limit, now)
  return {
    limit_type: limit.type,
    limit_window: limit.window,
    max_value: limit.maxValue,
    current_value: limit.settled,
    remaining_value: Math.max(0, limit.maxValue - limit.settled),
    model_filter: limit.modelFilter || null,
    reset_at: iso(limit.resetAt),
    source: 'api_key_limit',
  } as const
}

const aggregateLimit = ({ window, capacityCredits, usedCredits, resetAt }: PoolWindow) => {
  const current = Math.round(usedCredits)
  return {
    limit_type: 'credits',
    limit_window: window,
    max_value: capacityCredits,
    current_value: current,
    remaining_value: capacityCredits - current,
    model_filter: null,
    reset_at: isoOrNull(resetAt),
    source: 'aggregate',
  } as const
}

/** Percent left in the short and the long window; null when neither is known. */
export const poolUsage = (pool: readonly PoolWindow[]) => {
  const find = (name: PoolWindow['window']) => pool.find(({ window }) => window === name)
  const primary = remainingPercent(find('5h'))
  const secondary = remainingPercent(find('7d') ?? find('monthly'))
  return primary === null && secondary === null ? null : { primary, secondary }
}
