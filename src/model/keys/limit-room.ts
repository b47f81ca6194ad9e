/** Checks whether a request fits into what is left of a key's limits. */
import { iso } from '../../lib/iso.ts'
import { costMicros } from '../catalog/pricing.ts'
import type { KeyPolicy } from './key-ring.ts'
import { type LiveLimit, rollOver } from './reservations.ts'

export interface MissingRoom {
  /** ms since epoch. Null if the request is larger than the whole limit. */
  resetAt: number | null
  message: string
}

/**
 * The limit with too little left for `tokens` on `model`. If there are several, the one that resets last. Null if the
 * request fits. Only limits on total tokens and on cost are checked. The cost is assumed to be that of input tokens, so
 * it may be higher.
 */
export const getMissingRoom = (
  { limits }: Pick<KeyPolicy, 'limits'>,
  { model, tokens, now }: { model: string | null; tokens: number; now: number },
): MissingRoom | null => {
  const missing = limits
    .filter(({ modelFilter }) => modelFilter === '' || modelFilter === model)
    .flatMap((limit) => getMissing(limit, getNeed(limit, model, tokens), now) ?? [])
  return missing.toSorted((a, b) => (b.resetAt ?? Infinity) - (a.resetAt ?? Infinity))[0] ?? null
}

const getNeed = ({ type }: LiveLimit, model: string | null, tokens: number): number => {
  if (type === 'total_tokens') return tokens
  if (type !== 'cost_usd' || model === null) return 0
  return (
    costMicros({ inputTokens: tokens, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0 }, model, null) ?? 0
  )
}

const getMissing = (limit: LiveLimit, need: number, now: number): MissingRoom | null => {
  rollOver(limit, now)
  const left = Math.max(0, limit.maxValue - limit.settled - limit.reserved)
  if (need <= left) return null
  const name = `API key ${limit.type} ${limit.window} limit`
  if (need > limit.maxValue) return { resetAt: null, message: `The ${name} is smaller than this request needs.` }
  const resetAt = limit.resetAt
  return { resetAt, message: `The ${name} has too little left for this request. It resets at ${iso(resetAt)}.` }
}
