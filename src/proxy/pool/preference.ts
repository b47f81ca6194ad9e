/** Which of the eligible accounts comes first: the owner, then health tier, routing policy and strategy. */
import { type Health, isFailing } from '../../model/accounts/account-health.ts'
import { isExhausted, usedNow, usesPaidCredits } from '../../model/accounts/usage-windows.ts'
import type { SkipReason } from '../../model/log/skip-reasons.ts'
import type { Verdicts } from './eligibility.ts'
import { bypassesTiers, type Candidate, type PolicyContext, type Ranked, type RoutingPolicy, rank } from './policies.ts'
import type { Owner, SelectionNeeds } from './selection-needs.ts'

/**
 * At this use of the five-hour window, conversations move to an account below it (percent used, running turns not
 * counted).
 */
const STICKY_PERCENT = 95
/** A probing account unused for this long gets one turn before healthy ones. */
const PROBE_AFTER_MS = 60_000

/** Narrows the eligible to owner, tier and class, ranks the rest, and writes reasons into `verdicts`. */
export const choose = (
  eligible: readonly Candidate[],
  needs: SelectionNeeds,
  ctx: PolicyContext,
  verdicts: Verdicts,
): readonly Ranked[] => {
  const narrow = (pool: readonly Candidate[], keep: readonly Candidate[], reason: SkipReason) => {
    if (keep.length !== pool.length)
      // all have a verdict
      for (const candidate of pool) if (!keep.includes(candidate)) verdicts.get(candidate.id)!.skipped = reason
    return keep
  }
  let pool = narrow(eligible, withIncludedQuota(eligible, ctx), 'paid_credits_last')
  const owner = keptOwner(pool, needs, ctx)
  if (owner) pool = narrow(pool, [owner], 'not_owner')
  else if (bypassesTiers(ctx.strategy)) pool = narrow(pool, getSteady(pool, ctx.now), 'lower_tier')
  else {
    pool = narrow(pool, bestTier(pool, ctx.now), 'lower_tier')
    pool = narrow(pool, bestClass(pool), 'policy_class')
  }
  // The strategy scores a kept owner, but single_account must not exclude it.
  const ranked = rank(pool, owner ? { ...ctx, singleAccountId: null } : ctx)
  for (const { id, score, resetDays } of ranked) {
    const verdict = verdicts.get(id)! // as above
    verdict.score = score
    verdict.skipped = null
    verdict.until = null
    if (resetDays !== null) verdict.resetDays = resetDays
  }
  return ranked
}

/** Whether serving on `id` moves the conversation away from its owner and heir. */
export const isMove = (owner: Owner | null, id: string): boolean =>
  owner !== null && owner.id !== id && owner.successor !== id

/** When paid credits come last: accounts with included quota, if any. Otherwise all. */
export const withIncludedQuota = (
  pool: readonly Candidate[],
  { paidCredits, now }: PolicyContext,
): readonly Candidate[] => {
  if (paidCredits !== 'last' || !pool.some(({ usage }) => usesPaidCredits(usage, now))) return pool
  const included = pool.filter(({ usage }) => !usesPaidCredits(usage, now))
  return included.length > 0 ? included : pool
}

/**
 * The owner or its heir, if the conversation should stay: not when it is over budget and another available account is
 * not.
 */
const keptOwner = (eligible: readonly Candidate[], { owner }: SelectionNeeds, ctx: PolicyContext): Candidate | null => {
  if (!owner) return null
  const mayStay = (kept: Candidate) => isAlwaysSticky(kept, ctx) || !eligible.some((other) => isFit(other, ctx.now))
  for (const name of [owner.id, owner.successor]) {
    const kept = eligible.find(({ id }) => id === name)
    if (kept && mayStay(kept)) return kept
  }
  return null
}

/** Whether an available owner keeps its conversation whatever the other accounts are like. */
export const isAlwaysSticky = (owner: Candidate, { strategy, now }: PolicyContext): boolean =>
  bypassesTiers(strategy) || isFit(owner, now)

const isFit = (kept: Candidate, now: number): boolean => isUnderBudget(kept, now) && !keepsFailing(kept, now)

const isUnderBudget = ({ usage }: Candidate, now: number): boolean => {
  if (!usage) return true
  return (usedNow(usage.windows.fiveHour, now) ?? 0) < STICKY_PERCENT && !isExhausted(usage, now).exhausted
}

/**
 * Twice in a row: after the first failure the client may return for the rest of a stream, which only this account can
 * continue.
 */
const keepsFailing = ({ health }: Candidate, now: number): boolean =>
  isFailing(health, now) && (health.failing?.count ?? 0) >= 2

const bestTier = (pool: readonly Candidate[], now: number): readonly Candidate[] => {
  const healthy = pool.filter((candidate) => isHealthy(candidate, now))
  if (healthy.length === pool.length) return pool
  const probing = pool.filter(({ health }) => health.tier === 'probing')
  if (healthy.length === 0) return probing.length > 0 ? probing : pool
  const due = probing
    .filter(({ lastSelectedAt }) => now - lastSelectedAt >= PROBE_AFTER_MS)
    .sort((a, b) => a.lastSelectedAt - b.lastSelectedAt || (a.id < b.id ? -1 : 1))
  return due.length > 0 ? due.slice(0, 1) : healthy
}

/** For strategies without tiers: accounts that are not failing, plus a probe from time to time. */
const getSteady = (pool: readonly Candidate[], now: number): readonly Candidate[] => {
  const steady = pool.filter(({ health, lastSelectedAt }) => {
    const isDue = health.tier === 'probing' && now - lastSelectedAt >= PROBE_AFTER_MS
    return isHealthy({ health }, now) || (!isFailing(health, now) && (health.errors === 0 || isDue))
  })
  return steady.length > 0 && steady.length < pool.length ? steady : pool
}

const isHealthy = ({ health }: Pick<Candidate, 'health'>, now: number): boolean =>
  health.tier === 'healthy' && !isFailing(health, now) && !hasJustFailed(health, now)

/** After one failure an account comes last for a minute, unless it serves a request in between. */
const hasJustFailed = ({ errors, lacksToken, lastError }: Health, now: number): boolean =>
  errors > 0 && !lacksToken && lastError !== null && now - lastError.at < PROBE_AFTER_MS

const CLASS_ORDER: readonly RoutingPolicy[] = ['burn_first', 'normal', 'preserve']

const bestClass = (pool: readonly Candidate[]): readonly Candidate[] => {
  const best = CLASS_ORDER.find((policy) => pool.some(({ routingPolicy }) => routingPolicy === policy))
  return pool.every(({ routingPolicy }) => routingPolicy === best)
    ? pool
    : pool.filter(({ routingPolicy }) => routingPolicy === best)
}
