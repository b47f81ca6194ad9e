/** Whether an account can serve a request, and if not, why. */
import { isFailing } from '../../model/accounts/account-health.ts'
import { type AccountState, isBlocked, nextState } from '../../model/accounts/account-state.ts'
import { includedQuotaReset, nextReset, usedNow, usesPaidCredits } from '../../model/accounts/usage-windows.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import type { Considered, SkipReason } from '../../model/log/skip-reasons.ts'
import { type Candidate, getLimit, longWindow, type PolicyContext } from './policies.ts'
import { COSTS_NO_ALLOWANCE, type SelectionNeeds } from './selection-needs.ts'

/** The verdict per candidate, in order. One mutable object each, to keep allocations low. */
export type Verdicts = Map<string, Considered>

const getVerdict = (id: string, skipped: SkipReason | null, until: number | null = null): Considered => ({
  id,
  score: null,
  skipped,
  until,
})

/** Whether a known catalog lists the model, none does, or no catalog is known. */
type Listing = 'listed' | 'unlisted' | 'unknown'

const getListing = (candidates: readonly Candidate[], model: string | null): Listing => {
  if (model === null) return 'unknown'
  let listing: Listing = 'unknown'
  for (const { models } of candidates) {
    if (models?.has(model)) return 'listed'
    if (models !== null) listing = 'unlisted'
  }
  return listing
}

/** Only turns are checked against the catalog: it does not list the models of images and audio. */
export const listingFor = (candidates: readonly Candidate[], { model, surface = 'turn' }: SelectionNeeds): Listing =>
  surface === 'turn' ? getListing(candidates, model) : 'unknown'

export const isUnlisted = (candidates: readonly Candidate[], model: string | null): boolean =>
  getListing(candidates, model) === 'unlisted'

/** Reasons that waiting cannot change come first, so that an error names the decisive one. */
export const checkEligibility = (
  candidate: Candidate,
  needs: SelectionNeeds,
  ctx: PolicyContext,
  listing: Listing,
): Considered => {
  const { id } = candidate
  const { owner } = needs
  if (!isInScope(needs.scope, candidate)) return getVerdict(id, 'out_of_scope')
  if (needs.restricted && !candidate.securityWorkAuthorized) return getVerdict(id, 'not_authorized')
  if (owner?.hard && owner.id !== id) return getVerdict(id, owner.isRetried ? 'other_retried' : 'not_owner')
  if (!owner?.hard && ctx.strategy === 'single_account' && ctx.singleAccountId !== null && ctx.singleAccountId !== id) {
    return getVerdict(id, 'policy_class')
  }
  // An expired block must not depend on the timer.
  const state = isBlocked(candidate.state) ? nextState(candidate.state, { kind: 'tick', at: ctx.now }) : candidate.state
  const isPausedButMeant = state.status === 'paused' && owner?.mayBePaused === true
  // narrowed by the two tests before it
  if (state.status !== 'active' && !isBlocked(state) && !isPausedButMeant)
    return getVerdict(id, UNUSABLE[state.status as UnusableStatus])
  const closed = ctx.whyNoRoute(candidate.egressPoolId)
  if (closed) return { ...getVerdict(id, 'no_route', closed.until), egressReason: closed.reason }
  const surface = needs.surface ?? 'turn'
  if (surface === 'image' && candidate.planType === 'free') return getVerdict(id, 'plan_excluded')
  const missingUntil = candidate.missingRoutes.get(surface) ?? 0
  if (missingUntil > ctx.now) return getVerdict(id, 'route_missing', missingUntil)
  const isOffered = needs.model === null || (candidate.models?.has(needs.model) ?? true)
  if (listing === 'listed' && !isOffered) return getVerdict(id, 'model_not_supported')
  const rejectedUntil = candidate.rejectedModels.get(needs.model ?? '') ?? 0
  if (rejectedUntil > ctx.now) return getVerdict(id, 'model_not_supported', rejectedUntil)
  // Waiting for the account would not help: no known catalog has the model.
  if (isBlocked(state) && listing === 'unlisted') return getVerdict(id, 'model_not_supported')
  if (isBlocked(state)) {
    return getVerdict(id, blockReason(state), state.until ?? state.nextCheckAt)
  }
  const limit = getLimit(candidate, needs.model, ctx.now)
  if (limit) return getVerdict(id, 'model_limited', limit.until ?? limit.nextCheckAt)
  if (ctx.paidCredits === 'never' && usesPaidCredits(candidate.usage, ctx.now))
    return getVerdict(id, 'paid_credits_off', includedQuotaReset(candidate.usage, ctx.now))
  const reserved = reservedUntil(candidate, needs.keyOwnerId, ctx.now)
  if (reserved !== undefined) return getVerdict(id, 'reserved', reserved)
  if (needs.tried.has(id)) return getVerdict(id, 'tried')
  const { backoffUntil } = candidate.health
  if (isAtCap(candidate, needs)) return getVerdict(id, 'at_cap')
  if (backoffUntil !== null && backoffUntil > ctx.now) return getVerdict(id, 'cooling_down', backoffUntil)
  return getVerdict(id, null)
}

const isAtCap = ({ inFlight, isFullElsewhere = false }: Candidate, { streamCap }: SelectionNeeds): boolean =>
  streamCap > 0 && (isFullElsewhere || inFlight >= streamCap)

/** Whether an account has quota for a request of any model: it may be busy or cooling down. */
export const canServe = (candidates: readonly Candidate[], needs: SelectionNeeds, ctx: PolicyContext): boolean =>
  candidates.some((candidate) => SERVES.has(checkEligibility(candidate, needs, ctx, 'unknown').skipped))

const SERVES: ReadonlySet<SkipReason | null> = new Set([null, 'at_cap', 'cooling_down'])

/** Whether the request competes for an account's quota as a foreground request. */
export const isForeground = ({
  isOpportunistic,
  surface = 'turn',
}: Pick<SelectionNeeds, 'isOpportunistic' | 'surface'>) =>
  !isOpportunistic && surface !== 'ping' && !COSTS_NO_ALLOWANCE.has(surface)

/** Enough to tell a failing upstream from failing accounts. */
const FAILING_ACCOUNTS = 3

/** Whether the last attempts on three usable accounts, or on all of them, failed and none has served a request since. */
export const isUpstreamFailing = (
  candidates: readonly Candidate[],
  needs: SelectionNeeds,
  ctx: PolicyContext,
): boolean => {
  const listing = listingFor(candidates, needs)
  const usable = candidates.filter((candidate) => USABLE.has(checkEligibility(candidate, needs, ctx, listing).skipped))
  const failing = usable.filter(({ health }) => isFailing(health, ctx.now)).length
  return failing > 0 && failing >= Math.min(FAILING_ACCOUNTS, usable.length)
}

export const USABLE: ReadonlySet<SkipReason | null> = new Set([null, 'cooling_down', 'at_cap'])

/**
 * When the caps that the account has reached end (ms, null: unknown); undefined: it is not reserved for a key of this
 * owner. A cap holds even when no other account is left.
 */
export const reservedUntil = (
  candidate: Candidate,
  keyOwnerId: string | null | undefined,
  now: number,
): number | null | undefined => {
  const { usage, maxUsedPercentPrimary, maxUsedPercentSecondary, exemptOwnerId } = candidate
  if (maxUsedPercentPrimary === null && maxUsedPercentSecondary === null) return undefined
  if (exemptOwnerId !== null && exemptOwnerId === keyOwnerId) return undefined
  const reached = [
    { window: usage?.windows.fiveHour ?? null, cap: maxUsedPercentPrimary },
    { window: longWindow(usage), cap: maxUsedPercentSecondary },
  ].filter(({ window, cap }) => cap !== null && (usedNow(window, now) ?? 0) >= cap)
  if (reached.length === 0) return undefined
  const resets = reached.map(({ window }) => nextReset(window, now))
  return resets.some((reset) => reset === null) ? null : Math.max(...resets.map(Number))
}

/** Limits named by a usage report have their own reason; other blocks use the status. */
const blockReason = ({ cause, status }: AccountState): SkipReason =>
  OWN_WORDS.find((reason) => reason === cause) ?? (status as 'rate_limited' | 'quota_exceeded') // as: the account is blocked

export const OWN_WORDS = ['spend_cap_reached', 'credits_depleted', 'not_allowed'] as const

type UnusableStatus = Exclude<AccountState['status'], 'active' | 'rate_limited' | 'quota_exceeded'>

const UNUSABLE: Record<UnusableStatus, SkipReason> = {
  paused: 'paused',
  reauth_required: 'needs_sign_in',
  deactivated: 'deactivated',
}
