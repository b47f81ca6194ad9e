/** API descriptions of the API keys. */
import type { WordsByRoute } from './words.ts'

export const KEY_WORDS: WordsByRoute = {
  'GET /api/api-keys/': { does: 'All keys with their limits and usage.', answer: '`[Key]`' },
  'POST /api/api-keys/': {
    does: 'Creates a key. To assign it to another user or to no one, you need `api_keys:assign`. To require keys, you need `security:write`.',
    answer: '`Key` with `key`, which is shown only once.',
    throws: ['permission_required', 'step_up_required', 'step_up_unavailable', 'key_limit_reached'],
    example: { name: 'my-laptop' },
  },
  'PATCH /api/api-keys/:id': {
    does: 'Changes the fields you send.',
    answer: '`Key`',
    throws: ['not_found', 'edit_conflict', 'permission_required'],
    example: { isActive: false },
  },
  'POST /api/api-keys/:id/regenerate': {
    does: 'Creates a new secret for the key. The current one stops working immediately.',
    answer: '`Key` with a new `key`, which is shown only once.',
    throws: ['not_found'],
  },
  'DELETE /api/api-keys/:id': {
    does: 'Deletes a key. Its log entries stay.',
    status: 204,
    throws: ['not_found'],
  },
  'GET /api/api-keys/:id/trends': {
    does: 'The last seven days of a key by the hour.',
    answer: '`{keyId, cost: [{t, v}], tokens: [{t, v}]}`',
    throws: ['not_found'],
  },
  'GET /api/api-keys/:id/usage-7d': {
    does: 'The last seven days of a key: totals, and usage by account.',
    answer:
      '`{keyId, totalTokens, totalCostUsd, totalRequests, cachedInputTokens, accountCosts: [{accountId, email, costUsd, isDeleted}]}`',
    throws: ['not_found'],
  },
  'POST /api/key/session': {
    does: 'Opens the page of a key for 12 hours, in a cookie of its own. Needs `keyHolderPage`.',
    answer: '`{keyId, name}`',
    throws: ['not_found', 'ip_forbidden', 'invalid_key', 'key_rate_limited'],
    example: { secret: 'the API key' },
  },
  'POST /api/key/logout': {
    does: 'Closes the page of the key in this browser.',
    status: 204,
    throws: ['not_found', 'ip_forbidden'],
  },
  'POST /api/key/secret': {
    does: 'Creates a new secret for the key of this page, if its `holderMayRegenerate` is on.',
    answer: '`{id, name, key}`',
    throws: ['not_found', 'ip_forbidden', 'key_session_ended', 'holder_may_not_regenerate', 'key_rate_limited'],
  },
  'POST /api/api-keys/:id/test': {
    does: 'Sends one small request with the key. A failed request is a result, not an error.',
    answer:
      '`{isOk, model, account, attempts, firstTokenMs, totalMs, inputTokens, outputTokens, costUsd, text, error, …}`',
    throws: ['not_found'],
  },
}
