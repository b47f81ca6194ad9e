/** Descriptions for the request log, reports, the routing simulator and the audit log. */
import type { WordsByRoute } from './words.ts'

export const LOG_WORDS: WordsByRoute = {
  'GET /api/request-logs': {
    does: 'Requests, newest first.',
    answer:
      '`{requests: [Entry], total, moreThan, hasMore, nextCursor, …}`; `total` is null if there are more than 10,000, which `moreThan` then says, or if not all were counted.',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/options': {
    does: 'The values that occur with the same filters, and the current price table.',
    answer: '`{accountIds, modelOptions, apiKeys, statuses, …, pricesVersion}`',
    throws: ['permission_required'],
  },
  'GET /api/request-logs/:id': {
    does: 'One request with its attempts. Each attempt lists every account with its score or the reason it was skipped.',
    answer: '`Entry` with `attempts`.',
    throws: ['not_found'],
  },
  'GET /api/rejected-clients': {
    does: 'Clients that were rejected before an account was tried: one row per client, reason and minute, newest first.',
    answer:
      '`{items: [{id, minute, lastAt, reason, count, clientIp, isSeveral, keyStart, apiKeyId, apiKeyName, model, route, useragent}], nextCursor}`; details of a single request are those of the last one counted.',
    throws: ['permission_required'],
  },
  'GET /api/reports': {
    does: 'Usage by day, model, account and key, compared with the days before. Up to 730 days.',
    answer: '`{startDate, endDate, …}`, or CSV.',
    throws: ['permission_required', 'busy'],
  },
  'GET /api/reports/strategies': {
    does: 'Replays the logged requests of the last days against every routing strategy. Takes seconds; closing the connection stops it.',
    answer:
      '`{days, seed, requests, sufficient, strategies: [{name, rejected, moves, unusedPercent, spread}], …}`: averages of 20 runs; `spread` has the lowest and the highest value of each. `sufficient`: the log covers at least 7 days.',
    throws: ['busy'],
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
