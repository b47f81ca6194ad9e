/** Words for the routes of model clients. */
import type { Words, WordsByRoute } from './words.ts'

/** The native client takes other statuses better. */
const NATIVE_TURN: Words['throws'] = [['payload_too_large', 400], 'model_not_found']
const PUBLIC_TURN: Words['throws'] = ['payload_too_large', 'model_not_allowed', 'unsupported_parameter']
const SOCKET: Words['throws'] = ['not_found', 'draining', 'busy', 'bad_upgrade']

const QUESTION = { model: 'gpt-5.5', input: 'Say hello.' }
const CLIENT_VERSION = { client_version: 'Of a native client: the catalog that its version is to be shown.' }

export const MODEL_WORDS: WordsByRoute = {
  'POST /backend-api/codex/responses': {
    does: 'A turn of Codex CLI and its IDE extension.',
    answer: 'Always server-sent events, as the upstream wrote them.',
    type: 'text/event-stream',
    isTurn: true,
    throws: NATIVE_TURN,
    document: 'A Responses request, handed on byte for byte.',
    example: { ...QUESTION, stream: true },
  },
  'GET /backend-api/codex/responses': {
    does: 'Responses over a WebSocket, for native clients.',
    answer: 'The upgrade. 426 `upgrade_required` while the transport is set to `http`.',
    status: 101,
    throws: [...SOCKET, 'upgrade_required'],
  },
  'POST /backend-api/codex/responses/compact': {
    does: 'Shortens a conversation of a native client.',
    answer: 'One document.',
    isTurn: true,
    throws: NATIVE_TURN,
    document: 'A compaction request, handed on.',
    example: QUESTION,
  },
  'GET /backend-api/codex/models': {
    does: 'The catalog as the upstream wrote it, with `data` for SDKs beside it.',
    answer: 'The catalog with an `ETag`.',
    query: CLIENT_VERSION,
  },
  'POST /v1/responses': {
    does: 'A turn of an OpenAI SDK.',
    answer: 'The response object; server-sent events with `stream: true`.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document:
      'A Responses request. Members the upstream would refuse are left out and named in `x-sluice-dropped-fields`.',
    example: QUESTION,
  },
  'GET /v1/responses': {
    does: 'Responses over a WebSocket.',
    answer: 'The upgrade; 404 without `Upgrade: websocket`.',
    status: 101,
    throws: SOCKET,
  },
  'POST /v1/responses/compact': {
    does: 'Shortens a conversation.',
    answer: 'One document.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document: 'A compaction request.',
    example: QUESTION,
  },
  'POST /v1/chat/completions': {
    does: 'A turn in the older form of OpenAI SDKs.',
    answer: 'A completion; chunks and `[DONE]` with `stream: true`.',
    isTurn: true,
    throws: PUBLIC_TURN,
    document: 'A Chat Completions request, translated into a Responses request.',
    example: { model: 'gpt-5.5', messages: [{ role: 'user', content: 'Say hello.' }] },
  },
  'GET /v1/models': {
    does: 'The models that the calling key may use.',
    answer: '`{object: "list", data: [Model]}`',
    query: CLIENT_VERSION,
  },
  'GET /v1/models/:id': { does: 'One of these models.', answer: '`Model`', throws: ['model_not_found'] },
  'GET /v1/usage': {
    does: 'What the calling key has used, and what is left for it.',
    answer:
      '`{request_count, total_tokens, cached_input_tokens, total_cost_usd, limits, upstream_limits, account_pool_usage}`',
  },
  'GET /v1/reset-credit': {
    does: 'Reset credits that can be redeemed, the one that expires soonest first.',
    answer: '`[{account_id, email, redeem_id, expiredAt}]`',
  },
  'POST /v1/reset-credit': {
    does: 'Redeems a reset credit of an account of the key’s pool.',
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
