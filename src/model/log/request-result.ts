/** The result of a request by cause: the only texts for the log, the overview, metrics and API. */
import type { requests } from '../../../db/schema/requests.ts'
import type { RejectionReason } from '../../errors.ts'

/** The columns that determine the result. */
export type ResultFacts = Pick<typeof requests.$inferSelect, 'status' | 'errorCode' | 'phase' | 'errorMessage'>

/** Cause names are stable for metrics and API clients; texts may change. */
const WORDS = {
  completed: 'Completed',
  cancelled: 'Cancelled by the client',
  // rejected by Sluice
  invalid_request: 'Invalid request',
  request_too_large: 'Request too large',
  unknown_model: 'Unknown model',
  unknown_response: 'Previous response not found',
  key_limit: 'Rejected by a limit of the key',
  key_restriction: 'Rejected by a restriction of the key',
  // no account
  accounts_limited: 'All accounts at their limit',
  owner_limited: 'The account of this conversation is at its limit',
  owner_unavailable: 'The account of this conversation is not available',
  accounts_busy: 'All accounts at their limit of parallel requests',
  no_account: 'No account available',
  not_authorized: 'No account authorized for security work',
  // rejected by ChatGPT
  rejected_model: 'Rejected by ChatGPT: unknown model',
  rejected_request: 'Rejected by ChatGPT: invalid request',
  rejected_input: 'Rejected by ChatGPT: input too long',
  rejected_policy: 'Rejected by ChatGPT: content policy',
  rejected_reasoning: 'Rejected by ChatGPT: reasoning from another account',
  rejected_response: 'Rejected by ChatGPT: previous response not found',
  rejected_rate: 'Rejected by ChatGPT: rate limit',
  rejected_credentials: 'Rejected by ChatGPT: sign-in of the account',
  rejected: 'Rejected by ChatGPT',
  // ChatGPT failed
  overloaded: 'ChatGPT is overloaded',
  chatgpt_error: 'ChatGPT returned an error',
  timeout: 'ChatGPT did not respond in time',
  unreachable: 'ChatGPT could not be reached',
  stream_cut_off: 'Stream cut off',
  // Sluice failed
  busy: 'Sluice is overloaded',
  draining: 'Sluice is shutting down',
  internal_error: 'Internal error in Sluice',
  other: 'Failed',
} as const

export type Cause = keyof typeof WORDS

export const getCause = (facts: ResultFacts): Cause => {
  const { status, errorCode, phase, errorMessage } = facts
  if (status === 'ok') return 'completed'
  if (status === 'cancelled') return 'cancelled'
  const code = errorCode?.toLowerCase() ?? ''
  const known = Object.hasOwn(CAUSES, code) ? CAUSES[code] : undefined
  const cause = typeof known === 'string' ? known : known?.[getPlace(phase)]
  if (cause === 'accounts_limited' && errorMessage?.startsWith(OWNER_AT_LIMIT)) return 'owner_limited'
  return cause ?? FALLBACKS[getPlace(phase)]
}

/** "Rejected by ChatGPT: unknown model (1 account tried)". */
export const resultText = (facts: ResultFacts, accountsTried: number): string => {
  const cause = getCause(facts)
  const code = facts.errorCode?.replaceAll('_', ' ').toLowerCase().slice(0, MAX_CODE_CHARS)
  const text = code && UNNAMED.has(cause) ? `${WORDS[cause]}: ${code}` : WORDS[cause]
  if (accountsTried === 0 || WITHOUT_ACCOUNTS.has(cause)) return text
  return `${text} (${accountsTried} ${accountsTried === 1 ? 'account' : 'accounts'} tried)`
}

/** For clients rejected before an account was tried. */
export const REJECTION_RESULTS: Record<RejectionReason, string> = {
  unknown_key: 'Rejected: unknown key',
  inactive_key: 'Rejected: disabled key',
  expired_key: 'Rejected: expired key',
  missing_key: 'Rejected: no key',
  remote_client: 'Rejected: a key is required from other machines',
  firewall: 'Rejected: blocked by the firewall',
  model_not_allowed: 'Rejected: model not allowed for the key',
}

/** Start of usage limit messages about one account instead of all. */
export const OWNER_AT_LIMIT = 'The account that owns this conversation has reached its'

const MAX_CODE_CHARS = 60

type Place = 'key' | 'sluice' | 'connection' | 'chatgpt' | 'stream'

const getPlace = (phase: string | null): Place => PLACES[phase ?? ''] ?? 'sluice'

/** Phases as in `proxy/turn/turn.ts`. */
const PLACES: Readonly<Record<string, Place>> = {
  auth: 'key',
  connect: 'connection',
  first_event: 'connection',
  upstream: 'chatgpt',
  stream: 'stream',
  finish: 'stream',
}

const FALLBACKS: Record<Place, Cause> = {
  key: 'other',
  sluice: 'other',
  connection: 'unreachable',
  chatgpt: 'rejected',
  stream: 'chatgpt_error',
}

/** Causes whose text says less than the error code. */
const UNNAMED: ReadonlySet<Cause> = new Set(['rejected', 'other'])
/** Causes with one account at most, or where the number does not matter. */
const WITHOUT_ACCOUNTS: ReadonlySet<Cause> = new Set(['completed', 'cancelled', 'stream_cut_off', 'other'])

const rejectedAs = (cause: Cause, own: Cause = 'invalid_request'): Record<Place, Cause> => ({
  key: own,
  sluice: own,
  connection: cause,
  chatgpt: cause,
  stream: cause,
})

const brokenAs = (cause: Cause): Record<Place, Cause> => ({
  key: cause,
  sluice: cause,
  connection: cause,
  chatgpt: cause,
  stream: 'stream_cut_off',
})

const MODEL = rejectedAs('rejected_model', 'unknown_model')
const CREDENTIALS: Cause = 'rejected_credentials'

/** By error code, ours or ChatGPT's; codes with two meanings also by the phase. */
const CAUSES: Readonly<Record<string, Cause | Record<Place, Cause>>> = {
  invalid_request_error: { ...rejectedAs('rejected_request'), key: 'key_restriction' },
  malformed_json: 'invalid_request',
  unsupported_encoding: 'invalid_request',
  unsupported_media_type: 'invalid_request',
  unsupported_parameter: rejectedAs('rejected_request'),
  fast_mode_prohibited: 'invalid_request',
  payload_too_large: rejectedAs('rejected_input', 'request_too_large'),
  model_not_found: MODEL,
  model_not_supported: MODEL,
  model_not_allowed: 'key_restriction',
  account_outside_pool: 'key_restriction',
  previous_response_not_found: rejectedAs('rejected_response', 'unknown_response'),
  // limits
  usage_limit_reached: 'accounts_limited',
  insufficient_quota: 'accounts_limited',
  usage_not_included: 'accounts_limited',
  quota_exceeded: 'accounts_limited',
  workspace_owner_credits_depleted: 'accounts_limited',
  workspace_member_credits_depleted: 'accounts_limited',
  workspace_owner_usage_limit_reached: 'accounts_limited',
  workspace_member_usage_limit_reached: 'accounts_limited',
  rate_limit_exceeded: { ...rejectedAs('rejected_rate', 'rejected_rate'), key: 'key_limit' },
  rate_limit_error: 'rejected_rate',
  // no account
  no_accounts: 'no_account',
  continuity_owner_unavailable: 'owner_unavailable',
  file_owner_unavailable: 'owner_unavailable',
  continuity_owner_conflict: 'owner_unavailable',
  account_stream_cap: 'accounts_busy',
  no_security_work_authorized_accounts: 'not_authorized',
  // rejected by ChatGPT
  context_length_exceeded: 'rejected_input',
  invalid_prompt: 'rejected_policy',
  cyber_policy: 'rejected_policy',
  content_policy_violation: 'rejected_policy',
  invalid_encrypted_content: 'rejected_reasoning',
  upstream_auth_failed: CREDENTIALS,
  invalid_api_key: CREDENTIALS,
  authentication_error: CREDENTIALS,
  token_revoked: CREDENTIALS,
  token_expired: CREDENTIALS,
  token_invalidated: CREDENTIALS,
  // ChatGPT failed
  server_is_overloaded: 'overloaded',
  overloaded_error: 'overloaded',
  slow_down: 'overloaded',
  upstream_error: 'chatgpt_error',
  server_error: 'chatgpt_error',
  upstream_timeout: brokenAs('timeout'),
  upstream_request_timeout: brokenAs('timeout'),
  stream_idle_timeout: brokenAs('timeout'),
  upstream_blocked: brokenAs('unreachable'),
  upstream_unreachable: brokenAs('unreachable'),
  stream_incomplete: brokenAs('unreachable'),
  socket_closed: brokenAs('unreachable'),
  // Sluice failed
  busy: 'busy',
  draining: 'draining',
  internal_error: { ...rejectedAs('chatgpt_error', 'internal_error') },
  database_unavailable: 'internal_error',
}
