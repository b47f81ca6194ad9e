/** API descriptions of settings, firewall, backups, health and this documentation. */
import type { WordsByRoute } from './words.ts'

export const SERVICE_WORDS: WordsByRoute = {
  'GET /api/settings': { does: 'All settings, and `version`.', answer: 'The settings by name.' },
  'PATCH /api/settings': {
    does: 'Changes the settings you send and keeps the rest.',
    answer: 'All settings, as with `GET`.',
    throws: ['settings_conflict', 'invalid_totp_config'],
    example: { routingStrategy: 'round_robin' },
  },
  'PUT /api/settings': {
    does: 'The same as `PATCH`. You can send back everything that `GET` returned: read-only fields are ignored.',
    answer: 'All settings, as with `GET`.',
    throws: ['settings_conflict', 'invalid_totp_config'],
    example: { routingStrategy: 'round_robin' },
  },
  'GET /api/firewall/ips': {
    does: 'The addresses that may call the model routes. An empty list allows every address.',
    answer: '`{mode: "allow_all" | "allowlist_active", entries: [{ipAddress, createdAt}]}`',
  },
  'POST /api/firewall/ips': {
    does: 'Allows an address or range.',
    answer: 'The entry in canonical form.',
    throws: ['invalid_ip', 'ip_exists'],
    example: { ipAddress: '192.0.2.0/24' },
  },
  'DELETE /api/firewall/ips/:ip': {
    does: 'Deletes an entry, in any notation.',
    answer: '`{status: "deleted"}`',
    throws: ['ip_not_found'],
  },
  'GET /api/quota-planner/settings': {
    does: 'The settings of the quota planner. `GET /api/settings` has them, too (`planner…`).',
    answer: '`{mode, zone, workingDays, workingHoursStart, workingHoursEnd, maxStartsPerDay, minGainPercent}`',
  },
  'PUT /api/quota-planner/settings': {
    does: 'Changes settings of the quota planner. Missing fields stay as they are; unknown ones are rejected.',
    answer: 'As `GET`.',
    throws: ['invalid_quota_planner'],
  },
  'GET /api/quota-planner/forecast': {
    does: 'The expected demand per 15 minutes in capacity credits, and what the windows can serve, by replay. `sufficient`: the log covers at least 14 days.',
    answer:
      '`{generatedAt, horizonHours, slotSeconds, sufficient, coveredDays, totalDemandUnits, peakSlotStart, peakDemandUnits, simulation: {unmetDemand, wastedCapacity}, slots: [{slotStart, demandUnits, servableUnits, requestCount, source}]}`',
    throws: ['busy'],
  },
  'GET /api/quota-planner/decisions': {
    does: 'Planned, made, skipped and canceled starts of five-hour windows, latest first. `score` is the gain in percent.',
    answer:
      '`[{id, createdAt, mode, accountId, action, scheduledAt, executedAt, score, reason, details, status, idempotencyKey}]`',
  },
  'POST /api/quota-planner/decisions/:id/cancel': {
    does: 'Cancels a planned start. The account is not planned again that day.',
    answer: '`{decisionId, status, reason, requestId, executedAt}`',
    throws: ['quota_planner_decision_not_found', 'invalid_quota_planner'],
  },
  'POST /api/quota-planner/warm-now': {
    does: 'Starts the five-hour window of an account with one tiny request. `skipped` with a reason when it has started already.',
    answer: '`{decisionId, status, reason, requestId, executedAt}`',
    throws: ['account_not_found'],
  },
  'GET /api/sticky-sessions': {
    does: 'The accounts that conversations and ciphertext stay on.',
    answer:
      '`{entries: [{key, displayName, kind, accountId, accountName, createdAt, updatedAt, expiresAt, isStale}], stalePromptCacheCount, total, hasMore}`',
  },
  'POST /api/sticky-sessions/purge': {
    does: 'Deletes expired sessions.',
    answer: '`{deletedCount}`',
    example: { staleOnly: true },
  },
  'POST /api/sticky-sessions/delete': {
    does: 'Deletes sessions, so that their next request can use any account.',
    answer: '`{deletedCount, deleted: [{key, kind}], failed: [{key, kind, reason}]}`',
    example: { sessions: [{ kind: 'conversation', key: '3fa85f6457174562' }] },
  },
  'POST /api/sticky-sessions/delete-filtered': {
    does: 'Deletes all sessions that match. Without filters, all of them. Sessions used in the meantime stay.',
    answer: '`{deletedCount}`',
    example: { staleOnly: false, accountQuery: 'ada@example.com', keyQuery: '' },
  },
  'DELETE /api/sticky-sessions/:kind/:key{.+}': {
    does: 'Deletes one session.',
    answer: '`{status: "deleted"}`',
    throws: ['sticky_session_not_found'],
  },
  'GET /api/backups': {
    does: 'All backups, newest first.',
    answer: '`{backups: [{name, bytes, createdAt}], backupIntervalHours, backupKeep}`',
  },
  'POST /api/backups': {
    does: 'Creates a backup now, at most one per minute. A large database takes longer; requests continue.',
    answer: '`{name, bytes, createdAt}`',
    status: 201,
    throws: ['busy'],
  },
  'GET /api/backups/:name': {
    does: 'Downloads a backup. Needs every permission. Its secrets stay encrypted, because the key is not included.',
    answer: 'The file.',
    type: 'application/vnd.sqlite3',
    throws: ['not_found'],
  },
  'GET /api/doctor': {
    does: 'What is wrong and how to fix it. Without permission to change security you get a summary.',
    answer: '`{verdict, counts, findings, checkedAt, now}`',
  },
  'GET /api/events': {
    does: 'Live events that say which kind of data changed, without the data.',
    answer: 'Server-sent events.',
    type: 'text/event-stream',
    throws: ['busy'],
  },
  'GET /api/openapi.json': {
    does: 'This reference as OpenAPI, generated by the running server.',
    answer: 'An OpenAPI 3.1 document.',
  },
  'GET /metrics': {
    does: 'Prometheus text, for this machine or with `METRICS_TOKEN` as a bearer token.',
    answer: 'Metrics.',
    type: 'text/plain',
    throws: ['authentication_required', 'password_rate_limited'],
  },
  'GET /health': { does: 'Shows that the process answers.', answer: '`{status: "ok"}`' },
  'GET /health/ready': {
    does: 'Shows that the server is ready for requests. 503 while it stops or cannot write the request log.',
    answer: '`{status, checks}`',
  },
  'GET /health/startup': { does: 'Shows that the server has started.', answer: '`{status: "ok"}`' },
}
