/** Which of the eligible accounts comes first: the owner, then health tier, routing policy and strategy. */
import { type Health, isFailing } from '../../model/accounts/account-health.ts'
import { isExhausted, usedNow, usesPaidCredits } from '../../model/accounts/usage-windows.ts'
import type { Considered, SkipReason } from '../../model/log/skip-reasons.ts'
import type { Verdicts } from './eligibility.ts'
import { isWithinRest, type MovePrices, movePays, priceMoves } from './move-price.ts'
import { bypassesTiers, type Candidate, type PolicyContext, type Ranked, type RoutingPolicy, rank } from './policies.ts'
import type { Owner, SelectionNeeds } from './selection-needs.ts'

/**
 * From this use of the five-hour window on, a move is weighed (percent used, running turns not counted). Below it a
 * conversation always stays. Whether it then moves is decided by the prices of `move-price.ts`.
 */
const WEIGH_PERCENT = 95
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
  const { owner, whyNot } = weighOwners(pool, { named: needs.owner, ctx, verdicts })
  if (whyNot) {
    for (const candidate of pool) verdicts.get(candidate.id)!.skipped = whyNot(candidate) // as above
    pool = pool.filter(({ id }) => verdicts.get(id)?.skipped === null)
  }
  if (!owner && bypassesTiers(ctx.strategy)) pool = narrow(pool, getSteady(pool, ctx.now), 'lower_tier')
  else if (!owner) {
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

/** Reasons that Sluice has for skipping an account that could serve the request. */
const COULD_SERVE: ReadonlySet<SkipReason | null> = new Set([
  'at_cap',
  'reserved',
  'burn_window_closed',
  'paid_credits_last',
])

/**
 * Whether the move to `target` was avoidable: the account with the cache could have served the request, and moving costs
 * more than staying. The log then shows both prices.
 */
export const isAvoidable = (
  target: Candidate,
  candidates: readonly Candidate[],
  { owner, ctx, verdicts }: { owner: Owner | null; ctx: PolicyContext; verdicts: Verdicts },
): boolean => {
  const { lastUse = null } = owner ?? {}
  const home = candidates.find(({ id }) => id === lastUse?.accountId)
  if (!lastUse || !home || lastUse.units <= 0) return false
  const verdict = verdicts.get(home.id)! // all have one
  if (!COULD_SERVE.has(verdict.skipped) || !canServeOn(home, ctx.now)) return false
  const prices = priceMoves(home, lastUse, ctx)
  pays(home, prices, verdict) // puts its price into the log
  return !pays(target, prices, verdicts.get(target.id)!) && isWithinRest(prices.stayPercent) // all have a verdict
}

/** When paid credits come last: accounts with included quota, if any. Otherwise all. */
export const withIncludedQuota = (
  pool: readonly Candidate[],
  { paidCredits, now }: PolicyContext,
): readonly Candidate[] => {
  if (paidCredits !== 'last' || !pool.some(({ usage }) => usesPaidCredits(usage, now))) return pool
  const included = pool.filter(({ usage }) => !usesPaidCredits(usage, now))
  return included.length > 0 ? included : pool
}

interface Weighed {
  /** The owner or its successor if the conversation stays there. */
  owner: Candidate | null
  /** Why the conversation is not served by the account; null: it may be, or there is no owner. */
  whyNot: ((candidate: Candidate) => SkipReason | null) | null
}

const NO_OWNER: Weighed = Object.freeze({ owner: null, whyNot: null })

interface Weighing {
  named: Owner | null
  ctx: PolicyContext
  verdicts: Verdicts
}

/**
 * The conversation may move if the owner and its successor are over budget or failing, and another account is not. If
 * the account with the cache can still serve, the move must also cost less than staying there.
 */
const weighOwners = (eligible: readonly Candidate[], { named, ctx, verdicts }: Weighing): Weighed => {
  if (!named) return NO_OWNER
  const owners: Candidate[] = []
  for (const name of [named.id, named.successor ?? null]) {
    const owner = name === null ? undefined : eligible.find(({ id }) => id === name)
    if (owner && isAlwaysSticky(owner, ctx)) return stayOn(owner)
    if (owner) owners.push(owner)
  }
  const [first] = owners
  if (!first) return NO_OWNER
  const { lastUse } = named
  const home = owners.find(({ id }) => id === lastUse?.accountId)
  const isPriced = lastUse && lastUse.units > 0 && home && canServeOn(home, ctx.now)
  const prices = isPriced ? priceMoves(home, lastUse, ctx) : null
  const stayer = prices && home ? home : first
  const tooDear = prices && eligible.filter((each) => !pays(each, prices, verdicts.get(each.id)!)) // all have a verdict
  const isTooDear = (each: Candidate) => tooDear?.includes(each) === true
  if (!eligible.some((each) => isFit(each, ctx.now) && !isTooDear(each))) return stayOn(stayer, isTooDear)
  const whyNot = (each: Candidate) => {
    if (each === stayer) return null
    if (!isFit(each, ctx.now)) return 'lower_tier'
    return isTooDear(each) ? 'move_costs_more' : null
  }
  return { owner: null, whyNot }
}

const stayOn = (owner: Candidate, isTooDear: (candidate: Candidate) => boolean = () => false): Weighed => ({
  owner,
  whyNot: (each) => (each === owner ? null : isTooDear(each) ? 'move_costs_more' : 'not_owner'),
})

/** Whether a move to the account pays. The log shows the price. */
const pays = (candidate: Candidate, prices: MovePrices, verdict: Considered): boolean => {
  if (candidate.id === prices.homeId) {
    verdict.stayPercent = shownPercent(prices.stayPercent)
    return true
  }
  const movePercent = prices.movePercent(candidate)
  verdict.movePercent = shownPercent(movePercent)
  return movePays(movePercent, prices.stayPercent)
}

const shownPercent = (percent: number | null): number | undefined =>
  percent === null || !Number.isFinite(percent) ? undefined : Math.round(percent * 100) / 100

/** Whether an available owner keeps its conversation whatever the other accounts are like. */
export const isAlwaysSticky = (owner: Candidate, { strategy, now }: PolicyContext): boolean =>
  bypassesTiers(strategy) || isFit(owner, now)

const isFit = (kept: Candidate, now: number): boolean => isUnderBudget(kept, now) && !keepsFailing(kept, now)

const isUnderBudget = ({ usage }: Candidate, now: number): boolean => {
  if (!usage) return true
  return (usedNow(usage.windows.fiveHour, now) ?? 0) < WEIGH_PERCENT && !isExhausted(usage, now).exhausted
}

/** Whether an available account can be expected to serve another request, whatever it costs. */
const canServeOn = (candidate: Candidate, now: number): boolean =>
  !isExhausted(candidate.usage, now).exhausted && !keepsFailing(candidate, now)

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
