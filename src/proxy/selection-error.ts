/** What a failed selection tells the client: an honest status, the causes counted, and when to come back. */
import { AppError, resetMembers } from '../errors.ts'
import { isBlocked, nextState, plausibleReset } from '../model/account-state.ts'
import { isExhausted } from '../model/usage-windows.ts'
import { type Candidate, limitOf } from './policies.ts'
import type { Considered, SelectionNeeds, SkipReason } from './select.ts'

interface Cause {
  reason: SkipReason
  count: number
  /** The earliest time one of them ends (ms), where known. */
  nextAt: number | null
}

export interface SelectionFailure {
  kind: 'exhausted' | 'restricted' | 'owner' | 'model' | 'unconfigured' | 'other'
  causes: Cause[]
  /** The earliest known time at which an account may serve again (ms). */
  nextAt: number | null
  /** Of an exhausted pool: the plan and the true reset (ms) of the account that is back first. */
  planType: string | null
  resetsAt: number | null
  model: string | null
  /** Whether this is about the one account that owns the conversation. */
  ownerOnly: boolean
}

/** Also where nobody knows when an account is back. */
export const LONGEST_WAIT_SECONDS = 60

/** Reasons that wait for a person or another request, not for time: such accounts were no candidates for this one. */
const NOT_CANDIDATES: ReadonlySet<SkipReason> = new Set([
  'out_of_scope',
  'paused',
  'needs_sign_in',
  'deactivated',
  'not_authorized',
  'model_not_supported',
  'not_owner',
  'other_retried',
  'policy_class',
])

/** Why nothing could be chosen. `considered` is the report of the same selection. */
export const failureOf = (
  candidates: readonly Candidate[],
  considered: readonly Considered[],
  needs: SelectionNeeds,
  ctx: { now: number },
): SelectionFailure => {
  const causes = countCauses(considered)
  const reasons = new Map(considered.map(({ id, skipped }) => [id, skipped]))
  const able = candidates.filter(({ id }) => !NOT_CANDIDATES.has(reasons.get(id) ?? 'tried'))
  const paidOff = new Map(considered.flatMap((each) => (each.skipped === 'paid_credits_off' ? [[each.id, each]] : [])))
  const resets = able.map((candidate) => {
    const { id, planType } = candidate
    const resetsAt = paidOff.get(id)?.until
    return resetsAt === undefined ? exhaustionOf(candidate, needs.model, ctx.now) : { planType, resetsAt }
  })
  const isExhaustedPool = able.length > 0 && resets.every((reset) => reset !== null)
  const first = earliest(resets)
  return {
    kind: kindOf(candidates, causes, needs, isExhaustedPool),
    causes,
    nextAt: minKnown(causes.map(({ nextAt }) => nextAt)),
    planType: isExhaustedPool ? (first?.planType ?? null) : null,
    resetsAt: isExhaustedPool ? (first?.resetsAt ?? null) : null,
    model: needs.model,
    ownerOnly: needs.owner?.hard ?? false,
  }
}

/**
 * The error for a failed selection (decisions §3): 429 `usage_limit_reached` with the true reset when every account is used up,
 * else 503 with a code, counted causes and always `Retry-After` (1…60 s), without which the native client asks thirty times.
 */
export const selectionError = (failure: SelectionFailure, now: number): AppError => {
  const retryAfterSeconds = retryAfter(failure.nextAt, now)
  const because = describeCauses(failure.causes, now)
  const explain = (sentence: string) => (because ? `${sentence} (${because})` : sentence)
  switch (failure.kind) {
    case 'exhausted':
      return exhaustedError(failure, now, retryAfterSeconds)
    case 'restricted':
      return new AppError('no_security_work_authorized_accounts', {
        message: explain('No account authorised for this work is available.'),
        retryAfterSeconds,
      })
    case 'owner':
      return new AppError('continuity_owner_unavailable', {
        message: explain('The account that owns this conversation is not available now.'),
        retryAfterSeconds,
      })
    case 'model':
      return new AppError('no_accounts', {
        message: explain(`No account offers the model '${failure.model}'.`),
        param: 'model',
        retryAfterSeconds,
      })
    case 'unconfigured':
      return new AppError('no_accounts', {
        message: 'No account has been added to this service yet.',
        retryAfterSeconds,
      })
    case 'other':
      return new AppError('no_accounts', {
        message: explain('No account can serve this request now.'),
        retryAfterSeconds,
      })
  }
}

const kindOf = (
  candidates: readonly Candidate[],
  causes: readonly Cause[],
  needs: SelectionNeeds,
  isExhaustedPool: boolean,
): SelectionFailure['kind'] => {
  if (needs.restricted) return 'restricted'
  if (isExhaustedPool) return 'exhausted'
  if (needs.owner?.hard) return 'owner'
  if (candidates.length === 0) return 'unconfigured'
  const inScope = causes.filter(({ reason }) => reason !== 'out_of_scope')
  const lacksModel = inScope.some(({ reason }) => reason === 'model_not_supported')
  const couldServe = inScope.some(({ reason }) => reason !== 'model_not_supported')
  return lacksModel && !couldServe ? 'model' : 'other'
}

interface Reset {
  planType: string
  resetsAt: number | null
}

/** The account's exhaustion when there is evidence for it, of its own allowance or of the model's; a passing rate limit is none. */
const exhaustionOf = (candidate: Candidate, model: string | null, now: number): Reset | null => {
  const { state: last, usage, planType } = candidate
  const state = nextState(last, { kind: 'tick', at: now })
  if (!isBlocked(state)) {
    const limit = limitOf(candidate, model, now)
    return limit && { planType, resetsAt: limit.until }
  }
  const seen = isExhausted(usage, now)
  const isUsedUp = state.status === 'quota_exceeded' || state.cause === 'usage_limit_reached' || seen.exhausted
  return isUsedUp ? { planType, resetsAt: plausibleReset(state.until ?? seen.resetAt, now) } : null
}

const earliest = (resets: readonly (Reset | null)[]): Reset | null =>
  resets.reduce((best, reset) => {
    if (!reset) return best
    if (!best) return reset
    return (reset.resetsAt ?? Number.POSITIVE_INFINITY) < (best.resetsAt ?? Number.POSITIVE_INFINITY) ? reset : best
  }, null)

const exhaustedError = (failure: SelectionFailure, now: number, retryAfterSeconds: number): AppError => {
  const { resetsAt, planType, ownerOnly, causes } = failure
  const which = causes.some(({ reason }) => reason === 'model_limited') ? 'usage limit for this model' : 'usage limit'
  const subject = ownerOnly
    ? `The account that owns this conversation has reached its ${which}`
    : `All accounts have reached their ${which}`
  return new AppError('usage_limit_reached', {
    // At "will reset at" LangChain for JavaScript gives up; otherwise it sits out six waits of a minute without a word.
    message: resetsAt === null ? `${subject}.` : `${subject}; it will reset at ${clockTime(resetsAt, now)}.`,
    envelope: {
      plan_type: planType,
      ...(resetsAt !== null && resetMembers(resetsAt, now)),
    },
    retryAfterSeconds,
  })
}

const countCauses = (considered: readonly Considered[]): Cause[] => {
  const causes = new Map<SkipReason, Cause>()
  for (const { skipped, until } of considered) {
    if (!skipped) continue
    const cause = causes.get(skipped) ?? { reason: skipped, count: 0, nextAt: null }
    causes.set(skipped, { ...cause, count: cause.count + 1, nextAt: minKnown([cause.nextAt, until]) })
  }
  return [...causes.values()]
}

/** How a cause reads after its count; those that are no concern of the client (another key's accounts) are left out. */
const PHRASES: Record<SkipReason, string | null> = {
  cooling_down: 'cooling down',
  rate_limited: 'rate limited',
  quota_exceeded: 'out of quota',
  spend_cap_reached: 'at its spend cap',
  credits_depleted: 'out of workspace credits',
  not_allowed: 'not allowed to send requests',
  paid_credits_off: 'out of included quota',
  model_limited: 'out of this model’s allowance',
  at_cap: 'at the limit of parallel streams',
  tried: 'failed in this request',
  paused: 'paused',
  needs_sign_in: 'needs sign-in',
  deactivated: 'deactivated',
  model_not_supported: 'without this model',
  not_authorized: 'not authorised for this work',
  policy_class: 'not the one account that the routing strategy names', // the other use of it always leaves somebody
  out_of_scope: null,
  not_owner: null,
  other_retried: null,
  paid_credits_last: null,
  lower_tier: null,
}

const describeCauses = (causes: readonly Cause[], now: number): string => {
  const parts: string[] = []
  for (const [reason, phrase] of Object.entries(PHRASES)) {
    const cause = causes.find((each) => each.reason === reason)
    if (!cause || !phrase) continue
    const next = cause.nextAt !== null && cause.nextAt > now ? `, next at ${clockTime(cause.nextAt, now)}` : ''
    parts.push(`${cause.count} ${phrase}${next}`)
  }
  return parts.join('; ')
}

/** Rounded up: who comes back at the time shown must not be too early. */
const clockTime = (at: number, now: number): string => {
  const iso = new Date(Math.ceil(at / 1000) * 1000).toISOString()
  const time = `${iso.slice(11, 19)} UTC`
  return at - now < 86_400_000 ? time : `${iso.slice(0, 10)} ${time}`
}

const retryAfter = (nextAt: number | null, now: number): number =>
  nextAt === null ? LONGEST_WAIT_SECONDS : Math.min(LONGEST_WAIT_SECONDS, Math.max(1, Math.ceil((nextAt - now) / 1000)))

const minKnown = (times: readonly (number | null)[]): number | null =>
  times.reduce((least, time) => (time === null || (least !== null && least <= time) ? least : time), null)
