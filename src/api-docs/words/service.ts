/** Words for settings, the firewall, backups, health and this documentation. */
import type { WordsByRoute } from './words.ts'

export const SERVICE_WORDS: WordsByRoute = {
  'GET /api/settings': { does: 'Every setting, and `version`.', answer: 'The settings by name.' },
  'PATCH /api/settings': {
    does: 'Changes what is named and leaves the rest.',
    answer: 'Every setting, as `GET`.',
    throws: ['settings_conflict', 'invalid_totp_config'],
    example: { routingStrategy: 'round_robin' },
  },
  'PUT /api/settings': {
    does: 'The same as `PATCH`. It also takes what `GET` returned as a whole: read-only fields are ignored.',
    answer: 'Every setting, as `GET`.',
    throws: ['settings_conflict', 'invalid_totp_config'],
    example: { routingStrategy: 'round_robin' },
  },
  'GET /api/firewall/ips': {
    does: 'The addresses that may call the model routes; an empty list lets everybody.',
    answer: '`{mode: "allow_all" | "allowlist_active", entries: [{ipAddress, createdAt}]}`',
  },
  'POST /api/firewall/ips': {
    does: 'Lets an address or a range in.',
    answer: 'The entry in canonical form.',
    throws: ['invalid_ip', 'ip_exists'],
    example: { ipAddress: '192.0.2.0/24' },
  },
  'DELETE /api/firewall/ips/:ip': {
    does: 'Removes an entry, however it is written.',
    answer: '`{status: "deleted"}`',
    throws: ['ip_not_found'],
  },
  'GET /api/backups': {
    does: 'The backups there are, the newest first.',
    answer: '`{backups: [{name, bytes, createdAt}], backupIntervalHours, backupKeep}`',
  },
  'POST /api/backups': {
    does: 'Makes a backup now, at most one a minute. Takes as long as the database is large; turns go on meanwhile.',
    answer: '`{name, bytes, createdAt}`',
    status: 201,
    throws: ['busy'],
  },
  'GET /api/backups/:name': {
    does: 'The file of a backup, for who holds every permission. Its secrets stay sealed: the key never goes along.',
    answer: 'The file.',
    type: 'application/vnd.sqlite3',
    throws: ['not_found'],
  },
  'GET /api/doctor': {
    does: 'What is wrong with the service and what to do; who may not change security gets the summary.',
    answer: '`{verdict, counts, findings, checkedAt, now}`',
  },
  'GET /api/events': {
    does: 'Which kinds of things changed, never what.',
    answer: 'Server-sent events.',
    type: 'text/event-stream',
    throws: ['busy'],
  },
  'GET /api/openapi.json': {
    does: 'This description, generated from the running service.',
    answer: 'An OpenAPI 3.1 document.',
  },
  'GET /metrics': {
    does: 'Prometheus text, for this machine or with `METRICS_TOKEN` as a bearer token.',
    answer: 'Metrics.',
    type: 'text/plain',
    throws: ['authentication_required', 'password_rate_limited'],
  },
  'GET /health': { does: 'The process answers.', answer: '`{status: "ok"}`' },
  'GET /health/ready': {
    does: 'New work should come here: not while shutting down, nor while the request log cannot be written; then 503.',
    answer: '`{status, checks}`',
  },
  'GET /health/startup': { does: 'Everything is loaded.', answer: '`{status: "ok"}`' },
}
