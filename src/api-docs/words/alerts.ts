/** API descriptions of alerts and their channels. */
import type { WordsByRoute } from './words.ts'

const CHANNEL =
  '`{id, name, kind, server, hasSecret, events, minSeverity, quietHours, isActive, allowPrivateAddress, showEmails, repeatDaily, mayGetSecurity, lastDelivery, createdAt, updatedAt, version}`'
const ALERT =
  '`{key, event, severity, title, text, path, subject: {kind, id, name}, since, raisedAt, recoveredAt, acknowledgedAt, acknowledgedBy}`'
const INVALID = ['name_taken', 'permission_required'] as const

export const ALERT_WORDS: WordsByRoute = {
  'GET /api/alerts': {
    does: 'The active alerts, and the newest 100 past alerts of the last 30 days.',
    answer: `\`{standing, past}\`, lists of ${ALERT}.`,
  },
  'POST /api/alerts/:key/acknowledge': {
    does: 'Silences an active alert until it recovers: messages not yet sent are dropped, and it is not repeated.',
    answer: 'The alert.',
    throws: ['not_found'],
  },
  'GET /api/alerts/deliveries': {
    does: 'The messages of the last 30 days, newest first.',
    answer:
      '`{items: [{id, channelId, channelName, key, title, subjectName, edge, at, status, tries, nextAt, sentAt, lastError}]}`',
  },
  'GET /api/alerts/channels': {
    does: 'The channels that alerts are sent to. Targets and secrets are never returned.',
    answer: `\`{channels}\`, a list of ${CHANNEL}.`,
  },
  'POST /api/alerts/channels': {
    does: 'Adds a channel. Security events need `audit:read`.',
    answer: 'The channel.',
    throws: INVALID,
    example: {
      kind: 'ntfy',
      name: 'Phone',
      target: { url: 'https://ntfy.sh/your-topic' },
      quietHours: { from: '23:00', to: '07:00', timezone: 'Europe/Berlin' },
    },
  },
  'PATCH /api/alerts/channels/:id': {
    does: 'Changes a channel. Members of `target` that you leave out are not changed. If you change the server, enter its password and secret again.',
    answer: 'The channel.',
    throws: [...INVALID, 'not_found', 'edit_conflict'],
    example: { minSeverity: 'bad' },
  },
  'DELETE /api/alerts/channels/:id': {
    does: 'Deletes a channel and its messages.',
    status: 204,
    throws: ['not_found'],
  },
  'POST /api/alerts/channels/:id/test': {
    does: 'Sends a test message now. The status is 200 even if the message could not be sent.',
    answer: '`{ok, error}`',
    throws: ['not_found'],
  },
}
