/** API descriptions of model routes. */
import type { Words, WordsByRoute } from './words.ts'

/** The native client handles these statuses better. */
const NATIVE_TURN: Words['throws'] = [['payload_too_large', 400], 'model_not_found', 'fast_mode_prohibited']
const PUBLIC_TURN: Words['throws'] = [
  'payload_too_large',
  'model_not_allowed',
  'unsupported_parameter',
  'fast_mode_prohibited',
]
/** Errors of the proof that the client owns the account. */
const OWNER_ERRORS = ['rate_limit_exceeded', ['upstream_unreachable', 503]] as const satisfies Words['throws']
const UPSTREAM_ERRORS = ['upstream_error', 'upstream_unreachable', 'upstream_timeout'] as const
const SOCKET: Words['throws'] = ['not_found', 'draining', 'busy', 'bad_upgrade']

/** Relayed routes, whose bodies and answers are those of ChatGPT. */
const RELAYED: Omit<Words, 'does'> = {
  answer: 'As ChatGPT answered.',
  isTurn: true,
  throws: [['payload_too_large', 400]],
}
const RELAYED_OBJECT: Omit<Words, 'does'> = { ...RELAYED, document: 'A JSON object. It is passed on as it is.' }
const GOAL = 'The goal; `{"goal": null}` where ChatGPT has none.'
const KEY_SET: Omit<Words, 'does'> = { ...RELAYED, answer: 'A key set, kept for five minutes.' }

const NATIVE_IMAGE: Omit<Words, 'does'> = {
  answer: 'As ChatGPT answered: JSON with `b64_json`, or server-sent events.',
  isTurn: true,
  throws: [['payload_too_large', 400], 'model_not_found', 'no_plan_support_for_model'],
  document: 'A JSON object. It is passed on byte for byte.',
  example: { model: 'gpt-image-2', prompt: 'A blue square', size: 'auto', quality: 'auto', background: 'auto' },
}
const PUBLIC_IMAGE: Omit<Words, 'does'> = {
  answer: '`{created, data: [{b64_json}], usage}`, or server-sent events with `stream: true`.',
  isTurn: true,
  throws: ['payload_too_large', 'model_not_allowed', 'no_plan_support_for_model'],
  document: 'An Images request. Fields that ChatGPT does not know are dropped and listed in `x-sluice-dropped-fields`.',
}
const WARMUP: Omit<Words, 'does'> = {
  answer:
    '`{mode, total_accounts, submitted: [{account_id, request_id, model}], skipped: [{account_id, reason}], failed: [{account_id, error_code, error_message}]}`; 200 also when some fail.',
  throws: ['warmup_ineligible', 'payload_too_large', 'draining', 'busy'],
}

const NATIVE_USAGE: Words = {
  does: 'The limits in the format of the Codex CLI: of the key, else of the pool.',
  answer:
    '`{plan_type, rate_limit: {allowed, limit_reached, primary_window, secondary_window, monthly_window}, credits, rate_limit_reset_credits, additional_rate_limits}`. `rate_limit` is null while the quota is hidden.',
  throws: OWNER_ERRORS,
}
const NATIVE_CREDITS: Words = {
  does: 'The reset credits of the account that the client owns, in the format of the Codex CLI.',
  answer: '`{available_count, credits}`',
  throws: [...OWNER_ERRORS, ...UPSTREAM_ERRORS],
}
const NATIVE_CONSUME: Words = {
  does: 'Uses the reset credit of the owned account that expires first.',
  answer: '`{code, windows_reset}`',
  throws: [
    ...OWNER_ERRORS,
    'account_not_reset_credit_applicable',
    'no_available_reset_credit',
    'reset_credit_redeem_in_progress',
    'busy',
    ...UPSTREAM_ERRORS,
  ],
  example: { redeem_request_id: '…' },
}

const OFFER = 'The SDP offer, as the client sends it. It is passed on byte for byte. Up to 16 MiB.'
const CALL: Omit<Words, 'does'> = {
  answer: 'The SDP answer, with the call in `Location`. The call stays on its account for two hours.',
  isTurn: true,
  throws: ['realtime_call_binding_failed'],
  document: OFFER,
}
const NATIVE_CALL: Omit<Words, 'does'> = { ...CALL, throws: [['payload_too_large', 400], ...(CALL.throws ?? [])] }
const PUBLIC_CALL: Omit<Words, 'does'> = { ...CALL, throws: ['payload_too_large', ...(CALL.throws ?? [])] }
const SIDEBAND: Omit<Words, 'does'> = {
  answer: 'The upgrade; 404 without `Upgrade: websocket`. Frames up to 16 MiB pass untouched.',
  status: 101,
  throws: [
    ...SOCKET,
    'invalid_realtime_call_id',
    'realtime_call_not_found',
    'too_many_sockets',
    'continuity_owner_unavailable',
    'upstream_websocket_handshake_failed',
    'upstream_websocket_subprotocol_mismatch',
    'realtime_live_unavailable',
  ],
}

const QUESTION = { model: 'gpt-5.5', input: 'Say hello.' }
const CLIENT_VERSION = { client_version: 'Version of the Codex CLI, to get the catalog for it.' }

export const MODEL_WORDS: WordsByRoute = {
  'POST /backend-api/codex/responses': {
    does: 'A model request of the Codex CLI or its IDE extension.',
    answer: 'Always server-sent events, exactly as ChatGPT sent them.',
    type: 'text/event-stream',
    isTurn: true,
    throws: NATIVE_TURN,
    document: 'A Responses request. It is passed on byte for byte.',
    example: { ...QUESTION, stream: true },
  },
  'GET /backend-api/codex/responses': {
    does: 'Responses over a WebSocket, for the Codex CLI.',
    answer: 'The upgrade. 426 `upgrade_required` while the transport is set to `http`.',
    status: 101,
    throws: [...SOCKET, 'upgrade_required'],
  },
  'POST /backend-api/codex/responses/compact': {
    does: 'Compacts a conversation of the Codex CLI.',
    answer: 'A JSON document.',
    isTurn: true,
    throws: NATIVE_TURN,
    document: 'A compaction request. It is passed on as it is.',
    example: QUESTION,
  },
  'POST /backend-api/codex/alpha/search': { does: 'Web search of the Codex CLI.', ...RELAYED },
  'POST /backend-api/codex/memories/trace_summarize': {
    does: 'Summarizes a trace for the memories of the Codex CLI.',
    ...RELAYED,
  },
  'POST /backend-api/codex/safety/arc': { does: 'A safety check of the Codex CLI.', ...RELAYED },
  'POST /backend-api/codex/analytics-events/events': {
    ...RELAYED,
    does: 'Telemetry of the Codex CLI, discarded unless `forwardClientAnalytics` is on.',
    answer: '202 `{}`, or the answer of ChatGPT.',
  },
  'GET /backend-api/codex/thread/goal/get': { does: 'The goal of a thread.', ...RELAYED, answer: GOAL },
  'POST /backend-api/codex/thread/goal/get': { does: 'The goal of a thread.', ...RELAYED_OBJECT, answer: GOAL },
  'POST /backend-api/codex/thread/goal/set': { does: 'Sets the goal of a thread.', ...RELAYED_OBJECT },
  'POST /backend-api/codex/thread/goal/clear': { does: 'Clears the goal of a thread.', ...RELAYED_OBJECT },
  'GET /backend-api/codex/agent-identities/jwks': { does: 'Public keys of agent identities.', ...KEY_SET },
  'GET /backend-api/wham/agent-identities/jwks': { does: 'Public keys of agent identities.', ...KEY_SET },
  'POST /backend-api/codex/images/generations': { does: 'Makes an image for the Codex CLI.', ...NATIVE_IMAGE },
  'POST /backend-api/codex/images/edits': { does: 'Edits images for the Codex CLI.', ...NATIVE_IMAGE },
  'POST /backend-api/files': {
    does: 'Announces a file for model requests. The client uploads it to the `upload_url` of the answer itself.',
    answer: '`{file_id, upload_url}`',
    isTurn: true,
    throws: [['payload_too_large', 400], 'upstream_blocked'],
    document: '`{file_name, file_size, use_case: "codex"}`, at most 512 MiB. It is passed on as it is.',
    example: { file_name: 'notes.pdf', file_size: 12_345, use_case: 'codex' },
  },
  'POST /backend-api/files/:id/uploaded': {
    does: 'Finalizes an uploaded file on the account that announced it, and waits up to 30 seconds until it is ready.',
    answer: '`{status, download_url, file_name, mime_type}`',
    isTurn: true,
    throws: [['payload_too_large', 400], 'file_owner_unavailable', 'upstream_blocked'],
  },
  'GET /backend-api/codex/opportunistic/admission': {
    does: 'Whether a request of this key would be admitted now. Only opportunistic keys can be rejected.',
    answer: '`{admitted: true}`',
    query: { model: 'The model to ask about. Absent: any.' },
    throws: ['rate_limit_exceeded', 'model_not_found', 'draining', 'busy'],
  },
  'POST /backend-api/codex/realtime/calls': { does: 'Starts a voice call of the Codex CLI.', ...NATIVE_CALL },
  'POST /backend-api/codex/live': { does: 'Starts a live call of the desktop app.', ...NATIVE_CALL },
  'GET /backend-api/codex/:callId{rtc_.*|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}}': {
    does: 'The WebSocket of a live call, for the key that created it.',
    ...SIDEBAND,
  },
  'GET /backend-api/codex/models': {
    does: 'The model catalog as ChatGPT sent it, plus `data` for SDKs.',
    answer: 'The catalog with an `ETag`.',
    query: CLIENT_VERSION,
  },
  'GET /api/codex/usage': NATIVE_USAGE,
  'GET /wham/rate-limit-reset-credits': NATIVE_CREDITS,
  'POST /api/codex/rate-limit-reset-credits/consume': NATIVE_CONSUME,
  'GET /api/fleet/summary': {
    does: 'The accounts of the key with what is left of their windows, for companion tools.',
    answer:
      '`{accounts: [{accountId, displayName, email, status, planType, primary, secondary, lastRefreshAt, usageRefreshedAt}]}`. A window is `{remainingPercent, resetAt, windowMinutes}`. E-mail addresses are masked unless the owner of the key has `accounts:write`.',
  },
  'GET /api/fleet/observability': {
    does: 'How busy the accounts of the key were in the last 30 minutes and 2 hours, and how many conversations they keep.',
    answer: '`{available, generatedAt, source, pressure, sticky}`',
  },
  'POST /api/fleet/refresh': {
    does: 'Reads the usage of the key’s accounts from ChatGPT now. Once in 10 seconds for each key.',
    answer: '`{ok, usageWritten, accountCount, attemptedCount, generatedAt}`',
    throws: ['rate_limit_exceeded', 'draining', 'busy'],
  },
  'POST /v1/responses': {
    does: 'A model request of an OpenAI SDK.',
    answer: 'The response object, or server-sent events with `stream: true`.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document:
      'A Responses request. Fields that ChatGPT would reject are dropped and listed in `x-sluice-dropped-fields`.',
    example: QUESTION,
  },
  'GET /v1/responses': {
    does: 'Responses over a WebSocket.',
    answer: 'The upgrade; 404 without `Upgrade: websocket`.',
    status: 101,
    throws: SOCKET,
  },
  'GET /v1/responses/:id': {
    does: 'A stored response of this key.',
    answer: 'The response object as it was returned.',
    throws: ['not_found', 'unsupported_parameter'],
  },
  'DELETE /v1/responses/:id': {
    does: 'Deletes a stored response. Later responses that continue it keep their history.',
    answer: '`{id, object: "response", deleted: true}`',
    throws: ['not_found'],
  },
  'GET /v1/responses/:id/input_items': {
    does: 'The items a stored response was made from, with the conversation it continued.',
    answer: '`{object: "list", data: [Item], first_id, last_id, has_more}`',
    query: {
      limit: 'Number of items: 1 to 100. Default: 20.',
      order: '`desc` (newest first, the default) or `asc`.',
      after: 'ID of the item before the page.',
    },
    throws: ['not_found', 'invalid_request_error'],
  },
  'POST /v1/responses/compact': {
    does: 'Compacts a conversation.',
    answer: 'A JSON document.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document: 'A compaction request.',
    example: QUESTION,
  },
  'POST /v1/chat/completions': {
    does: 'A model request in the Chat Completions format.',
    answer: 'A completion, or chunks and `[DONE]` with `stream: true`.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document: 'A Chat Completions request, translated into a Responses request.',
    example: { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  'POST /v1/messages': {
    does: 'A model request in Anthropic’s Messages format.',
    answer: 'A message, or its events with `stream: true`. Errors are in Anthropic’s format.',
    isTurn: true,
    throws: [...PUBLIC_TURN.filter((code) => code !== 'fast_mode_prohibited'), ['fast_mode_prohibited', 403]],
    document: 'A Messages request, translated into a Responses request. The key may be in `x-api-key`.',
    example: { model: 'claude-opus-4-5', max_tokens: 1024, messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  'POST /v1/messages/count_tokens': {
    does: 'Estimates the input tokens of a Messages request. Uses no account.',
    answer: '`{input_tokens}`, with the header `x-sluice-estimate: true`.',
    throws: ['invalid_request_error', 'model_not_found', 'payload_too_large'],
    document: 'A Messages request.',
    example: { model: 'claude-opus-4-5', messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  'POST /v1/images/generations': {
    ...PUBLIC_IMAGE,
    does: 'Makes an image, as the Images API of OpenAI does.',
    example: { model: 'gpt-image-2', prompt: 'A blue square' },
  },
  'POST /v1/images/edits': {
    ...PUBLIC_IMAGE,
    does: 'Edits up to 16 images, as the Images API of OpenAI does.',
    document: 'A form with `image` files, or JSON with `images` as data URLs. Up to 64 MiB.',
    example: { prompt: 'Make it red', images: [{ image_url: 'data:image/png;base64,…' }] },
  },
  'POST /backend-api/transcribe': {
    does: 'Transcribes audio for the Codex CLI and its apps.',
    answer: '`{text}`, as ChatGPT answered.',
    isTurn: true,
    throws: [['payload_too_large', 400], 'model_not_found', 'upstream_blocked'],
    document: 'A form with `file`, up to 25 MiB, and `prompt`.',
  },
  'POST /v1/audio/transcriptions': {
    does: 'Transcribes audio with `gpt-4o-transcribe`. `x-sluice-model` says so, because `gpt-4o-mini-transcribe` and `whisper-1` are accepted too.',
    answer: '`{text}`; plain text with `response_format` `text`; server-sent events with `stream`.',
    isTurn: true,
    throws: ['payload_too_large', 'model_not_allowed', 'upstream_blocked'],
    document:
      'A form with `file`, up to 25 MiB, `model`, `prompt`, `response_format` and `stream`. Other fields are dropped and listed in `x-sluice-dropped-fields`.',
  },
  'POST /v1/embeddings': {
    does: 'Embeddings from a model source that serves them, in OpenAI’s format. `x-sluice-source` names the source.',
    answer: 'As the source answered.',
    isTurn: true,
    throws: [
      'model_not_found',
      'model_not_allowed',
      'model_source_busy',
      'model_source_unreachable',
      'model_source_credentials_error',
      'model_source_error',
      'invalid_upstream_response',
      'usage_unavailable',
    ],
    document: '`{model, input, …}`, sent to the source as it is.',
    example: { model: 'nomic-embed-text', input: 'Hello' },
  },
  'POST /v1/images/variations': { does: 'Not available: 404.', answer: 'Nothing.', throws: ['not_found'] },
  'POST /v1/realtime/calls': { does: 'Starts a voice call, as the Realtime API of OpenAI does.', ...PUBLIC_CALL },
  'POST /v1/live': { does: 'Starts a live call.', ...PUBLIC_CALL },
  'GET /v1/live/:callId': { does: 'The WebSocket of a live call, for the key that created it.', ...SIDEBAND },
  'GET /v1/realtime': {
    does: 'The same, with the call in the query.',
    ...SIDEBAND,
    query: { call_id: 'ID of the call.' },
  },
  'GET /v1/models': {
    does: 'The models this key may use. With the header `anthropic-version`, in Anthropic’s format, with each model also as `claude-<model>`.',
    answer: '`{object: "list", data: [Model]}`',
    query: CLIENT_VERSION,
  },
  'GET /v1/models/:id': { does: 'One model.', answer: '`Model`', throws: ['model_not_found'] },
  'POST /v1/warmup': {
    does: 'Starts the five-hour windows of the accounts the key may use, with one small request each.',
    ...WARMUP,
    example: { mode: 'normal' },
  },
  'POST /v1/warmup/:mode': { does: 'The same with the mode in the path and no body.', ...WARMUP },
  'GET /v1/usage': {
    does: 'Usage of this key, and what is left of its limits.',
    answer:
      '`{request_count, total_tokens, cached_input_tokens, total_cost_usd, limits, upstream_limits, account_pool_usage}`',
  },
  'GET /v1/capacity': {
    does: 'Whether a request with this key could start now, and otherwise how long it has to wait and why. It makes the same decision as routing, and sends nothing to ChatGPT.',
    answer:
      '`{can_start, account_available, waits_seconds, why, pool: {five_hour_left_percent, weekly_left_percent, used_up_at}, key: {limits}}`. `waits_seconds` is null if waiting does not help or the time is not known, `pool` if the key may not see it.',
  },
  'POST /mcp': {
    does: 'MCP server (streamable HTTP, no sessions) with the read-only tools `capacity`, `usage`, `models` and `why_last_request_failed`.',
    answer: 'A JSON-RPC message.',
  },
  'GET /mcp': {
    does: 'Not supported, like `DELETE`, because there are no sessions.',
    answer: 'Always an error.',
    throws: ['method_not_allowed'],
  },
  'GET /v1/reset-credit': {
    does: 'Available reset credits, soonest to expire first.',
    answer: '`[{account_id, email, redeem_id, expiredAt}]`',
  },
  'POST /v1/reset-credit': {
    does: 'Uses a reset credit of an account that the key may use.',
    answer: '`{code, windows_reset, redeemed_at}`',
    throws: [
      'account_outside_pool',
      'account_not_reset_credit_applicable',
      'no_available_reset_credit',
      'target_reset_credit_changed',
      'reset_credit_redeem_in_progress',
      'busy',
      'upstream_error',
      'upstream_unreachable',
      'upstream_timeout',
    ],
    example: { account_id: 'acc_…', redeem_id: '…' },
  },
}
