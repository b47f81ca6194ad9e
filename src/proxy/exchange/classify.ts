/**
 * Classifies every upstream failure: which account is next, what this account is charged, and what error the client
 * gets if no attempt follows.
 */
import { AppError, type ErrorExtra, resetMembers } from '../../errors.ts'
import { CHECK_INTERVAL_MS, PERMANENT_AUTH_CODES } from '../../model/accounts/account-state.ts'
import { getKind, type Kind } from './failure-kind.ts'
import { getParam, type UpstreamFailure } from './upstream-failure.ts'

export {
  endedEarly,
  failureFromEvent,
  failureFromResponse,
  failureFromThrown,
  parseTryAgain,
  type UpstreamFailure,
} from './upstream-failure.ts'

type Verdict =
  /** Retry this account, then another; the caller counts. */
  | 'same_account'
  /** Time for perhaps one more attempt: another account, or this one if there is no other. */
  | 'slow_account'
  | 'other_account'
  /** Another account; this one is charged if the other serves the turn. */
  | 'refused'
  /** Refresh the token and retry once, then another account. */
  | 'refresh'
  /** The model is overloaded on every account: at most one other account. */
  | 'overloaded'
  /** Rejected on the way to ChatGPT: at most one other account. */
  | 'blocked'
  /** Another account's reasoning: once on its owner, otherwise once without reasoning. */
  | 'encrypted_owner'
  | 'give_up'

export type Penalty =
  | { kind: 'rate_limited' }
  | { kind: 'quota_exceeded' }
  /** Only for the model of the turn. */
  | { kind: 'model_limited' }
  /** `code` is for `nextState`. */
  | { kind: 'auth_failed'; code: string }
  | { kind: 'transient' }
  /** Counts only once another account serves a request; until then it may be the network. */
  | { kind: 'connection' }
  /** The account does not have the turn's model. */
  | { kind: 'model_unsupported' }
  /** The account does not have the route. */
  | { kind: 'route_missing' }

export interface Classified {
  verdict: Verdict
  penalty: Penalty | null
  /** The error for the client if no attempt follows; never an upstream 401. */
  error: AppError
}

/** For failures before anything reached the client; afterwards only `penalty` and `error` apply. `at` is ms since epoch. */
export const classify = (failure: UpstreamFailure, at: number): Classified => {
  const { verdict, penalty, error } = OUTCOMES[getKind(failure)]
  return { verdict, penalty: getPenalty(penalty, failure), error: error(failure, at) }
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

/** The native client gives up on a 429 without `Retry-After`, and waits with one. */
const rateLimit = (failure: UpstreamFailure, at: number): AppError => {
  const waitMs = failure.retryAfterMs ?? (failure.resetsAt === null ? CHECK_INTERVAL_MS : failure.resetsAt - at)
  return new AppError('rate_limit_exceeded', {
    message: failure.message,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
    retryAfterSeconds: boundedSeconds(waitMs),
  })
}

/** The native client waits as long as `Retry-After` says; an account may be available much earlier. */
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

/** Passed on unchanged: the native client stops at this code, and our `Retry-After` would only make it wait. */
const overloaded = (failure: UpstreamFailure): AppError => {
  const { extra } = serverError(failure)
  const status = failure.status === 401 ? null : failure.status
  const inStream = failure.where === 'event' && { inStream: true as const }
  return new AppError('upstream_error', { ...extra, status: status ?? 503, ...inStream })
}

/** The answer may come from an intermediary, so its status says nothing about the request. */
const unexplained = ({ status, body }: UpstreamFailure): AppError =>
  new AppError('upstream_error', {
    message: `ChatGPT answered with status ${status} and no explanation.`,
    cause: body,
  })

/** Keeps the upstream's message, code, type, param and status. */
const passThroughError = (failure: UpstreamFailure): AppError => {
  const { status } = failure
  if (status === 401) return authFailed(failure)
  const extra: ErrorExtra = {
    message: failure.message,
    status: status !== null && status >= 400 && status < 500 ? status : 400,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
  }
  const param = getParam(failure.body)
  return new AppError('invalid_request_error', param ? { ...extra, param } : extra)
}

/** ChatGPT's own messages about models carry no code, so this adds the usual one. */
const withoutModel = (failure: UpstreamFailure): AppError =>
  passThroughError({ ...failure, code: failure.code ?? 'model_not_found' })

/** Passed on, but it is the account or the network path that was denied, not this request. */
const denied = (failure: UpstreamFailure): AppError =>
  new AppError(
    'upstream_error',
    failure.code || failure.type
      ? passThroughError(failure).extra
      : { message: 'ChatGPT rejected the request.', cause: failure.body },
  )

const blocked = (failure: UpstreamFailure): AppError => new AppError('upstream_blocked', { cause: failure.body })

const authFailed = (failure: UpstreamFailure): AppError => new AppError('upstream_auth_failed', { cause: failure.body })

const unreachable = (failure: UpstreamFailure): AppError =>
  new AppError(
    failure.where === 'stream' || failure.code === 'stream_incomplete' ? 'stream_incomplete' : 'upstream_unreachable',
    {
      message: failure.message,
      cause: failure.body,
    },
  )

const withoutRoute = (failure: UpstreamFailure): AppError =>
  new AppError('egress_unavailable', { message: failure.message, cause: failure.body, retryAfterSeconds: 5 })

const timedOut = (failure: UpstreamFailure): AppError => new AppError('upstream_timeout', { cause: failure.body })

const OUTCOMES: Record<Kind, Outcome> = {
  usage_limit: { verdict: 'other_account', penalty: 'rate_limited', error: usageLimit },
  model_limit: { verdict: 'other_account', penalty: 'model_limited', error: usageLimit },
  rate_limit: { verdict: 'other_account', penalty: 'rate_limited', error: rateLimit },
  quota: { verdict: 'other_account', penalty: 'quota_exceeded', error: usageLimit },
  token: { verdict: 'refresh', penalty: null, error: authFailed },
  account_gone: { verdict: 'other_account', penalty: 'auth_failed', error: authFailed },
  // Its state changed when the refresh failed.
  signed_out: { verdict: 'other_account', penalty: null, error: authFailed },
  transient: { verdict: 'same_account', penalty: 'transient', error: serverError },
  timeout: { verdict: 'slow_account', penalty: 'transient', error: timedOut },
  overload: { verdict: 'overloaded', penalty: null, error: overloaded },
  network: { verdict: 'same_account', penalty: 'connection', error: unreachable },
  // Nothing was sent. Selection skips the account for as long as its proxies do not connect.
  no_route: { verdict: 'other_account', penalty: null, error: withoutRoute },
  // Network failures and connection age are not the account's fault.
  closed: { verdict: 'same_account', penalty: null, error: unreachable },
  reconnect: { verdict: 'same_account', penalty: null, error: serverError },
  idle: { verdict: 'other_account', penalty: null, error: timedOut },
  // Every account would fail the same way, and retrying would hide a problem the operator has to fix.
  misconfigured: { verdict: 'give_up', penalty: null, error: unreachable },
  cancelled: { verdict: 'give_up', penalty: null, error: unreachable },
  denied: { verdict: 'refused', penalty: null, error: denied },
  blocked: { verdict: 'blocked', penalty: null, error: blocked },
  unexplained: { verdict: 'refused', penalty: null, error: unexplained },
  model_unsupported: { verdict: 'other_account', penalty: 'model_unsupported', error: withoutModel },
  route_missing: { verdict: 'other_account', penalty: 'route_missing', error: passThroughError },
  foreign_reasoning: { verdict: 'encrypted_owner', penalty: null, error: passThroughError },
  request: { verdict: 'give_up', penalty: null, error: passThroughError },
  // Unknown codes are charged to no account until we know what they mean; clients retry a 502 on their own.
  unknown: { verdict: 'give_up', penalty: null, error: serverError },
}

/** Other statuses become 502. */
const PASSED_SERVER_STATUSES: ReadonlySet<number> = new Set([500, 503, 504, 529])
const MAX_RETRY_AFTER_SECONDS = 300

const getPenalty = (kind: Penalty['kind'] | null, { code }: UpstreamFailure): Penalty | null => {
  if (kind !== 'auth_failed') return kind === null ? null : { kind }
  const name = code?.toLowerCase() ?? ''
  return { kind, code: Object.hasOwn(PERMANENT_AUTH_CODES, name) ? name : 'account_deactivated' }
}
