/**
 * Which account serves a turn, and why. Eligibility, affinity, tiers and choice share one function, so the explanation
 * always matches the decision.
 */
import { type Health, isFailing } from '../model/account-health.ts'
import { isBlocked, nextState } from '../model/account-state.ts'
import { isInScope, type KeyScope } from '../model/key-scope.ts'
import type { SkipReason } from '../model/skip-reasons.ts'
import { includedQuotaReset, isExhausted, usedNow, usesPaidCredits } from '../model/usage-windows.ts'
import {
  bypassesTiers,
  type Candidate,
  limitOf,
  type PolicyContext,
  type Ranked,
  type RoutingPolicy,
  rank,
} from './policies.ts'
import { reservedUntil } from './pool/caps.ts'
import { heldForForeground } from './pool/opportunistic.ts'
import { blockReason, OWN_WORDS, UNUSABLE, type UnusableStatus } from './pool/state-reasons.ts'
import { failureOf, type SelectionFailure } from './selection-error.ts'

export { selectionError } from './selection-error.ts'

/** The account that owns the conversation. With `hard`, no other may serve it. */
export interface Owner {
  id: string
  hard: boolean
  /** It has files that the request names. */
  hasFiles?: boolean
  /** Not an owner but the account of the last attempt, which is retried before any other. */
  isRetried?: boolean
  /** The account the conversation moved to from the owner: second choice. */
  heir?: string | null
}

/** What a request does with an account: `turn` is a model request, every other surface is relayed (`relay/relay.ts`). */
export type Surface = 'turn' | 'image' | 'file' | 'audio' | 'control' | 'live' | 'ping'

export interface SelectionNeeds {
  model: string | null
  /** `turn` when absent. */
  surface?: Surface
  /** Accounts this request has already failed on. */
  tried: ReadonlySet<string>
  /** Accounts the API key may use; null = all. */
  scope: KeyScope
  owner: Owner | null
  /** Only accounts authorised for security work. */
  restricted: boolean
  /** From a key of the traffic class `opportunistic`. */
  isOpportunistic?: boolean
  /** The owner of the request's key, who may be exempt from the caps of their account. */
  keyOwnerId?: string | null
  /** Concurrent turns per account, 0 = unlimited. */
  streamCap: number
}

export interface Considered {
  id: string
  /** The strategy's score; null when not ranked. */
  score: number | null
  /** Null for the chosen account and those ranked after it. */
  skipped: SkipReason | null
  /** When the reason ends (ms), if known. */
  until: number | null
  /** Whole days until its reset, if that took precedence over the score. */
  resetDays?: number
}

export type Selection =
  /** `moved`: the conversation left its soft owner. */
  | { kind: 'chosen'; id: string; moved: boolean; considered: Considered[] }
  /** Only caps prevent a choice: wait for a turn to end. */
  | { kind: 'wait'; considered: Considered[] }
  | { kind: 'none'; failure: SelectionFailure; considered: Considered[] }

/**
 * At this use of the five-hour window, conversations move to an account below it (percent used, running turns not
 * counted).
 */
const STICKY_PERCENT = 95
/** A probing account unused for this long gets one turn before healthy ones. */
const PROBE_AFTER_MS = 60_000

/** Chooses and reports on every candidate, in order. Pure: the same input and random give the same result. */
export const select = (candidates: readonly Candidate[], needs: SelectionNeeds, ctx: PolicyContext): Selection => {
  const verdicts: Verdicts = new Map()
  const listing = listingFor(candidates, needs)
  for (const candidate of candidates) verdicts.set(candidate.id, judge(candidate, needs, ctx, listing))
  const held = needs.isOpportunistic ? holdForForeground(candidates, needs, ctx, verdicts) : NONE_HELD

  let eligible: readonly Candidate[] = candidates.filter(({ id }) => verdicts.get(id)?.skipped === null)
  if (eligible.length === 0 && COSTS_NO_ALLOWANCE.has(needs.surface ?? 'turn')) eligible = atLimit(candidates, verdicts)
  if (eligible.length === 0) {
    if (candidates.some(({ id }) => verdicts.get(id)?.skipped === 'at_cap')) {
      return { kind: 'wait', considered: [...verdicts.values()] }
    }
    eligible = lastResort(candidates, ctx, verdicts)
    if (eligible.length === 0)
      eligible = mayHaveModel(candidates, needs, ctx, verdicts).filter(({ id }) => !held.has(id))
  }
  if (eligible.length === 0) {
    const considered = [...verdicts.values()]
    return { kind: 'none', failure: failureOf(candidates, considered, needs, ctx), considered }
  }
  const ranked = choose(eligible, needs, ctx, verdicts)
  const best = ranked[0]?.id ?? eligible[0]!.id // eligible is not empty, and every pool drawn from it is ranked
  return { kind: 'chosen', id: best, moved: isMove(needs.owner, best), considered: [...verdicts.values()] }
}

/** Whether an account has quota for a request of any model: it may be busy or cooling down. */
export const canServe = (candidates: readonly Candidate[], needs: SelectionNeeds, ctx: PolicyContext): boolean =>
  candidates.some((candidate) => SERVES.has(judge(candidate, needs, ctx, 'unknown').skipped))

const SERVES: ReadonlySet<SkipReason | null> = new Set([null, 'at_cap', 'cooling_down'])

/** Whether serving on `id` moves the conversation away from its owner and heir. */
export const isMove = (owner: Owner | null, id: string): boolean =>
  owner !== null && owner.id !== id && owner.heir !== id

/** The verdict per candidate, in order. One mutable object each, to keep allocations low. */
type Verdicts = Map<string, Considered>

const verdictOf = (id: string, skipped: SkipReason | null, until: number | null = null): Considered => ({
  id,
  score: null,
  skipped,
  until,
})

/** Whether a known catalog lists the model, none does, or no catalog is known. */
type Listing = 'listed' | 'unlisted' | 'unknown'

const listingOf = (candidates: readonly Candidate[], model: string | null): Listing => {
  if (model === null) return 'unknown'
  let listing: Listing = 'unknown'
  for (const { models } of candidates) {
    if (models?.has(model)) return 'listed'
    if (models !== null) listing = 'unlisted'
  }
  return listing
}

const NONE_HELD: ReadonlySet<string> = new Set()

/**
 * Returns the accounts that only foreground requests may use, and says so of those that could serve now or soon. Which
 * accounts serve foreground requests does not depend on the owner of this request.
 */
const holdForForeground = (
  candidates: readonly Candidate[],
  needs: SelectionNeeds,
  ctx: PolicyContext,
  verdicts: Verdicts,
): ReadonlySet<string> => {
  const { owner, scope, surface = 'turn' } = needs
  if (COSTS_NO_ALLOWANCE.has(surface)) return NONE_HELD
  const listing = listingFor(candidates, needs)
  const unowned = { ...needs, owner: null }
  const foreground = owner?.hard ? candidates.map((each) => judge(each, unowned, ctx, listing)) : verdicts.values()
  const held = heldForForeground(candidates, { verdicts: foreground, scope, now: ctx.now })
  for (const verdict of verdicts.values())
    if (held.has(verdict.id) && USABLE.has(verdict.skipped))
      Object.assign(verdict, { skipped: 'burn_window_closed', until: null })
  return held
}

/** Only turns are checked against the catalog: it does not list the models of images and audio. */
const listingFor = (candidates: readonly Candidate[], { model, surface = 'turn' }: SelectionNeeds): Listing =>
  surface === 'turn' ? listingOf(candidates, model) : 'unknown'

/** Requests of these surfaces use little or nothing of an account's allowance, so one that is at its limit can serve them. */
const COSTS_NO_ALLOWANCE: ReadonlySet<Surface> = new Set(['control', 'file'])

/** Whether the request competes for an account's quota as a foreground request. */
export const isForeground = ({
  isOpportunistic,
  surface = 'turn',
}: Pick<SelectionNeeds, 'isOpportunistic' | 'surface'>) =>
  !isOpportunistic && surface !== 'ping' && !COSTS_NO_ALLOWANCE.has(surface)

const atLimit = (candidates: readonly Candidate[], verdicts: Verdicts): readonly Candidate[] =>
  candidates.filter(({ id }) => AT_LIMIT.has(verdicts.get(id)?.skipped ?? null))

export const isUnlisted = (candidates: readonly Candidate[], model: string | null): boolean =>
  listingOf(candidates, model) === 'unlisted'

/** Reasons that waiting cannot change come first, so that an error names the decisive one. */
const judge = (candidate: Candidate, needs: SelectionNeeds, ctx: PolicyContext, listing: Listing): Considered => {
  const { id } = candidate
  const { owner } = needs
  if (!isInScope(needs.scope, candidate)) return verdictOf(id, 'out_of_scope')
  if (needs.restricted && !candidate.securityWorkAuthorized) return verdictOf(id, 'not_authorized')
  if (owner?.hard && owner.id !== id) return verdictOf(id, owner.isRetried ? 'other_retried' : 'not_owner')
  if (!owner?.hard && ctx.strategy === 'single_account' && ctx.singleAccountId !== null && ctx.singleAccountId !== id) {
    return verdictOf(id, 'policy_class')
  }
  // An expired block must not depend on the timer.
  const state = isBlocked(candidate.state) ? nextState(candidate.state, { kind: 'tick', at: ctx.now }) : candidate.state
  // narrowed by the two tests before it
  if (state.status !== 'active' && !isBlocked(state)) return verdictOf(id, UNUSABLE[state.status as UnusableStatus])
  const surface = needs.surface ?? 'turn'
  if (surface === 'image' && candidate.planType === 'free') return verdictOf(id, 'plan_excluded')
  const missingUntil = candidate.missingRoutes.get(surface) ?? 0
  if (missingUntil > ctx.now) return verdictOf(id, 'route_missing', missingUntil)
  const isOffered = needs.model === null || (candidate.models?.has(needs.model) ?? true)
  if (listing === 'listed' && !isOffered) return verdictOf(id, 'model_not_supported')
  const rejectedUntil = candidate.rejectedModels.get(needs.model ?? '') ?? 0
  if (rejectedUntil > ctx.now) return verdictOf(id, 'model_not_supported', rejectedUntil)
  // Waiting for the account would not help: no known catalog has the model.
  if (isBlocked(state) && listing === 'unlisted') return verdictOf(id, 'model_not_supported')
  if (isBlocked(state)) {
    return verdictOf(id, blockReason(state), state.until ?? state.nextCheckAt)
  }
  const limit = limitOf(candidate, needs.model, ctx.now)
  if (limit) return verdictOf(id, 'model_limited', limit.until ?? limit.nextCheckAt)
  if (ctx.paidCredits === 'never' && usesPaidCredits(candidate.usage, ctx.now))
    return verdictOf(id, 'paid_credits_off', includedQuotaReset(candidate.usage, ctx.now))
  const reserved = reservedUntil(candidate, needs.keyOwnerId, ctx.now)
  if (reserved !== undefined) return verdictOf(id, 'reserved', reserved)
  if (needs.tried.has(id)) return verdictOf(id, 'tried')
  const { backoffUntil } = candidate.health
  if (isAtCap(candidate, needs)) return verdictOf(id, 'at_cap')
  if (backoffUntil !== null && backoffUntil > ctx.now) return verdictOf(id, 'cooling_down', backoffUntil)
  return verdictOf(id, null)
}

const AT_LIMIT: ReadonlySet<SkipReason | null> = new Set([
  'rate_limited',
  'quota_exceeded',
  'spend_cap_reached',
  'credits_depleted',
  'model_limited',
  'paid_credits_off',
  'reserved',
  'at_cap',
])

const isAtCap = ({ inFlight }: Candidate, { streamCap }: SelectionNeeds): boolean =>
  streamCap > 0 && inFlight >= streamCap

/** Accounts with these reasons may serve the model later. */
const WAITING: ReadonlySet<SkipReason | null> = new Set([
  'rate_limited',
  'quota_exceeded',
  'paid_credits_off',
  'reserved',
  ...OWN_WORDS,
  'model_limited',
  'cooling_down',
  'at_cap',
  'tried',
])

/** Last resort: the account whose cooldown ends first. */
const lastResort = (candidates: readonly Candidate[], ctx: PolicyContext, verdicts: Verdicts): readonly Candidate[] => {
  const cooling = candidates.filter(({ id }) => verdicts.get(id)?.skipped === 'cooling_down')
  const due = (c: Candidate) => c.health.backoffUntil ?? 0
  return unpaid(cooling, ctx)
    .toSorted((a, b) => due(a) - due(b) || (a.id < b.id ? -1 : 1))
    .slice(0, 1)
}

/**
 * When every account has rejected the model, the one that did so first gets one attempt, because ChatGPT's answer may
 * have changed. Accounts unusable for other models get none.
 */
const mayHaveModel = (
  candidates: readonly Candidate[],
  needs: SelectionNeeds,
  ctx: PolicyContext,
  verdicts: Verdicts,
): readonly Candidate[] => {
  const isWaiting = candidates.some(({ id }) => WAITING.has(verdicts.get(id)?.skipped ?? null))
  if (isWaiting || needs.tried.size > 0) return []
  const listing = listingFor(candidates, needs)
  const since = ({ rejectedModels }: Candidate) => rejectedModels.get(needs.model ?? '') ?? 0
  const rejected = candidates.filter(
    (c) => since(c) > ctx.now && judge({ ...c, rejectedModels: NONE }, needs, ctx, listing).skipped === null,
  )
  return unpaid(rejected, ctx)
    .toSorted((a, b) => since(a) - since(b) || (a.id < b.id ? -1 : 1))
    .slice(0, 1)
}

const NONE: ReadonlyMap<string, number> = new Map()

/** Narrows the eligible to owner, tier and class, ranks the rest, and writes reasons into `verdicts`. */
const choose = (
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
  let pool = narrow(eligible, unpaid(eligible, ctx), 'paid_credits_last')
  const owner = keptOwner(pool, needs, ctx)
  if (owner) pool = narrow(pool, [owner], 'not_owner')
  else if (bypassesTiers(ctx.strategy)) pool = narrow(pool, steadyOf(pool, ctx.now), 'lower_tier')
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

/** When paid credits come last: accounts with included quota, if any. Otherwise all. */
const unpaid = (pool: readonly Candidate[], { paidCredits, now }: PolicyContext): readonly Candidate[] => {
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
  const isFit = (kept: Candidate) => isUnderBudget(kept, ctx.now) && !keepsFailing(kept, ctx.now)
  const mayStay = (kept: Candidate) =>
    bypassesTiers(ctx.strategy) || isFit(kept) || !eligible.some((other) => isFit(other))
  for (const name of [owner.id, owner.heir]) {
    const kept = eligible.find(({ id }) => id === name)
    if (kept && mayStay(kept)) return kept
  }
  return null
}

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

/** Enough to tell a failing upstream from failing accounts. */
const FAILING_ACCOUNTS = 3

/** Whether the last attempts on three usable accounts, or on all of them, failed and none has served a request since. */
export const isUpstreamFailing = (
  candidates: readonly Candidate[],
  needs: SelectionNeeds,
  ctx: PolicyContext,
): boolean => {
  const listing = listingFor(candidates, needs)
  const usable = candidates.filter((candidate) => USABLE.has(judge(candidate, needs, ctx, listing).skipped))
  const failing = usable.filter(({ health }) => isFailing(health, ctx.now)).length
  return failing > 0 && failing >= Math.min(FAILING_ACCOUNTS, usable.length)
}

const USABLE: ReadonlySet<SkipReason | null> = new Set([null, 'cooling_down', 'at_cap'])

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
const steadyOf = (pool: readonly Candidate[], now: number): readonly Candidate[] => {
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
