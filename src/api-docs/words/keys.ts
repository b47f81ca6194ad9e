/** Words for the keys of model clients. */
import type { WordsByRoute } from './words.ts'

export const KEY_WORDS: WordsByRoute = {
  'GET /api/api-keys/': { does: 'All keys with their limits and use.', answer: '`[Key]`' },
  'POST /api/api-keys/': {
    does: 'Creates a key. Giving it to another user, or to none, needs `api_keys:assign`; requiring keys with it needs `security:write`.',
    answer: '`Key` with `key`, which is shown here only.',
    throws: ['permission_required', 'step_up_required', 'step_up_unavailable'],
    example: { name: 'my-laptop' },
  },
  'PATCH /api/api-keys/:id': {
    does: 'Changes what is named of a key.',
    answer: '`Key`',
    throws: ['not_found', 'edit_conflict', 'permission_required'],
    example: { isActive: false },
  },
  'POST /api/api-keys/:id/regenerate': {
    does: 'Makes a new secret for the key; the old one is dead at once.',
    answer: '`Key` with a new `key`, which is shown here only.',
    throws: ['not_found'],
  },
  'DELETE /api/api-keys/:id': {
    does: 'Deletes a key; its log stays.',
    status: 204,
    throws: ['not_found'],
  },
  'GET /api/api-keys/:id/trends': {
    does: 'Seven days of a key, hour by hour.',
    answer: '`{keyId, cost: [{t, v}], tokens: [{t, v}]}`',
    throws: ['not_found'],
  },
  'GET /api/api-keys/:id/usage-7d': {
    does: 'Seven days of a key in sums, and by the accounts that served it.',
    answer:
      '`{keyId, totalTokens, totalCostUsd, totalRequests, cachedInputTokens, accountCosts: [{accountId, email, costUsd, isDeleted}]}`',
    throws: ['not_found'],
  },
  'POST /api/api-keys/:id/test': {
    does: 'Makes one small turn through the key. A turn that fails is a result, not an error.',
    answer:
      '`{isOk, model, account, attempts, firstTokenMs, totalMs, inputTokens, outputTokens, costUsd, text, error, …}`',
    throws: ['not_found'],
  },
}
