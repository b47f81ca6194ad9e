/**
 * What it costs to move a conversation away from an account that can still serve it, and what staying costs. Both are
 * in percent of the quota that is left, so that the same request counts more on an account that is nearly used up.
 */
import { MINUTE_MS } from '../../lib/durations.ts'
import {
  capacityCredits,
  getPercentLeft,
  hasUsableCredits,
  type WindowLength,
} from '../../model/accounts/usage-windows.ts'
import type { CreditRates } from '../../model/log/request-units.ts'
import type { Candidate, PolicyContext } from './policies.ts'
import type { LastUse } from './selection-needs.ts'

/** Assumed: ChatGPT keeps cached tokens at least this long. */
const CACHE_KEPT_MS = 5 * MINUTE_MS

/**
 * Whether the larger cache of an earlier request still counts. Sub-agents and requests for titles share the session of
 * the conversation, but not its tokens.
 */
export const isCacheKept = (
  before: { moveUnits: number; cachedAt: number },
  { moveUnits, now }: { moveUnits: number; now: number },
): boolean => moveUnits < before.moveUnits && now - before.cachedAt < CACHE_KEPT_MS

export interface MovePrices {
  /** The account that has the cache. */
  homeId: string
  /** What another request like the last one uses of it; null: its quota is not known. */
  stayPercent: number | null
  /** What reading the cached tokens again uses of another account; null: its quota is not known. */
  movePercent: (target: Candidate) => number | null
}

/** The prices for a conversation that is cached on `home`. */
export const priceMoves = (home: Candidate, { units, moveUnits }: LastUse, ctx: PolicyContext): MovePrices => ({
  homeId: home.id,
  stayPercent: percentOfRest(home, units, ctx),
  movePercent: (target) => percentOfRest(target, moveUnits, ctx),
})

/**
 * Whether a move costs less than staying. A request larger than what is left cannot be served. If that holds for both
 * accounts, the conversation keeps its cache. A price that is not known keeps no conversation.
 */
export const movePays = (movePercent: number | null, stayPercent: number | null): boolean => {
  if (movePercent === null || stayPercent === null) return true
  return isWithinRest(stayPercent) ? movePercent < stayPercent : isWithinRest(movePercent)
}

/**
 * Whether an account can serve a request of that price. Assumed, here and in the replay: ChatGPT rejects a request that
 * is larger than what is left, except in an unused window.
 */
export const isWithinRest = (percent: number | null): boolean => percent === null || percent <= 100

/**
 * Percent of what is left that so many units use, in the window where this is the larger share. No request uses more
 * than a whole window. Infinity: nothing is left. Null: no window is known, or paid credits replace it.
 */
export const percentOfRest = (
  { usage, planType }: Pick<Candidate, 'usage' | 'planType'>,
  units: number,
  { now, rates }: Pick<PolicyContext, 'now' | 'rates'>,
): number | null => {
  if (units <= 0) return 0
  const hasCredits = hasUsableCredits(usage?.credits ?? null)
  let most: number | null = null
  for (const [length, rate] of WINDOWS) {
    const left = getPercentLeft(usage?.windows[length] ?? null, now)
    const capacity = capacityCredits(planType, length)
    if (left === null || capacity === 0 || (left <= 0 && hasCredits && length !== 'fiveHour')) continue
    const credits = Math.min(units * rates[rate], capacity)
    most = Math.max(most ?? 0, left > 0 ? (100 * 100 * credits) / (capacity * left) : Number.POSITIVE_INFINITY)
  }
  return most
}

const WINDOWS: readonly (readonly [WindowLength, keyof Pick<CreditRates, 'short' | 'long'>])[] = [
  ['fiveHour', 'short'],
  ['weekly', 'long'],
  ['monthly', 'long'],
]
