/** Judges every upstream failure: who is tried next, what the account is charged with, and what the client gets if this was the last attempt. */
import { AppError, type ErrorExtra, resetMembers } from '../errors.ts'
import { CHECK_INTERVAL_MS, PERMANENT_AUTH_CODES } from '../model/account-state.ts'
import { isCertificateCode, type UpstreamFailure } from './upstream-failure.ts'

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

type Kind =
  | 'usage_limit'
  | 'model_limit'
  | 'rate_limit'
  | 'quota'
  | 'token'
  | 'account_gone'
  | 'signed_out'
  | 'transient'
  | 'reconnect'
  | 'network'
  | 'timeout'
  | 'idle'
  | 'misconfigured'
  | 'cancelled'
  | 'denied'
  | 'model_unsupported'
  | 'foreign_reasoning'
  | 'request'
  | 'unknown'

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
    envelope: {
      ...planOf(failure.body),
      ...(failure.resetsAt !== null && resetMembers(failure.resetsAt, at)),
    },
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
  const isAtCapacity = OVERLOAD_CODES.has(failure.code ?? '') || AT_CAPACITY.test(failure.message)
  const status = failure.status ?? (isAtCapacity ? 503 : 502)
  const waitMs = failure.retryAfterMs ?? (OVERLOADED_STATUSES.has(status) ? OVERLOADED_MS : null)
  return new AppError('upstream_error', {
    message: failure.message,
    status: PASSED_SERVER_STATUSES.has(status) ? status : 502,
    upstream: { code: failure.code, type: failure.type },
    cause: failure.body,
    ...(waitMs !== null && { retryAfterSeconds: boundedSeconds(waitMs) }),
  })
}

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
      : { message: 'The upstream refused the request.', cause: failure.body },
  )

const authFailed = (failure: UpstreamFailure): AppError => new AppError('upstream_auth_failed', { cause: failure.body })

const unreachable = (failure: UpstreamFailure): AppError =>
  new AppError(failure.where === 'stream' ? 'stream_incomplete' : 'upstream_unreachable', {
    message: failure.message,
    cause: failure.body,
  })

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
  // The network and the age of a connection are not the account's fault.
  network: { verdict: 'same_account', penalty: null, error: unreachable },
  reconnect: { verdict: 'same_account', penalty: null, error: serverError },
  idle: { verdict: 'other_account', penalty: null, error: timedOut },
  // The same for every account: asking again only hides what the operator has to repair.
  misconfigured: { verdict: 'give_up', penalty: null, error: unreachable },
  cancelled: { verdict: 'give_up', penalty: null, error: unreachable },
  denied: { verdict: 'refused', penalty: null, error: denied },
  model_unsupported: { verdict: 'other_account', penalty: null, error: withoutModel },
  foreign_reasoning: { verdict: 'encrypted_owner', penalty: null, error: asItCame },
  request: { verdict: 'give_up', penalty: null, error: asItCame },
  // A code we do not know is nobody's fault until somebody reads it; clients retry a 502 by themselves.
  unknown: { verdict: 'give_up', penalty: null, error: serverError },
}

/** What the upstream names decides, wherever it says so: a status line, an event, a socket frame. */
const CODE_KINDS: Readonly<Record<string, Kind>> = {
  usage_limit_reached: 'usage_limit',
  rate_limit_exceeded: 'rate_limit',
  rate_limit_error: 'rate_limit',
  insufficient_quota: 'quota',
  usage_not_included: 'quota',
  quota_exceeded: 'quota',
  invalid_api_key: 'token',
  invalid_authentication: 'token',
  authentication_error: 'token',
  token_revoked: 'token',
  // In the table of permanent codes too, but only once a refreshed token was refused as well.
  token_invalidated: 'token',
  token_expired: 'token',
  upstream_auth_failed: 'signed_out',
  account_not_found: 'signed_out',
  server_error: 'transient',
  internal_error: 'transient',
  upstream_error: 'transient',
  overloaded_error: 'transient',
  server_is_overloaded: 'transient',
  slow_down: 'transient',
  stream_incomplete: 'transient',
  upstream_request_timeout: 'timeout',
  upstream_timeout: 'timeout',
  stream_idle_timeout: 'idle',
  upstream_unreachable: 'network',
  websocket_connection_limit_reached: 'reconnect',
  aborted: 'cancelled',
  UnsupportedProxyProtocol: 'misconfigured',
  model_not_found: 'model_unsupported',
  model_not_supported: 'model_unsupported',
  invalid_encrypted_content: 'foreign_reasoning',
  context_length_exceeded: 'request',
  invalid_prompt: 'request',
  cyber_policy: 'request',
  content_policy_violation: 'request',
  previous_response_not_found: 'request',
}

interface Sentence {
  pattern: RegExp
  statuses: readonly number[]
  kind: Kind
}

/**
 * Sentences that say more than the status beside them. Refusals quote what the client wrote, so a sentence counts only
 * where the upstream speaks of the account or the model, and never beside the name of a request error.
 */
const SENTENCES: readonly Sentence[] = [
  {
    pattern: /^the '[^']*' model is not supported when using codex with a chatgpt account/i,
    statuses: [400, 403, 404],
    kind: 'model_unsupported',
  },
  { pattern: /^model not found\b/i, statuses: [404], kind: 'model_unsupported' },
  { pattern: /\baccount has been deactivated/i, statuses: [401, 402, 403], kind: 'account_gone' },
]

const AT_CAPACITY = /^selected model is at capacity/i
const OVERLOAD_CODES: ReadonlySet<string> = new Set(['server_is_overloaded', 'overloaded_error', 'slow_down'])
/** Any other is a 502. */
const PASSED_SERVER_STATUSES: ReadonlySet<number> = new Set([500, 503, 504, 529])
const MAX_RETRY_AFTER_SECONDS = 300
const OVERLOADED_STATUSES: ReadonlySet<number> = new Set([503, 529])
/** Of one of these that names no wait: without one the native client asks thirty times in a row (client protocol §10). */
const OVERLOADED_MS = 5_000

const kindOf = (failure: UpstreamFailure): Kind => {
  const { code, type, message, status, where, isOfOneModel, body } = failure
  const named = kindOfSentence(failure) ?? kindOfCode(code) ?? kindOfCode(type)
  if (named === 'usage_limit' && isOfOneModel) return 'model_limit'
  if (named) return named
  if (AT_CAPACITY.test(message)) return 'transient'
  // Whatever its words: what was denied is the model that was asked for, and the account serves others.
  if (status === 403 && paramOf(body) === 'model') return 'model_unsupported'
  if (status !== null) return kindOfStatus(status)
  if (type === 'invalid_request_error' || code === 'invalid_request_error') return 'request'
  if (where === 'event') return code === null ? 'transient' : 'unknown'
  return code !== null && isCertificateCode(code) ? 'misconfigured' : 'network'
}

const kindOfSentence = ({ status, code, type, message }: UpstreamFailure): Kind | undefined => {
  const isOfRequest = type === 'invalid_request_error' ? code !== null : kindOfCode(code) === 'request'
  if (status === null || isOfRequest) return undefined
  return SENTENCES.find(({ statuses, pattern }) => statuses.includes(status) && pattern.test(message))?.kind
}

const kindOfCode = (code: string | null): Kind | undefined => {
  if (code === null) return undefined
  const name = Object.hasOwn(CODE_KINDS, code) ? code : code.toLowerCase()
  if (Object.hasOwn(CODE_KINDS, name)) return CODE_KINDS[name]
  return Object.hasOwn(PERMANENT_AUTH_CODES, name) ? 'account_gone' : undefined
}

const kindOfStatus = (status: number): Kind => {
  if (status === 401) return 'token'
  if (status === 402) return 'quota'
  if (status === 403) return 'denied'
  if (status === 408) return 'transient'
  if (status === 429) return 'rate_limit'
  return status >= 400 && status < 500 ? 'request' : 'transient'
}

const penaltyOf = (kind: Penalty['kind'] | null, { code }: UpstreamFailure): Penalty | null => {
  if (kind !== 'auth_failed') return kind === null ? null : { kind }
  const name = code?.toLowerCase() ?? ''
  return { kind, code: Object.hasOwn(PERMANENT_AUTH_CODES, name) ? name : 'account_deactivated' }
}

const errorMembers = (body: unknown): Record<string, unknown> => {
  if (typeof body !== 'object' || body === null) return {}
  const outer = body as { error?: unknown; response?: { error?: unknown } | null } // read only, every member checked
  const error = outer.error ?? outer.response?.error
  return typeof error === 'object' && error !== null ? { ...error } : {}
}

const planOf = (body: unknown): { plan_type?: string } => {
  const plan = errorMembers(body).plan_type
  return typeof plan === 'string' ? { plan_type: plan } : {}
}

const paramOf = (body: unknown): string | null => {
  const { param } = errorMembers(body)
  return typeof param === 'string' ? param : null
}
