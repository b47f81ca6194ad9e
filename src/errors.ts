/** Every error Sluice can return, and the one class that carries it. Spec §7 and the proxy contract are this table. */
import { isBusy } from '../db/busy.ts'
import type { REJECTION_REASONS } from '../db/schema/rejections.ts'

export type RejectionReason = (typeof REJECTION_REASONS)[number]

export interface Rejection {
  reason: RejectionReason
  /** As returned by `keyStart`. */
  keyStart?: string | null
  /** Id of a known key. */
  keyId?: string
  model?: string
}

/** code → [HTTP status, default message, OpenAI `error.type` on model routes (derived from the status when absent)]. */
export const CODES = {
  // --- input
  invalid_request_error: [400, 'The request is not valid.'],
  validation_error: [422, 'Some fields are not valid. Correct them and try again.'],
  malformed_json: [400, 'The request body is not valid JSON.'],
  bad_host: [400, 'The Host header is missing or not valid. Open Sluice at its own address.'],
  payload_too_large: [413, 'The request body is too large.'],
  upload_timeout: [408, 'The upload timed out: no data arrived for 30 seconds.'],
  unsupported_encoding: [
    400,
    'The request body does not match its Content-Encoding, or that encoding is not supported.',
  ],
  unsupported_media_type: [415, 'The request body must be JSON. Send Content-Type: application/json.'],
  unsupported_parameter: [400, 'A parameter of the request is not supported.'],
  invalid_auth_json: [400, 'This file is not an auth.json of the Codex CLI.'],
  invalid_callback: [
    400,
    'This is not the URL your browser ended on after this sign-in. Copy it from the address bar and try again.',
  ],
  invalid_model_source_payload: [400, 'Some fields of the model source are not valid. Correct them and try again.'],
  invalid_import: [400, 'These files cannot be imported.'],
  would_lock_out: [409, 'This firewall list would shut out the address you are using. Add it to the list first.'],
  invalid_ip: [400, 'This is not an IP address or CIDR range.'],
  invalid_realtime_call_id: [400, 'The call ID is not valid. Use the one from the Location header of the call, once.'],
  invalid_schedule_type: [400, 'The type of the schedule must be daily.'],
  invalid_schedule_time: [400, 'The time must be HH:MM, from 00:00 to 23:59.'],
  invalid_schedule_timezone: [400, 'There is no such time zone. Use a name like Europe/Berlin, or server_default.'],
  invalid_schedule_days: [400, 'Choose at least one weekday: mon to sun, each at most once.'],
  invalid_schedule_threshold: [400, 'The spread must be 0 to 240 minutes.'],
  invalid_account_ids: [400, 'Choose at most 128 accounts that exist, each once.'],
  invalid_prompt: [400, 'The prompt can have at most 1000 characters.'],
  invalid_model: [400, 'No account offers this model.'],
  invalid_reasoning_effort: [400, 'The model does not have this reasoning effort.'],
  method_not_allowed: [405, 'Use POST. This endpoint has no sessions.'],
  upgrade_required: [426, 'WebSockets are turned off. Use HTTP POST.'],
  bad_upgrade: [
    400,
    'The connection could not be upgraded to a WebSocket. Check that a proxy in between forwards the upgrade.',
  ],
  // --- access
  invalid_api_key: [401, 'Invalid API key', 'authentication_error'],
  ip_forbidden: [403, 'Access denied for client IP', 'access_error'],
  account_outside_pool: [403, 'Account is outside the API key pool', 'permission_error'],
  model_not_allowed: [403, 'This API key does not have access to the model.', 'permission_error'],
  permission_required: [
    403,
    'You do not have permission to do this. Ask a user who manages users.',
    'permission_error',
  ],
  read_only_access: [403, 'You have read-only access. Ask a user who manages users for the role Operator or Admin.'],
  step_up_required: [403, 'Confirm that it is you.'],
  step_up_unavailable: [403, 'This change needs a confirmation. Set a password or two-factor authentication first.'],
  totp_enrollment_required: [403, 'Set up two-factor authentication first.'],
  insufficient_delegation: [403, 'You can only assign roles with permissions that you have yourself.'],
  authentication_required: [401, 'Sign in first.'],
  totp_required: [401, 'Enter the code from your authenticator app.'],
  invalid_credentials: [401, 'Wrong user name or password.'],
  proxy_auth_required: [401, 'Sign in through the reverse proxy.'],
  identity_not_provisioned: [401, 'You don’t have access yet. Ask an administrator to add you.'],
  account_disabled: [401, 'Your user is disabled. Ask an administrator to enable it.'],
  user_account_required: [401, 'Sign in as a user to do this.'],
  bootstrap_required: [
    401,
    'No password is set yet. You need the bootstrap token to set the first one from another machine.',
  ],
  bootstrap_unavailable: [
    401,
    'There is no bootstrap token. Set the first password on the server itself, or run: sluice bootstrap-token --rotate',
  ],
  invalid_key: [401, 'This key does not work. It may be wrong, turned off, expired or replaced.'],
  key_session_ended: [401, 'Enter your key again.'],
  holder_may_not_regenerate: [403, 'The owner of this key does not let its holder create a new secret.'],
  invalid_bootstrap_token: [401, 'The bootstrap token is wrong or was already used.'],
  cross_site_request_rejected: [403, 'Rejected: the request came from another site.'],
  // --- capability routing (spec §1)
  required_capability_transport_unsupported: [
    400,
    'Required capability routing is only supported over the Responses WebSocket transport.',
  ],
  fast_mode_prohibited: [400, 'Fast mode is not allowed here. Leave out service_tier.'],
  unsupported_required_capability: [400, 'The required capability is not supported.'],
  no_security_work_authorized_accounts: [503, 'No account is authorized for security work.'],
  // --- signing in
  password_management_disabled: [400, 'Passwords are turned off by the authentication mode.'],
  password_not_configured: [400, 'No password is set.'],
  guest_access_disabled: [400, 'Guest access is turned off.'],
  invalid_totp_setup: [400, 'Two-factor authentication is already set up or not available.'],
  invalid_totp_code: [400, 'The code is wrong or was already used.'],
  invalid_totp_config: [400, 'Set up your own two-factor authentication first.'],
  invalid_passkey: [400, 'The passkey was rejected. Try again or use your password.'],
  username_required: [422, 'Enter your user name.'],
  username_locked: [422, 'You cannot change the user name of this invite.'],
  role_not_assignable: [422, 'This role cannot be assigned to users. Choose another one.'],
  passkeys_unavailable: [409, 'Passkeys are not available at this address.'],
  password_already_configured: [409, 'A password is already set.'],
  other_users_exist: [409, 'There are other users or open invites. Delete them first.'],
  last_admin_protected: [409, 'At least one active administrator is required. Make another user Admin first.'],
  username_taken: [409, 'This user name is already taken. Choose another one.'],
  email_taken: [409, 'Another user has this e-mail address.'],
  admin_account_required: [409, 'Set a password first. Managing users needs a user of your own.'],
  self_modification_forbidden: [409, 'You cannot do this to yourself. Ask another administrator.'],
  invite_pending: [409, 'The invite has not been accepted yet.'],
  invite_not_pending: [409, 'This user has no open invite.'],
  sso_only_invite: [409, 'This user signs in through the reverse proxy and has no invite link.'],
  sso_not_available: [409, 'This sign-in method is turned off.'],
  identity_taken: [409, 'Another user already has this identity or is waiting for it.'],
  credential_required: [409, 'The user would have no way to sign in. Add another sign-in method first.'],
  already_signed_in: [409, 'You are already signed in. Sign out first.'],
  role_in_use: [409, 'Some users have this role. Give them another role first.'],
  role_taken: [409, 'A role with this name already exists. Choose another name.'],
  role_locked: [409, 'Built-in roles cannot be changed. Copy the role and change the copy.'],
  password_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  guest_password_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  totp_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  step_up_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  key_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  invite_rate_limited: [429, 'Too many attempts. Wait a minute and try again.'],
  own_account_rate_limited: [429, 'Too many changes to your profile. Wait a minute and try again.'],
  // --- resources
  user_not_found: [404, 'User not found.'],
  role_not_found: [404, 'Role not found.'],
  provider_not_found: [404, 'Sign-in provider not found.'],
  invite_not_found: [404, 'The invite link is no longer valid. Ask for a new one.'],
  not_found: [404, 'Not found. It may have been deleted, or the link is wrong.'],
  account_not_found: [404, 'This account does not exist. It may have been deleted.'],
  oauth_flow_not_found: [404, 'This sign-in no longer exists. Start a new one.'],
  import_not_found: [404, 'This preview has expired. Select the files again.'],
  invalid_quota_planner: [400, 'This setting of the quota planner is not valid.'],
  quota_planner_decision_not_found: [
    400,
    'This decision of the quota planner does not exist. It may have been replaced.',
  ],
  sticky_session_not_found: [404, 'This session is not kept on any account. It may have expired or been deleted.'],
  automation_not_found: [404, 'This automation does not exist. It may have been deleted.'],
  automation_run_not_found: [404, 'This run does not exist. Runs are deleted after 90 days.'],
  ip_not_found: [404, 'This address is not on the list.'],
  model_not_found: [404, 'The model does not exist or you do not have access to it.'],
  warmup_ineligible: [400, 'The five-hour window of some accounts has started or is unknown.'],
  realtime_call_not_found: [404, 'This call does not exist, has expired, or was created with another API key.'],
  previous_response_not_found: [400, 'The previous response is not available. Send the full conversation.'],
  account_state_transition_invalid: [409, 'The account cannot change to that state now.'],
  account_not_probable: [409, 'This account cannot be probed while it is paused, deactivated or needs sign-in.'],
  account_not_reset_credit_applicable: [
    409,
    'Reset credits cannot be used while the account is paused, deactivated or needs sign-in.',
  ],
  no_available_reset_credit: [409, 'This account has no reset credits.'],
  reset_credit_redeem_in_progress: [
    409,
    'A reset credit of this account is being used right now. Try again in a moment.',
  ],
  target_reset_credit_changed: [409, 'Requested reset credit is unavailable'],
  proxy_endpoint_not_found: [400, 'This proxy does not exist. It may have been deleted.'],
  proxy_password_required: [400, 'Enter the password again, because the proxy has a new address.'],
  proxy_pool_not_found: [400, 'This proxy pool does not exist. It may have been deleted.'],
  proxy_pool_member_duplicate: [400, 'This proxy is already in the pool.'],
  proxy_pool_in_use: [409, 'Accounts or settings use this pool. Choose another pool there first.'],
  ip_exists: [409, 'This address is already on the list.'],
  turn_in_progress: [409, 'This socket already has two requests running. Wait for one to finish.'],
  window_start_refused: [
    409,
    'Windows of this account cannot be started: it has no five-hour window, or it is a last resort with too little left.',
  ],
  name_taken: [409, 'This name is already taken. Choose another one.'],
  capture_conflict: [409, 'This capture cannot be started now.'],
  key_limit_reached: [409, 'You have as many keys as you can have. Delete one first, or ask for a higher limit.'],
  edit_conflict: [409, 'This was changed while you were editing. Reload and try again.'],
  settings_conflict: [409, 'The settings were changed while you were editing. Reload and try again.'],
  // --- capacity
  rate_limit_exceeded: [429, 'This API key has reached one of its limits.'],
  share_used_up: [
    429,
    'You have used up your share of the pool, and other users need theirs now. Running conversations can continue.',
  ],
  usage_limit_reached: [429, 'The usage limit has been reached.', 'usage_limit_reached'],
  too_many_sockets: [429, 'Too many open sockets. Close one or use HTTP POST.', 'rate_limit_error'],
  account_stream_cap: [
    429,
    'All accounts are at their limit of parallel streams. Try again shortly.',
    'rate_limit_error',
  ],
  egress_unavailable: [503, 'The account has no outbound proxy that connects.'],
  no_accounts: [503, 'No account is available for this request.'],
  no_plan_support_for_model: [503, 'No account has a plan for this model.'],
  continuity_owner_unavailable: [503, 'The account that owns this conversation is not available.'],
  file_owner_unavailable: [502, 'The account that has the uploaded file is not available. Upload the file again.'],
  continuity_owner_conflict: [
    502,
    'The files of this request belong to different accounts. Upload them again, one after the other.',
  ],
  realtime_call_binding_failed: [503, 'The call was created, but Sluice could not register it. Create a new call.'],
  realtime_live_unavailable: [503, 'The live connection could not be opened. Try again shortly.'],
  busy: [503, 'Sluice is busy. Try again shortly.'],
  draining: [503, 'Sluice is restarting. Try again shortly.'],
  database_unavailable: [503, 'The database cannot be read or written. The server log says why.'],
  // --- upstream
  upstream_error: [502, 'ChatGPT returned an error.'],
  upstream_unreachable: [502, 'ChatGPT could not be reached.'],
  upstream_timeout: [504, 'ChatGPT did not answer in time.'],
  device_auth_unavailable: [502, 'OpenAI does not offer sign-in with a code right now. Use the browser instead.'],
  device_auth_failed: [502, 'OpenAI did not return a code. Try again, or use the browser instead.'],
  model_source_unreachable: [502, 'The model source could not be reached.'],
  model_source_credentials_error: [502, 'The model source rejected its API key. Set another one.'],
  model_source_busy: [
    503,
    'The model sources of this model are at their limits of parallel requests. Try again shortly.',
  ],
  model_source_requires_http_transport: [
    503,
    'This model is served by a model source, which needs HTTP. Send the request with POST.',
  ],
  usage_unavailable: [502, 'The model source did not report the usage, which the limits of this API key need.'],
  model_source_error: [502, 'The model source returned an error.'],
  invalid_upstream_response: [502, 'The model source did not answer with JSON.'],
  upstream_blocked: [502, 'The request was blocked on its way to ChatGPT.'],
  upstream_auth_failed: [502, 'ChatGPT rejected the credentials of the account.'],
  upstream_websocket_handshake_failed: [502, 'ChatGPT rejected the live connection.'],
  upstream_websocket_subprotocol_mismatch: [502, 'ChatGPT did not choose one of the offered WebSocket subprotocols.'],
  stream_incomplete: [502, 'The stream from ChatGPT ended before the response was complete.'],
  // --- internal
  internal_error: [500, 'Something went wrong in Sluice. The server log has the details.'],
} as const satisfies Record<string, readonly [status: number, message: string, type?: string]>

export type Code = keyof typeof CODES

export interface ErrorExtra {
  message?: string
  /** The field or permission the error is about. */
  param?: string
  /** Dashboard only: machine-readable facts (`fields`, `methods`). */
  details?: Record<string, unknown>
  /** For the log only, never for the client: may contain secrets and upstream bodies. */
  cause?: unknown
  /** Whole seconds; becomes `Retry-After`. */
  retryAfterSeconds?: number
  /** A status other than the table's (an oversized body on the native route is 400). */
  status?: number
  /** Retrying is pointless until an operator acts; becomes `X-Should-Retry: false`. */
  shouldRetry?: false
  /** Extra response headers on model routes, lower case. */
  headers?: Readonly<Record<string, string>>
  /** Extra members of the OpenAI envelope: `resets_at`. */
  envelope?: Record<string, unknown>
  /** An `error.type` other than the table's, for clients that depend on it. */
  type?: string
  /** The client itself was rejected: logged once a minute (decisions §3 "Rejected clients"). */
  rejection?: Rejection
  /** JSON that a model source answered with; sent in place of the envelope. */
  body?: string
  /** An upstream error passed on: its own code and type are kept. */
  upstream?: { code: string | null; type: string | null }
  /** Send it in the stream, where a native client handles it better than as a status. */
  inStream?: true
}

/** The only error class. Throw it where the error is known; `http/error-answer.ts` is the only reader. */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly status: number

  constructor(
    readonly code: Code,
    readonly extra: ErrorExtra = {},
  ) {
    super(extra.message ?? CODES[code][1], { cause: extra.cause })
    this.status = extra.status ?? CODES[code][0]
  }

  /** Unknown errors become `internal_error` with the cause for the log; a locked database is `busy`. */
  static from(err: unknown): AppError {
    if (err instanceof AppError) return err
    return isBusy(err)
      ? new AppError('busy', { retryAfterSeconds: 1, cause: err })
      : new AppError('internal_error', { cause: err })
  }
}

/** Envelope members that say when a limit ends. `resetsAt` and `now` in ms since epoch. */
export const resetMembers = (resetsAt: number, now: number) => ({
  resets_at: Math.ceil(resetsAt / 1000),
  resets_in_seconds: Math.max(0, Math.ceil((resetsAt - now) / 1000)),
})

const typeOfStatus = (status: number): string =>
  status === 401
    ? 'authentication_error'
    : status === 403
      ? 'permission_error'
      : status === 429
        ? 'rate_limit_error'
        : status >= 500
          ? 'server_error'
          : 'invalid_request_error'

/** The envelope of the model routes (decisions §2), also the `error` of a `response.failed` event. */
export const openAiError = (err: AppError) => {
  const fixed: string | undefined = CODES[err.code][2]
  return {
    message: err.message,
    type: err.extra.upstream?.type ?? err.extra.type ?? fixed ?? typeOfStatus(err.status),
    code: err.extra.upstream?.code ?? err.code,
    param: err.extra.param ?? null,
    ...err.extra.envelope,
  }
}

/** The status on Messages routes, whose clients know fewer codes. A 503 becomes 529, which means overloaded there. */
export const anthropicStatus = ({ status, code }: AppError): number => {
  if (code === 'fast_mode_prohibited') return 403
  if (status === 503) return 529
  return status < 500 && !(status in ANTHROPIC_TYPES) ? 400 : status
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  408: 'timeout_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

/** These clients send `speed`, which a user turns on and off. */
const FAST_MODE_PROHIBITED = 'Fast mode is not allowed for this API key. Turn it off.'

/** The error envelope of the Messages routes, also used for their `error` event. */
export const anthropicError = (err: AppError, requestId: string | null) => ({
  type: 'error' as const,
  error: {
    type: ANTHROPIC_TYPES[anthropicStatus(err)] ?? 'api_error',
    message: err.code === 'fast_mode_prohibited' ? FAST_MODE_PROHIBITED : err.message,
    details: { error_code: err.extra.upstream?.code ?? err.code }, // read by the SDK (1.14.0)
  },
  request_id: requestId,
})

const LONG_WAIT_SECONDS = 60

/** Error headers on a model route: over HTTP, and inside a socket's error frame. */
export const openAiErrorHeaders = ({ extra }: AppError): Record<string, string> => {
  const { retryAfterSeconds, shouldRetry, headers } = extra
  const isPointless = shouldRetry === false || (retryAfterSeconds ?? 0) >= LONG_WAIT_SECONDS
  return {
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(Math.max(1, Math.ceil(retryAfterSeconds))) }),
    ...(isPointless && { 'x-should-retry': 'false' }),
    ...headers,
  }
}
