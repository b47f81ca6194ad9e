/** The state of an upstream account as a pure function of events, and why an account is not available. */
import type { AccountStatus } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import {
  hasAnyWindow,
  hasUsableCredits,
  isExhausted,
  isPoll,
  limitInForce,
  MAX_RESET_AHEAD_MS,
  REPORTED_LIMITS,
  type ReportedLimit,
  type UsageSnapshot,
} from './usage-windows.ts'

export type { AccountStatus }

/** Times are ms since epoch. A block has a cause, evidence, `since`, and either `until` or `nextCheckAt`. */
export interface AccountState {
  status: AccountStatus
  /** The upstream's code, or ours if it gave none. */
  cause: string | null
  /** What was observed, for operators. */
  evidence: string | null
  since: number | null
  /** When the block ends on its own. */
  until: number | null
  /** When a block without a known end is checked next. */
  nextCheckAt: number | null
  /** Consecutive blocks without a known end; kept after the block until a request is served. */
  attempts: number
}

interface Refusal {
  at: number
  evidence: string
  /** ms since epoch */
  resetAt: number | null
  retryAfterMs: number | null
  /** The upstream's error code. */
  cause?: string | null
}

export type AccountEvent =
  | ({ kind: 'rate_limited' } & Refusal)
  | ({ kind: 'quota_exceeded' } & Refusal)
  /** The snapshot as reported, not merged with older ones: only fresh numbers may end a block. */
  | { kind: 'usage'; at: number; snapshot: UsageSnapshot }
  /** A probe of a blocked account, or a used reset credit; `ok`: requests are served again. */
  | { kind: 'checked'; at: number; ok: boolean; by?: 'probe' | 'reset_credit' }
  | { kind: 'tick'; at: number }
  | { kind: 'auth_failed'; at: number; code: string; evidence: string }
  | { kind: 'pause'; at: number }
  | { kind: 'reactivate'; at: number }
  | { kind: 'reauthenticated'; at: number }
  | { kind: 'succeeded'; at: number }

/** An account never stays blocked longer than this after its reset. */
export const CHECK_INTERVAL_MS = 60_000

const MAX_CHECK_DELAY_MS = 30 * MINUTE_MS
const SHORTEST_WAIT_MS = 1000

export const ACTIVE: AccountState = Object.freeze({
  status: 'active',
  cause: null,
  evidence: null,
  since: null,
  until: null,
  nextCheckAt: null,
  attempts: 0,
})

/** Auth codes that no refresh fixes; other codes lead to needs sign-in. */
export const PERMANENT_AUTH_CODES: Readonly<Record<string, 'reauth_required' | 'deactivated'>> = {
  refresh_token_expired: 'reauth_required',
  refresh_token_reused: 'reauth_required',
  refresh_token_invalidated: 'reauth_required',
  invalid_grant: 'reauth_required',
  token_invalidated: 'reauth_required',
  token_expired: 'reauth_required',
  app_session_terminated: 'reauth_required',
  account_session_expired: 'reauth_required',
  account_auth_invalidated: 'reauth_required',
  account_deactivated: 'deactivated',
  account_suspended: 'deactivated',
  account_deleted: 'deactivated',
  deactivated_workspace: 'deactivated',
}

/**
 * The state after `event`; the same object when nothing changes, so that callers write only changes. Throws
 * `account_state_transition_invalid` for a pause or reactivation that is not allowed.
 */
export const nextState = (state: AccountState, event: AccountEvent): AccountState => {
  switch (event.kind) {
    case 'rate_limited':
    case 'quota_exceeded':
      return block(tick(state, event.at), event) // an expired block must not depend on the timer
    case 'usage':
      return observe(state, event)
    case 'checked':
      return check(state, event)
    case 'tick':
      return tick(state, event.at)
    case 'auth_failed':
      return refuseAuth(state, event)
    case 'pause':
      return pause(state, event.at)
    case 'reactivate':
      return reactivate(state)
    case 'reauthenticated':
      return state.status === 'paused' ? onlyPaused(state) : ACTIVE
    case 'succeeded':
      // A request already running when the block began says nothing about the block.
      return state.status === 'active' && state.attempts > 0 ? ACTIVE : state
  }
}

/** Whether the account is only temporarily unavailable. */
export const isBlocked = (state: Pick<AccountState, 'status'>): boolean =>
  state.status === 'rate_limited' || state.status === 'quota_exceeded'

/** Active or blocked; not paused, deactivated or signed out. */
export const isInUse = (state: Pick<AccountState, 'status'>): boolean => state.status === 'active' || isBlocked(state)

/**
 * The status without the pause. Only users end a pause, so a need for sign-in or a closed account is kept as its cause
 * until the next sign-in.
 */
export const getStatusUnderPause = ({ status, cause }: Pick<AccountState, 'status' | 'cause'>): AccountStatus =>
  status !== 'paused' || cause === null || cause === PAUSED ? status : getStatus(cause)

/** `resetAt` if plausible: after `at`, and at most 366 days ahead. */
export const plausibleReset = (resetAt: number | null, at: number): number | null =>
  resetAt !== null && resetAt > at && resetAt <= at + MAX_RESET_AHEAD_MS ? Math.ceil(resetAt) : null

const block = (
  state: AccountState,
  event: Extract<AccountEvent, { kind: 'rate_limited' | 'quota_exceeded' }>,
): AccountState => {
  const wasBlocked = isBlocked(state)
  if (!wasBlocked && state.status !== 'active') return state
  const statedReset = plausibleReset(event.resetAt, event.at)
  const waitMs = event.retryAfterMs ?? 0
  const until = statedReset ?? (waitMs < SHORTEST_WAIT_MS ? null : plausibleReset(event.at + waitMs, event.at))
  // Requests already running when the block began may still be rejected: they may lengthen the block, but neither
  // shorten it nor count as another failed attempt.
  if (wasBlocked && (until === null || (state.until !== null && state.until >= until)))
    return isReported(state) && event.evidence && event.evidence !== state.evidence
      ? { ...state, evidence: event.evidence }
      : state // the upstream's message says more
  return {
    status: event.kind,
    // A report knows which limit it is. Otherwise, only a used-up allowance has a date.
    cause: isReported(state) ? state.cause : event.cause || (statedReset === null ? event.kind : 'usage_limit_reached'),
    evidence: event.evidence || event.kind,
    since: state.status === event.kind ? (state.since ?? event.at) : event.at,
    until,
    nextCheckAt: until === null ? event.at + checkDelayMs(state.attempts, firstDelayMs(event)) : null,
    attempts: until === null ? state.attempts + 1 : state.attempts,
  }
}

const observe = (state: AccountState, { at, snapshot }: Extract<AccountEvent, { kind: 'usage' }>): AccountState => {
  if (!isInUse(state)) return state
  // A `since` in the future comes from a clock that was set back; it must not outrank every later report.
  const isLater = state.since === null || !(snapshot.at <= state.since) || state.since > at
  if (!isLater) return state
  const limit = limitInForce(snapshot, at)
  if (limit && (!isBlocked(state) || isReported(state) || WORKSPACE_LIMITS.includes(limit.kind)))
    return blockAsReported(state, limit, at)
  if (!isBlocked(state)) return state
  if (isReported(state)) return endsReported(state, snapshot) ? ACTIVE : state
  const { exhausted, resetAt } = isExhausted(snapshot, at)
  if (!exhausted && !limit) return hasEvidence(snapshot) ? ACTIVE : state
  const until = plausibleReset(resetAt, at)
  if (until === null || until === state.until) return state
  return { ...state, since: Math.min(state.since ?? at, at), until, nextCheckAt: null }
}

const hasEvidence = ({ windows, credits, limit }: UsageSnapshot): boolean =>
  hasAnyWindow(windows) || hasUsableCredits(credits) || limit === null

/** Workspace limits; only the usage endpoint reports them each time. */
const WORKSPACE_LIMITS: readonly string[] = ['spend_cap_reached', 'credits_depleted']

/** Whether the block came from a usage report, not from a rejected request. */
// as: any cause may be looked up
const isReported = ({ cause }: AccountState): boolean => (REPORTED_LIMITS as readonly (string | null)[]).includes(cause)

/** A block without a stated end lasts until the next report; each report, every minute, extends it. */
const REPORT_HOLDS_MS = 5 * MINUTE_MS

const blockAsReported = (state: AccountState, { kind, type, resetAt }: ReportedLimit, at: number): AccountState => {
  const stated = plausibleReset(resetAt, at)
  const until = stated ?? (state.until !== null && state.until > at ? state.until : null)
  const isSame = state.cause === kind && state.until === until
  if (isSame && (until !== null || (state.nextCheckAt ?? 0) - at >= 2 * CHECK_INTERVAL_MS)) return state
  return {
    status: 'quota_exceeded',
    cause: kind,
    evidence: `${REPORTED_WORDS[kind]}, according to the usage report${type ? ` (${type})` : ''}`,
    since: isBlocked(state) ? Math.min(state.since ?? at, at) : at,
    until,
    nextCheckAt: until === null ? at + REPORT_HOLDS_MS : null,
    attempts: state.attempts,
  }
}

const endsReported = ({ cause }: AccountState, snapshot: UsageSnapshot): boolean =>
  isPoll(snapshot) || (snapshot.limit === null && !WORKSPACE_LIMITS.includes(cause ?? ''))

/** Limits of a usage report as the start of a sentence. */
export const REPORTED_WORDS: Record<ReportedLimit['kind'], string> = {
  spend_cap_reached: 'Spend cap reached',
  credits_depleted: 'Workspace credits used up',
  limit_reached: 'Usage limit reached',
  not_allowed: 'Requests not allowed',
}

const check = (state: AccountState, { at, ok }: Extract<AccountEvent, { kind: 'checked' }>): AccountState => {
  if (!isBlocked(state)) return state
  if (ok) return ACTIVE
  if (state.until !== null) return state
  return { ...state, nextCheckAt: at + checkDelayMs(state.attempts), attempts: state.attempts + 1 }
}

/** Ends expired blocks, and those with impossible times (clock set back, damaged row). */
const tick = (state: AccountState, at: number): AccountState => {
  if (!isBlocked(state)) return state
  if (state.until !== null) {
    if (state.until <= at) return reopen(state)
    if (plausibleReset(state.until, at) !== null && !isToCome(state, at)) return state
    return { ...state, until: null, nextCheckAt: at + CHECK_INTERVAL_MS }
  }
  if (state.nextCheckAt === null || !(state.nextCheckAt > at)) return reopen(state)
  const latest = at + MAX_CHECK_DELAY_MS
  return state.nextCheckAt <= latest ? state : { ...state, nextCheckAt: latest }
}

/** The block began by a clock that was ahead, so its end is wrong too. Small clock corrections are tolerated. */
const isToCome = ({ since }: AccountState, at: number): boolean => since !== null && since > at + CHECK_INTERVAL_MS

/** Half open: another rejection without a date continues the back-off where it was. */
const reopen = ({ attempts }: AccountState): AccountState => ({ ...ACTIVE, attempts })

const checkDelayMs = (attempts: number, firstMs = CHECK_INTERVAL_MS): number =>
  Math.min(MAX_CHECK_DELAY_MS, firstMs * 2 ** Math.min(attempts, 10))

/** "Immediately" is no end: repeated rejections wait longer each time, starting with a second. */
const firstDelayMs = ({ retryAfterMs }: Refusal): number =>
  retryAfterMs !== null && retryAfterMs < SHORTEST_WAIT_MS ? SHORTEST_WAIT_MS : CHECK_INTERVAL_MS

const refuseAuth = (
  state: AccountState,
  { at, code, evidence }: Extract<AccountEvent, { kind: 'auth_failed' }>,
): AccountState => {
  const status = getStatus(code)
  const before = getStatusUnderPause(state)
  if (before === status || before === 'deactivated') return state
  const refusal = { cause: code, evidence: evidence || code }
  return state.status === 'paused' ? { ...state, ...refusal } : { ...ACTIVE, ...refusal, status, since: at }
}

const getStatus = (code: string): AccountStatus =>
  (Object.hasOwn(PERMANENT_AUTH_CODES, code) ? PERMANENT_AUTH_CODES[code] : undefined) ?? 'reauth_required'

const PAUSED = 'paused'

const onlyPaused = (state: AccountState): AccountState =>
  state.cause === PAUSED ? state : { ...state, cause: PAUSED, evidence: null }

const pause = (state: AccountState, at: number): AccountState => {
  if (state.status === 'paused') return state
  if (state.status === 'reauth_required' || state.status === 'deactivated') {
    throw new AppError('account_state_transition_invalid', {
      message: `An account that ${LABEL[state.status]} cannot be paused.`,
    })
  }
  return { ...ACTIVE, status: 'paused', cause: PAUSED, since: at }
}

const reactivate = (state: AccountState): AccountState => {
  if (getStatusUnderPause(state) === 'reauth_required') {
    throw new AppError('account_state_transition_invalid', {
      message: 'This account needs sign-in. Sign in again first.',
    })
  }
  return state.status === 'active' ? state : ACTIVE
}

const LABEL = { reauth_required: 'needs sign-in', deactivated: 'is deactivated' } as const
