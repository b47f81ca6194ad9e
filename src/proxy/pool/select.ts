/**
 * Which account serves a turn, and why. Eligibility, affinity, tiers and choice share one function, so the explanation
 * always matches the decision.
 */
import type { Selection, SkipReason } from '../../model/log/skip-reasons.ts'
import { checkEligibility, listingFor, OWN_WORDS, USABLE, type Verdicts } from './eligibility.ts'
import { heldForForeground } from './opportunistic.ts'
import type { Candidate, PolicyContext } from './policies.ts'
import { choose, isAvoidable, isMove, withIncludedQuota } from './preference.ts'
import { getFailure } from './selection-error.ts'
import { COSTS_NO_ALLOWANCE, type SelectionNeeds } from './selection-needs.ts'

/** Chooses and reports on every candidate, in order. Pure: the same input and random give the same result. */
export const select = (candidates: readonly Candidate[], needs: SelectionNeeds, ctx: PolicyContext): Selection => {
  const verdicts: Verdicts = new Map()
  const listing = listingFor(candidates, needs)
  for (const candidate of candidates) verdicts.set(candidate.id, checkEligibility(candidate, needs, ctx, listing))
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
    return { kind: 'none', failure: getFailure(candidates, considered, needs, ctx), considered }
  }
  const best = choose(eligible, needs, ctx, verdicts)[0]?.id
  const chosen = eligible.find(({ id }) => id === best) ?? eligible[0]! // not empty, and every pool drawn from it is ranked
  const { owner } = needs
  const moved = isMove(owner, chosen.id)
  const moveAvoidable = moved && isAvoidable(chosen, candidates, { owner, ctx, verdicts })
  return { kind: 'chosen', id: chosen.id, moved, moveAvoidable, considered: [...verdicts.values()] }
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
  const foreground = owner?.hard
    ? candidates.map((each) => checkEligibility(each, unowned, ctx, listing))
    : verdicts.values()
  const held = heldForForeground(candidates, { verdicts: foreground, scope, now: ctx.now })
  for (const verdict of verdicts.values())
    if (held.has(verdict.id) && USABLE.has(verdict.skipped))
      Object.assign(verdict, { skipped: 'burn_window_closed', until: null })
  return held
}

const atLimit = (candidates: readonly Candidate[], verdicts: Verdicts): readonly Candidate[] =>
  candidates.filter(({ id }) => AT_LIMIT.has(verdicts.get(id)?.skipped ?? null))

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

/** Accounts with these reasons may serve the model later. */
const WAITING: ReadonlySet<SkipReason | null> = new Set([
  'rate_limited',
  'quota_exceeded',
  'paid_credits_off',
  'reserved',
  ...OWN_WORDS,
  'no_route',
  'model_limited',
  'cooling_down',
  'at_cap',
  'tried',
])

/** Last resort: the account whose cooldown ends first. */
const lastResort = (candidates: readonly Candidate[], ctx: PolicyContext, verdicts: Verdicts): readonly Candidate[] => {
  const cooling = candidates.filter(({ id }) => verdicts.get(id)?.skipped === 'cooling_down')
  const due = (c: Candidate) => c.health.backoffUntil ?? 0
  return withIncludedQuota(cooling, ctx)
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
    (c) => since(c) > ctx.now && checkEligibility({ ...c, rejectedModels: NONE }, needs, ctx, listing).skipped === null,
  )
  return withIncludedQuota(rejected, ctx)
    .toSorted((a, b) => since(a) - since(b) || (a.id < b.id ? -1 : 1))
    .slice(0, 1)
}

const NONE: ReadonlyMap<string, number> = new Map()
