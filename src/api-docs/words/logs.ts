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
  'GET /api/request-logs/export': {
    does: 'The filtered request log as a file, newest first. After 100,000 rows a last line says that rows are missing.',
    answer: 'CSV, or one JSON object per line.',
    type: 'text/csv',
    throws: ['permission_required'],
  },
  'GET /api/usage/summary': {
    does: 'What is left of the windows of the pool, weighted by plan, and the sums of the last seven days.',
    answer:
      '`{primaryWindow, secondaryWindow, monthlyWindow, cost, metrics}`, windows `{remainingPercent, capacityCredits, remainingCredits, resetAt, windowMinutes}` or null.',
  },
  'GET /api/usage/history': {
    does: 'The average that was left of the five-hour window of each account.',
    answer: '`{windowHours, accounts: [{accountId, remainingPercentAvg, capacityCredits, remainingCredits}]}`',
  },
  'GET /api/usage/window': {
    does: 'What is left of one window of each account now.',
    answer: '`{windowKey, windowMinutes, accounts}`, accounts as in the history.',
  },
  'GET /api/request-logs/:id': {
    does: 'One request with its attempts. Each attempt lists every account with its score or the reason it was skipped.',
    answer: '`Entry` with `attempts`.',
    throws: ['not_found'],
  },
  'GET /api/conversations': {
    does: 'Conversations by their last request, newest first. Covers the last 30 days.',
    answer:
      '`{conversations: [{conversationId, firstRequest, lastRequest, requestCount, representativeAccountId, representativeAccount, remainingAccountCount, apiKeyId, apiKeyName, representativeModel, remainingModelCount, totalTokens, inputTokens, cachedInputTokens, outputTokens, cachedShare, totalCostUsd, errors, moves, isPartial}], total, hasMore, nextCursor, searchedTo}`. Sums are of the newest 1,000 requests of each',
    throws: ['busy'],
  },
  'GET /api/conversations/:hash': {
    does: 'One conversation: accounts, models, tokens, cost, moves, errors, and how its newest requests ended.',
    answer:
      'The same sums, and `start`, `latest`, `accounts`, `modelStats`, `outcomes`, `movedInputTokens`, `avoidableMoves`, `totalElapsedTime` (ms).',
    throws: ['not_found', 'busy'],
  },
  'GET /api/rejected-clients': {
    does: 'Clients that were rejected before an account was tried: one row per client, reason and minute, newest first.',
    answer:
      '`{items: [{id, minute, lastAt, reason, count, clientIp, isSeveral, keyStart, apiKeyId, apiKeyName, model, route, useragent}], nextCursor}`; details of a single request are those of the last one counted.',
    throws: ['permission_required'],
  },
  'GET /api/reports': {
    does: 'Usage by day, model, account and key, compared with the days before. Up to 730 days.',
    answer:
      '`{startDate, endDate, …}`, or CSV. Sums include `moves` of conversations between accounts, `avoidableMoves` and `movedInputTokens`.',
    throws: ['permission_required', 'busy'],
  },
  'GET /api/reports/strategies': {
    does: 'Replays the logged requests of the last days against every routing strategy. Takes seconds; closing the connection stops it.',
    answer:
      '`{days, seed, requests, sufficient, strategies: [{name, rejected, moves, unusedPercent, spread}], …}`: averages of 20 runs; `spread` has the lowest and the highest value of each. `sufficient`: the log covers at least 7 days. `moveRules` compares, for the strategy in use, moves that pay (`priced`) with moves always at 95 % of the five-hour window (`fixed`): `{moves, movedTokens, rejected}`.',
    throws: ['busy'],
  },
  'GET /api/explain': {
    does: 'Which account a request with this model and key would use now, and why not the others.',
    answer: '`{model, apiKey, strategy, outcome, chosen, sentence, candidates}`',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/captures': {
    does: 'Captures, newest first: what was recorded of one key or account, until when, and how much of it there is.',
    answer:
      '`{items: [{id, isRunning, keyId, keyName, accountId, accountName, startedBy, startedAt, endsAt, endedAt, endReason, deletedAt, maxMiB, bytes, requests, droppedBytes}]}`; `endReason` is `stopped`, `time`, `size` or `disk`.',
    throws: ['permission_required'],
  },
  'POST /api/captures': {
    does: 'Starts recording all requests and answers of one key or account in full, except live calls. Every user sees that it runs.',
    status: 201,
    answer: 'The capture.',
    throws: ['permission_required', 'step_up_required', 'validation_error', 'capture_conflict'],
  },
  'DELETE /api/captures/:id': {
    does: 'Stops a capture. What it holds stays until `captureRetentionDays` are over.',
    answer: 'The capture.',
    throws: ['permission_required', 'not_found'],
  },
  'DELETE /api/captures/:id/requests': {
    does: 'Deletes a capture and everything it holds from the disk.',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/conversation-archive': {
    does: 'Captured requests, newest first.',
    answer:
      '`{items: [{id, captureId, requestedAt, method, path, transport, requestKind, model, keyId, keyName, status, httpStatus, errorCode, errorMessage, bytes, droppedBytes}], nextCursor}`; `id` is that of the request log.',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/conversation-archive/:id': {
    does: 'One captured request in full, without credentials. Each reading is written to the audit log.',
    answer:
      '`Item` with `request: {headers, body, bodyBase64, bodyBytes}`, `attempts: [{accountId, accountName, sourceId, sourceName, startedAt, status, headers, error, events: [{at, type, data}] | null, body, bodyBase64}]`, `isCut`, `curl`. With `part`, the bytes.',
    throws: ['permission_required', 'not_found'],
  },
  'DELETE /api/conversation-archive/:id': {
    does: 'Deletes one captured request from the disk.',
    throws: ['permission_required', 'not_found'],
  },
  'GET /api/audit-logs': {
    does: 'Who changed what, when and from where, newest first.',
    answer:
      '`{items: [{id, timestamp, action, severity, actor: {userId, username, roleSlug, authMethod}, target: {type, id} | null, actorIp, details}], nextCursor}`',
  },
}
