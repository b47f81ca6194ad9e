/** Descriptions for the request log, reports, the routing simulator and the audit log. */
import type { WordsByRoute } from './words.ts'

export const LOG_WORDS: WordsByRoute = {
  'GET /api/request-logs': {
    does: 'Logged requests, newest first.',
    answer:
      '`{requests: [Entry], total, moreThan, hasMore, nextCursor, …}`. `total` is null above 10,000 (`moreThan` says so) and when the search stopped early. `result` says in words what happened to a request; `cause` is the stable name of that result.',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/options': {
    does: 'The values that occur under the same filters, and the version of the price table.',
    answer: '`{accountIds, modelOptions, apiKeys, statuses, …, pricesVersion}`',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/:id': {
    does: 'One request with its attempts. Each attempt lists every account with its score or the reason it was skipped.',
    answer: '`Entry` with `attempts`.',
    throws: ['not_found'],
  },
  'GET /api/rejected-clients': {
    does: 'Clients that were rejected before an account was tried, newest first: one row per client, reason and minute, with a count.',
    answer:
      '`{items: [{id, minute, lastAt, reason, result, count, clientIp, isSeveral, keyStart, apiKeyId, apiKeyName, model, route, useragent}], nextCursor}`. Model, route and user agent are those of the last request in the row.',
    throws: ['permission_required'],
  },
  'GET /api/reports': {
    does: 'Usage by day, model, account and key, compared with the previous period. At most 730 days.',
    answer: '`{startDate, endDate, …}`, or CSV.',
    throws: ['permission_required', 'busy'],
  },
  'GET /api/explain': {
    does: 'Which account a request with this model and key would use now, and why not the others.',
    answer: '`{model, apiKey, strategy, outcome, chosen, sentence, candidates}`',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/audit-logs': {
    does: 'Who changed what, when and from where, newest first.',
    answer:
      '`{items: [{id, timestamp, action, severity, actor: {userId, username, roleSlug, authMethod}, target: {type, id} | null, actorIp, details}], nextCursor}`',
  },
}
