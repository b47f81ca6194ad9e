/** Words for the request log, reports, explanations and the audit log. */
import type { WordsByRoute } from './words.ts'

export const LOG_WORDS: WordsByRoute = {
  'GET /api/request-logs': {
    does: 'Requests through the proxy, the newest first.',
    answer:
      '`{requests: [Entry], total, moreThan, hasMore, nextCursor, …}`; `total` is null beyond 10,000, as `moreThan` then says, and where they were not all looked at.',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/options': {
    does: 'The values that occur under the same filters, and the price table in force.',
    answer: '`{accountIds, modelOptions, apiKeys, statuses, …, pricesVersion}`',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/:id': {
    does: 'One request with its attempts, and for each every account with its score or the reason it was skipped.',
    answer: '`Entry` with `attempts`.',
    throws: ['not_found'],
  },
  'GET /api/rejected-clients': {
    does: 'Clients that were rejected before any account was asked, one row per client, reason and minute with a count, the newest first.',
    answer:
      '`{items: [{id, minute, lastAt, reason, count, clientIp, isSeveral, keyStart, apiKeyId, apiKeyName, model, route, useragent}], nextCursor}`; what belongs to one request is of the last one that was counted.',
    throws: ['permission_required'],
  },
  'GET /api/reports': {
    does: 'What was used by day, model, account and key, beside the days before. At most 730 days.',
    answer: '`{startDate, endDate, …}`, or CSV.',
    throws: ['permission_required', 'busy'],
  },
  'GET /api/explain': {
    does: 'Which account a request with this model and key would get now, and why not the others.',
    answer: '`{model, apiKey, strategy, outcome, chosen, sentence, candidates}`',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/audit-logs': {
    does: 'Who changed what, when and from where, the newest first.',
    answer:
      '`{items: [{id, timestamp, action, severity, actor: {userId, username, roleSlug, authMethod}, target: {type, id} | null, actorIp, details}], nextCursor}`',
  },
}
