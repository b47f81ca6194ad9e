/** The kind of an upstream failure, from its code or type, its message and its status. */
import { PERMANENT_AUTH_CODES } from '../../model/accounts/account-state.ts'
import { getParam, isCertificateCode, isWorkspaceLimit, type UpstreamFailure } from './upstream-failure.ts'

export type Kind =
  | 'usage_limit'
  | 'model_limit'
  | 'rate_limit'
  | 'quota'
  | 'token'
  | 'account_gone'
  | 'signed_out'
  | 'transient'
  | 'overload'
  | 'reconnect'
  | 'network'
  | 'closed'
  | 'no_route'
  | 'timeout'
  | 'idle'
  | 'misconfigured'
  | 'cancelled'
  | 'denied'
  | 'blocked'
  | 'unexplained'
  | 'model_unsupported'
  | 'route_missing'
  | 'foreign_reasoning'
  | 'request'
  | 'unknown'

/** Some messages take precedence over the code, and the code over the status. */
export const getKind = (failure: UpstreamFailure): Kind => {
  const { code, type, message, status, where, isOfOneModel, isUnexplained, isRouteMissing, body } = failure
  if (isRouteMissing) return 'route_missing'
  if (failure.isBlocked) return 'blocked'
  const named = kindOfSentence(failure) ?? accountEnd(failure) ?? kindOfCode(code) ?? kindOfCode(type)
  if (named === 'usage_limit' && isOfOneModel) return 'model_limit'
  if ((named === undefined || named === 'transient') && AT_CAPACITY.test(message)) return 'overload'
  if (named) return named
  // Whatever the message: the model was denied, and the account serves others.
  if (status === 403 && getParam(body) === 'model') return 'model_unsupported'
  if (status !== null) return isUnexplained && !EXPLAINS_ITSELF.has(status) ? unexplained(status) : kindOfStatus(status)
  if (type === 'invalid_request_error' || code === 'invalid_request_error') return 'request'
  if (where === 'event') return code === null ? 'transient' : 'unknown'
  return code !== null && isCertificateCode(code) ? 'misconfigured' : 'network'
}

/** A permanent code disables the account only with a status about access, and only as `code`, not as `type`. */
const accountEnd = ({ status, code }: UpstreamFailure): Kind | undefined => {
  const isAboutAccess = status === null || ACCESS_STATUSES.has(status)
  const name = code?.toLowerCase() ?? ''
  return isAboutAccess && kindOfCode(name) === undefined && Object.hasOwn(PERMANENT_AUTH_CODES, name)
    ? 'account_gone'
    : undefined
}

const ACCESS_STATUSES: ReadonlySet<number> = new Set([401, 402, 403])

const kindOfSentence = ({ status, code, type, message }: UpstreamFailure): Kind | undefined => {
  const isOfRequest = type === 'invalid_request_error' ? code !== null : kindOfCode(code) === 'request'
  if (isOfRequest) return undefined
  return SENTENCES.find(({ statuses, pattern }) => statuses.includes(status) && pattern.test(message))?.kind
}

const kindOfCode = (code: string | null): Kind | undefined => {
  if (code === null) return undefined
  const name = Object.hasOwn(CODE_KINDS, code) ? code : code.toLowerCase()
  if (Object.hasOwn(CODE_KINDS, name)) return CODE_KINDS[name]
  return isWorkspaceLimit(name) ? 'quota' : undefined
}

/** An unexplained client error may come from an intermediary, so another account may work. */
const unexplained = (status: number): Kind => (status >= 400 && status < 500 ? 'unexplained' : kindOfStatus(status))

/** Statuses that need no explanation: token, quota, access, timeout, size or rate. */
const EXPLAINS_ITSELF: ReadonlySet<number> = new Set([401, 402, 403, 408, 413, 429])

const kindOfStatus = (status: number): Kind => {
  if (status === 401) return 'token'
  if (status === 402) return 'quota'
  if (status === 403) return 'denied'
  if (status === 408) return 'transient'
  if (status === 429) return 'rate_limit'
  return status >= 400 && status < 500 ? 'request' : 'transient'
}

/** Codes decide wherever they occur: in an HTTP error, an event or a socket frame. */
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
  // Also a permanent code, but only once a refreshed token has been rejected as well.
  token_invalidated: 'token',
  token_expired: 'token',
  upstream_auth_failed: 'signed_out',
  account_not_found: 'signed_out',
  server_error: 'transient',
  internal_error: 'transient',
  upstream_error: 'transient',
  overloaded_error: 'overload',
  server_is_overloaded: 'overload',
  slow_down: 'overload',
  stream_incomplete: 'network',
  upstream_request_timeout: 'timeout',
  upstream_timeout: 'timeout',
  stream_idle_timeout: 'idle',
  upstream_unreachable: 'network',
  egress_unavailable: 'no_route',
  socket_closed: 'closed',
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
  /** Null: an event without a status. */
  statuses: readonly (number | null)[]
  kind: Kind
}

/**
 * Messages that say more than their status. Rejections quote the client's text, so a message counts only where the
 * upstream writes about the account or the model, and never next to the code of a request error.
 */
const SENTENCES: readonly Sentence[] = [
  {
    pattern: /^the '[^']*' model is not supported when using codex with a chatgpt account/i,
    statuses: [400, 403, 404, null],
    kind: 'model_unsupported',
  },
  {
    pattern: /^(the )?encrypted content\b.*\bcould not be (verified|decrypted|parsed)/is,
    statuses: [400, 404, 422, null],
    kind: 'foreign_reasoning',
  },
  { pattern: /^model not found\b/i, statuses: [404], kind: 'model_unsupported' },
  { pattern: /\baccount has been deactivated/i, statuses: [401, 402, 403], kind: 'account_gone' },
]

/** The upstream's message when a model lacks capacity. */
const AT_CAPACITY = /^selected model is at capacity/i
