/** Judges every upstream failure: who is tried next, what the account is charged with, and what the client gets if this was the last attempt. */
import { AppError, type ErrorExtra, resetMembers } from '../errors.ts'
import { CHECK_INTERVAL_MS, PERMANENT_AUTH_CODES } from '../model/account-state.ts'
import { type Kind, kindOf } from './failure-kind.ts'
import { paramOf, type UpstreamFailure } from './upstream-failure.ts'

export {
  failureFromEvent,
  failureFromResponse,
  failureFromThrown,
  parseTryAgain,
  type UpstreamFailure,
} from './upstream-failure.ts'

type Verdict =
  /** Again on this account, then on another; the caller counts. */
  | 'same_account'
  /** There may be time for one more attempt only: another account, and this one again where there is none. */
  | 'slow_account'
  | 'other_account'
  /** Another account, and this one is to blame where that one serves the turn. */
  | 'refused'
  /** Refresh the token once and try again, then another account. */
  | 'refresh'
  /** The model is overloaded, whichever account is used: at most one other account. */
  | 'overloaded'
  /** Reasoning of another account: once on its owner, else once without it. */
  | 'encrypted_owner'
  | 'give_up'

export type Penalty =
  | { kind: 'rate_limited' }
  | { kind: 'quota_exceeded' }
  /** For the model of the turn only. */
  | { kind: 'model_limited' }
  /** `code` is what `nextState` wants to know. */
  | { kind: 'auth_failed'; code: string }
  | { kind: 'transient' }
  /** Counts against the account only once another one serves a request; until then it may be the network. */
  | { kind: 'connection' }
  /** The account does not have the model of the turn. */
  | { kind: 'model_unsupported' }

export interface Classified {
  verdict: Verdict
  penalty: Penalty | null
  /** What the client gets if this was the last attempt; never an upstream 401. */
  error: AppError
}

/** Holds before anything has reached the client; afterwards only `penalty` and `error` count. `at` is ms since epoch. */
export const classify = (failure: UpstreamFailure, at: number): Classified => {
  const { verdict, penalty, error } = OUTCOMES[kindOf(failure)]
  return { verdict, penalty: penaltyOf(penalty, failure), error: error(failure, at) }
}

interface Outcome {
  verdict: Verdict
  penalty: Penalty['kind'] | null
  error: (failure: UpstreamFailure, at: number) => AppError
}

const usageLimit = (failure: UpstreamFailure, at: number): AppError =>
  new AppError('usage_limit_reached', {
    message: failure.message,
    upstream: { code: failure.code, type: failure.type ?? failure.code },
    cause: failure.body,
    envelope: failure.resetsAt === null ? {} : resetMembers(failure.resetsAt, at),
  })

/** Without `Retry-After` the native client gives a 429 up at once, with it it waits. */
const rateLimit = (failure: UpstreamFailure, at: number): AppError => {
  const waitMs = failure.retryAfterMs ?? (failure.resetsAt === null ? CHECK_INTERVAL_MS : failure.resetsAt - at)
  return new AppError('rate_limit_exceeded', {
    message: failure.message,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
    retryAfterSeconds: boundedSeconds(waitMs),
  })
}

/** The native client waits however long it is told; another account, or this one, may serve long before. */
const boundedSeconds = (waitMs: number): number =>
  Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(waitMs / 1000)))

const serverError = (failure: UpstreamFailure): AppError => {
  const status = failure.status ?? 502
  return new AppError('upstream_error', {
    message: failure.message,
    status: PASSED_SERVER_STATUSES.has(status) ? status : 502,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
    ...(failure.retryAfterMs !== null && { retryAfterSeconds: boundedSeconds(failure.retryAfterMs) }),
  })
}

/** As it came: the native client stops at the code, and a `Retry-After` of ours would only keep it waiting. */
const overloaded = (failure: UpstreamFailure): AppError => {
  const { extra } = serverError(failure)
  const status = failure.status === 401 ? null : failure.status
  const inStream = failure.where === 'event' && { inStream: true as const }
  return new AppError('upstream_error', { ...extra, status: status ?? 503, ...inStream })
}

/** The answer may come from something in front of the service, so its status says nothing about the request. */
const unexplained = ({ status, body }: UpstreamFailure): AppError =>
  new AppError('upstream_error', {
    message: `ChatGPT answered with status ${status} and no explanation.`,
    cause: body,
  })

/** The upstream's own words about this request: code, type, param and status are kept. */
const asItCame = (failure: UpstreamFailure): AppError => {
  const { status } = failure
  if (status === 401) return authFailed(failure)
  const extra: ErrorExtra = {
    message: failure.message,
    status: status !== null && status >= 400 && status < 500 ? status : 400,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
  }
  const param = paramOf(failure.body)
  return new AppError('invalid_request_error', param ? { ...extra, param } : extra)
}

/** By the name it has elsewhere: the service's own sentences about models come without a code. */
const withoutModel = (failure: UpstreamFailure): AppError =>
  asItCame({ ...failure, code: failure.code ?? 'model_not_found' })

/** As it came, and yet an account or the way to the upstream is refused, not this request. */
const denied = (failure: UpstreamFailure): AppError =>
  new AppError(
    'upstream_error',
    failure.code || failure.type
      ? asItCame(failure).extra
      : { message: 'ChatGPT rejected the request.', cause: failure.body },
  )

const authFailed = (failure: UpstreamFailure): AppError => new AppError('upstream_auth_failed', { cause: failure.body })

const unreachable = (failure: UpstreamFailure): AppError =>
  new AppError(
    failure.where === 'stream' || failure.code === 'stream_incomplete' ? 'stream_incomplete' : 'upstream_unreachable',
    {
      message: failure.message,
      cause: failure.body,
    },
  )

const timedOut = (failure: UpstreamFailure): AppError => new AppError('upstream_timeout', { cause: failure.body })

const OUTCOMES: Record<Kind, Outcome> = {
  usage_limit: { verdict: 'other_account', penalty: 'rate_limited', error: usageLimit },
  model_limit: { verdict: 'other_account', penalty: 'model_limited', error: usageLimit },
  rate_limit: { verdict: 'other_account', penalty: 'rate_limited', error: rateLimit },
  quota: { verdict: 'other_account', penalty: 'quota_exceeded', error: usageLimit },
  token: { verdict: 'refresh', penalty: null, error: authFailed },
  account_gone: { verdict: 'other_account', penalty: 'auth_failed', error: authFailed },
  // Its state was changed where the refresh failed.
  signed_out: { verdict: 'other_account', penalty: null, error: authFailed },
  transient: { verdict: 'same_account', penalty: 'transient', error: serverError },
  timeout: { verdict: 'slow_account', penalty: 'transient', error: timedOut },
  overload: { verdict: 'overloaded', penalty: null, error: overloaded },
  network: { verdict: 'same_account', penalty: 'connection', error: unreachable },
  // The network and the age of a connection are not the account's fault.
  closed: { verdict: 'same_account', penalty: null, error: unreachable },
  reconnect: { verdict: 'same_account', penalty: null, error: serverError },
  idle: { verdict: 'other_account', penalty: null, error: timedOut },
  // The same for every account: asking again only hides what the operator has to repair.
  misconfigured: { verdict: 'give_up', penalty: null, error: unreachable },
  cancelled: { verdict: 'give_up', penalty: null, error: unreachable },
  denied: { verdict: 'refused', penalty: null, error: denied },
  unexplained: { verdict: 'refused', penalty: null, error: unexplained },
  model_unsupported: { verdict: 'other_account', penalty: 'model_unsupported', error: withoutModel },
  foreign_reasoning: { verdict: 'encrypted_owner', penalty: null, error: asItCame },
  request: { verdict: 'give_up', penalty: null, error: asItCame },
  // A code we do not know is nobody's fault until somebody reads it; clients retry a 502 by themselves.
  unknown: { verdict: 'give_up', penalty: null, error: serverError },
}

/** Any other is a 502. */
const PASSED_SERVER_STATUSES: ReadonlySet<number> = new Set([500, 503, 504, 529])
const MAX_RETRY_AFTER_SECONDS = 300

const penaltyOf = (kind: Penalty['kind'] | null, { code }: UpstreamFailure): Penalty | null => {
  if (kind !== 'auth_failed') return kind === null ? null : { kind }
  const name = code?.toLowerCase() ?? ''
  return { kind, code: Object.hasOwn(PERMANENT_AUTH_CODES, name) ? name : 'account_deactivated' }
}
