/** The error for a failed selection: status, counted causes, and when to retry. */
import { AppError, type ErrorExtra, resetMembers } from '../../errors.ts'
import { type AccountState, isBlocked, nextState, plausibleReset } from '../../model/accounts/account-state.ts'
import { isExhausted } from '../../model/accounts/usage-windows.ts'
import type { EgressReason } from '../../model/egress/route.ts'
import { OWNER_AT_LIMIT } from '../../model/log/request-result.ts'
import {
  type Cause,
  type Considered,
  type Rejection,
  type SelectionFailure,
  SKIP_REASONS,
  type SkipReason,
  skipCount,
} from '../../model/log/skip-reasons.ts'
import { isWorkspaceLimit, REACHED_TYPE_HEADER } from '../exchange/upstream-failure.ts'
import { getUpstreamMessage } from '../turn/penalties.ts'
import { type Candidate, getLimit } from './policies.ts'
import type { SelectionNeeds } from './selection-needs.ts'

/** Also used when no time is known. */
export const LONGEST_WAIT_SECONDS = 60

/** Reasons that need an operator or another request: such accounts were no candidates. */
const NOT_CANDIDATES: ReadonlySet<SkipReason> = new Set([
  'out_of_scope',
  'paused',
  'needs_sign_in',
  'deactivated',
  'not_authorized',
  'model_not_supported',
  'plan_excluded',
  'route_missing',
  'not_owner',
  'other_retried',
  'policy_class',
])

/** Sluice is set not to use the rest of the account's quota before the reset. */
const HELD_BACK: ReadonlySet<SkipReason | null> = new Set(['paid_credits_off', 'reserved'])

/** Why nothing could be chosen. `considered` comes from the same selection. */
export const getFailure = (
  candidates: readonly Candidate[],
  considered: readonly Considered[],
  needs: SelectionNeeds,
  ctx: { now: number },
): SelectionFailure => {
  const causes = countCauses(considered)
  const reasons = new Map(considered.map(({ id, skipped }) => [id, skipped]))
  const withoutRoute = new Set(
    considered.flatMap(({ id, egressReason, until }) => (egressReason && until === null ? [id] : [])),
  )
  const able = candidates.filter(({ id }) => !NOT_CANDIDATES.has(reasons.get(id) ?? 'tried') && !withoutRoute.has(id))
  const heldBack = new Map(considered.flatMap((each) => (HELD_BACK.has(each.skipped) ? [[each.id, each]] : [])))
  const exhausted = able.flatMap((candidate) => {
    const resetsAt = heldBack.get(candidate.id)?.until
    return (
      (resetsAt === undefined ? getExhaustion(candidate, needs.model, ctx.now) : { resetsAt, rejection: null }) ?? []
    )
  })
  const isExhaustedPool = able.length > 0 && exhausted.length === able.length
  return {
    kind: getKind(candidates, causes, needs, isExhaustedPool),
    causes,
    nextAt: minKnown(causes.map(({ nextAt }) => nextAt)),
    needsOperator: able.length === 0,
    resetsAt: isExhaustedPool ? minKnown(exhausted.map(({ resetsAt }) => resetsAt)) : null,
    sharedRejection: isExhaustedPool ? sharedRejection(exhausted) : null,
    model: needs.model,
    ownerOnly: needs.owner?.hard ?? false,
  }
}

/**
 * The error for a failed selection (decisions §3): 429 `usage_limit_reached` with the reset time when every account is
 * used up, otherwise 503 with a code and counted causes. Temporary failures always have `Retry-After` (1 to 60 s),
 * without which the native client retries thirty times; those that need an operator have none and say that retrying is
 * pointless.
 */
export const selectionError = (failure: SelectionFailure, now: number): AppError => {
  const wait: ErrorExtra = failure.needsOperator
    ? { shouldRetry: false }
    : { retryAfterSeconds: retryAfter(failure.nextAt, now) }
  const because = describeCauses(failure.causes, now)
  const explain = (sentence: string, advice = REPAIR) =>
    `${sentence}${because && ` (${because})`}.${failure.needsOperator ? ` ${advice}` : ''}`
  switch (failure.kind) {
    case 'exhausted':
      return exhaustedError(failure, now, wait)
    case 'restricted':
      return new AppError('no_security_work_authorized_accounts', {
        message: explain('No account authorized for security work is available'),
        ...wait,
      })
    case 'files':
      return new AppError('file_owner_unavailable', {
        message: explain('The account that has the uploaded file is not available', UPLOAD_AGAIN),
        ...wait,
      })
    case 'owner':
      return new AppError('continuity_owner_unavailable', {
        message: explain('The account that owns this conversation is not available', `${REPAIR} ${NEW_CONVERSATION}`),
        ...wait,
      })
    case 'model':
      return new AppError('no_accounts', {
        message: explain(`No account offers the model '${failure.model}'`, 'Choose another model.'),
        param: 'model',
        ...wait,
      })
    case 'plan':
      return new AppError('no_plan_support_for_model', {
        message: explain(`No account has a plan for the model '${failure.model}'`, 'Add an account on a paid plan.'),
        param: 'model',
        headers: { 'x-should-retry': 'false' },
      })
    case 'opportunistic':
      return burnWindowClosed(failure, now)
    case 'unconfigured':
      return new AppError('no_accounts', {
        message: 'No ChatGPT account has been added to Sluice yet. Add one in the dashboard.',
        ...wait,
      })
    case 'unassigned':
      return new AppError('no_accounts', {
        message: 'This API key has no accounts. Assign accounts to it in the Sluice dashboard.',
        ...wait,
      })
    case 'other':
      return new AppError('no_accounts', { message: explain('No account is available'), ...wait })
  }
}

/** The rejection of an opportunistic key while accounts are kept for foreground requests. */
export const burnWindowClosed = ({ causes }: SelectionFailure, now: number): AppError =>
  new AppError('rate_limit_exceeded', {
    message: `opportunistic burn window closed: ${describeCauses(causes, now) || 'no account is available'}.`,
    retryAfterSeconds: LONGEST_WAIT_SECONDS,
  })

const REPAIR = "Retrying won't help until this is fixed in the Sluice dashboard."
const UPLOAD_AGAIN = 'Upload the file again.'
const NEW_CONVERSATION = 'A new conversation can use another account.'

const getKind = (
  candidates: readonly Candidate[],
  causes: readonly Cause[],
  needs: SelectionNeeds,
  isExhaustedPool: boolean,
): SelectionFailure['kind'] => {
  if (causes.some(({ reason }) => reason === 'burn_window_closed')) return 'opportunistic'
  if (needs.restricted) return 'restricted'
  if (isExhaustedPool && needs.surface !== 'file') return 'exhausted'
  if (needs.owner?.hasFiles) return 'files'
  if (needs.owner?.hard) return 'owner'
  if (candidates.length === 0) return 'unconfigured'
  const inScope = causes.filter(({ reason }) => reason !== 'out_of_scope')
  if (inScope.length === 0) return 'unassigned'
  if (inScope.every(({ reason }) => reason === 'plan_excluded' || reason === 'route_missing')) return 'plan'
  const lacksModel = inScope.some(({ reason }) => reason === 'model_not_supported')
  const couldServe = inScope.some(({ reason }) => reason !== 'model_not_supported')
  return lacksModel && !couldServe ? 'model' : 'other'
}

interface Exhaustion {
  resetsAt: number | null
  rejection: Rejection | null
}

/**
 * When the account's own or the model's allowance resets, if there is evidence that it is used up; a temporary rate
 * limit is none.
 */
const getExhaustion = (candidate: Candidate, model: string | null, now: number): Exhaustion | null => {
  const { state: last, usage } = candidate
  const state = nextState(last, { kind: 'tick', at: now })
  if (!isBlocked(state)) {
    const limit = getLimit(candidate, model, now)
    return limit && { resetsAt: limit.until, rejection: null }
  }
  const seen = isExhausted(usage, now)
  const isUsedUp = state.status === 'quota_exceeded' || state.cause === 'usage_limit_reached' || seen.exhausted
  if (!isUsedUp) return null
  return { resetsAt: plausibleReset(state.until ?? seen.resetAt, now), rejection: getRejection(state) }
}

/** Null when the account only reached its usage limit, or the upstream's message is unknown. */
const getRejection = ({ status, cause, evidence }: AccountState): Rejection | null => {
  if (status !== 'quota_exceeded' || cause === null) return null
  // A usage report names a workspace limit without a message; `cause` is then Sluice's own code.
  const code = /\bworkspace_[a-z_]+\b/.exec(evidence ?? '')?.[0] ?? cause
  const message = getUpstreamMessage(evidence, code) ?? (isWorkspaceLimit(code) ? WORKSPACE_LIMIT : null)
  return message === null ? null : { code, message }
}

const WORKSPACE_LIMIT = "A limit of the accounts' workspace has been reached."

const sharedRejection = (exhausted: readonly Exhaustion[]): Rejection | null => {
  const first = exhausted[0]?.rejection ?? null
  return exhausted.every(({ rejection }) => rejection?.code === first?.code) ? first : null
}

const exhaustedError = (failure: SelectionFailure, now: number, wait: ErrorExtra): AppError => {
  const { resetsAt, ownerOnly, causes, sharedRejection: shared } = failure
  const envelope = resetsAt === null ? {} : resetMembers(resetsAt, now)
  if (shared) return new AppError('usage_limit_reached', { ...asRejected(shared), envelope, ...wait })
  const which = causes.some(({ reason }) => reason === 'model_limited') ? 'usage limit for this model' : 'usage limit'
  const isReserved = causes.some(({ reason }) => reason === 'reserved')
  const reached = ownerOnly ? `${OWNER_AT_LIMIT} ${which}` : `All accounts have reached their ${which}`
  const subject = isReserved ? `${reached} or are reserved (${describeCauses(causes, now)})` : reached
  return new AppError('usage_limit_reached', {
    // LangChain for JavaScript gives up at "will reset at"; otherwise it silently waits six times a minute.
    message: resetsAt === null ? `${subject}.` : `${subject}; it will reset at ${clockTime(resetsAt, now)}.`,
    envelope,
    ...wait,
  })
}

/** The native client has its own texts for these types, and for workspace limits by header (Codex CLI 0.169). */
const asRejected = ({ code, message }: Rejection): ErrorExtra => ({
  message,
  upstream: { code, type: NATIVE_TYPES.has(code) ? code : 'usage_limit_reached' },
  ...(isWorkspaceLimit(code) && { headers: { [REACHED_TYPE_HEADER]: code } }),
})

const NATIVE_TYPES: ReadonlySet<string> = new Set(['usage_not_included', 'insufficient_quota'])

const countCauses = (considered: readonly Considered[]): Cause[] => {
  const causes = new Map<SkipReason, Cause>()
  for (const { skipped, until, egressReason } of considered) {
    if (!skipped) continue
    const cause = causes.get(skipped) ?? {
      reason: skipped,
      count: 0,
      nextAt: null,
      egressReasons: new Set<EgressReason>(),
    }
    // The time of the next attempt with the model says nothing about when the account has it.
    const endsAt = skipped === 'model_not_supported' ? null : until
    const egressReasons = egressReason ? new Set([...cause.egressReasons, egressReason]) : cause.egressReasons
    causes.set(skipped, { ...cause, count: cause.count + 1, nextAt: minKnown([cause.nextAt, endsAt]), egressReasons })
  }
  return [...causes.values()]
}

const describeCauses = (causes: readonly Cause[], now: number): string => {
  const order = Object.keys(SKIP_REASONS)
  const sorted = causes.toSorted((a, b) => order.indexOf(a.reason) - order.indexOf(b.reason))
  const parts = sorted.flatMap(({ reason, count, nextAt, egressReasons }) => {
    const counted = skipCount(reason, count)
    if (counted === null) return []
    const text = egressReasons.size === 0 ? counted : `${counted}: ${[...egressReasons].join(', ')}`
    return nextAt !== null && nextAt > now ? `${text}, next at ${clockTime(nextAt, now)}` : text
  })
  return parts.join('; ')
}

/** Rounded up, so that a client that retries at this time is not too early. */
const clockTime = (at: number, now: number): string => {
  const iso = new Date(Math.ceil(at / 1000) * 1000).toISOString()
  const time = `${iso.slice(11, 19)} UTC`
  return at - now < 86_400_000 ? time : `${iso.slice(0, 10)} ${time}`
}

const retryAfter = (nextAt: number | null, now: number): number =>
  nextAt === null ? LONGEST_WAIT_SECONDS : Math.min(LONGEST_WAIT_SECONDS, Math.max(1, Math.ceil((nextAt - now) / 1000)))

const minKnown = (times: readonly (number | null)[]): number | null =>
  times.reduce((least, time) => (time === null || (least !== null && least <= time) ? least : time), null)

/** The streams of an account have a limit, and this process cannot take a slot. */
export const uncountedStreams = (): AppError =>
  new AppError('busy', {
    message: 'Sluice cannot reach its database, which counts the running streams of each account. Try again shortly.',
    retryAfterSeconds: 5,
  })
