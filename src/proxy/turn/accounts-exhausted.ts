/** The error and the log entry of a turn when no account is left to serve it. */
import { AppError } from '../../errors.ts'
import { LONGEST_WAIT_SECONDS, selectionError } from '../pool/selection-error.ts'
import type { SelectionNeeds } from '../pool/selection-needs.ts'
import { getNeeds } from './continuity.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { elapsedMs, type Turn } from './turn.ts'

/** The last failure, unless the pool's error concerns all accounts; with a shorter wait if an account is available sooner. */
export const preferredError = (last: AppError | null, noAccount: AppError): AppError => {
  if (!last || POOL_WIDE_CODES.has(noAccount.code)) return noAccount
  // Clients retry these, and nothing changes until someone acts.
  if (noAccount.extra.shouldRetry === false && (last.status === 429 || last.status >= 500)) return noAccount
  const back = noAccount.extra.retryAfterSeconds ?? LONGEST_WAIT_SECONDS
  return back < LONGEST_WAIT_SECONDS ? withShorterWait(last, back) : last
}

/** The error with its wait shortened to `seconds`. */
export const withShorterWait = (error: AppError, seconds: number): AppError =>
  seconds < (error.extra.retryAfterSeconds ?? 0)
    ? new AppError(error.code, { ...error.extra, retryAfterSeconds: seconds })
    : error

/** Errors about the whole pool: all accounts are used up, or some are only busy. */
const POOL_WIDE_CODES: ReadonlySet<string> = new Set([
  'usage_limit_reached',
  'account_stream_cap',
  'no_plan_support_for_model',
])

/** Limits of single accounts, which say nothing about the others. */
const SINGLE_ACCOUNT_CODES: ReadonlySet<string> = new Set(['usage_limit_reached', 'rate_limit_exceeded'])

/**
 * The error after the maximum number of attempts. The pool decides whether all accounts are used up and which is back
 * first.
 */
export const exhaustedError = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { error, last }: { error: AppError; last: AppError | null },
): AppError => {
  const { pool, clock } = proxyDeps
  const selection = pool.explain({ ...getNeeds(proxyDeps, turn, new Set()), streamCap: 0 })
  if (selection.kind === 'none') return preferredError(last, selectionError(selection.failure, clock.now()))
  if (!SINGLE_ACCOUNT_CODES.has(error.code)) return last ?? error
  const message = 'The accounts tried cannot serve this request now. A retry may reach another account.'
  const { code, extra } = error.code === 'usage_limit_reached' ? new AppError('no_accounts', { message }) : error
  return new AppError(code, { ...extra, retryAfterSeconds: 1 })
}

/** The native client retries a 503 for up to half an hour, and shows a 400 immediately (decisions §3 "Selection failure"). */
export const toClientError = ({ isNative }: Turn, err: AppError): AppError =>
  isNative && err.extra.shouldRetry === false && err.code !== 'file_owner_unavailable'
    ? new AppError(err.code, { ...err.extra, status: 400 })
    : err

/** Logs why no account was chosen, in the place of an attempt. */
export const logNoAccount = (proxyDeps: ProxyDeps, turn: Turn, { needs, err, began }: NoAccount): void => {
  const durationMs = elapsedMs(began, proxyDeps.clock.monotonic())
  logNoAttempt(proxyDeps, turn, { needs, durationMs, code: err.code, message: err.message })
}

interface NoAccount {
  needs: SelectionNeeds
  err: AppError
  began: number
}

/** Logs why the request ends although accounts are left. */
export const logUpstreamFailing = (proxyDeps: ProxyDeps, turn: Turn, tried: ReadonlySet<string>): void =>
  logNoAttempt(proxyDeps, turn, {
    needs: getNeeds(proxyDeps, turn, tried),
    durationMs: 0,
    code: 'upstream_failing',
    message:
      'No other account was tried: earlier requests failed on several accounts, and none has served a request since.',
  })

const logNoAttempt = (
  { pool, clock }: ProxyDeps,
  turn: Turn,
  { needs, durationMs, code, message }: NoAttempt,
): void => {
  const { considered } = pool.explain(needs)
  turn.log.egressReason = considered.find(({ egressReason }) => egressReason)?.egressReason ?? turn.log.egressReason
  turn.log.attempts.push({
    n: turn.log.attempts.length + 1,
    accountId: null,
    startedAt: Math.round(clock.now() - durationMs),
    durationMs,
    outcome: 'failed',
    upstreamStatus: null,
    code,
    message,
    considered,
  })
}

interface NoAttempt {
  needs: SelectionNeeds
  durationMs: number
  code: string
  message: string
}
