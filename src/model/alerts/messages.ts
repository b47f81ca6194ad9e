/** The content of alert messages, independent of the channel. */
import type { Severity } from '../../../db/schema/alerts.ts'
import { SEVERITIES } from '../../../db/schema/alerts.ts'
import { iso } from '../../lib/iso.ts'
import { spanText } from '../overview/account-matters.ts'
import type { DueDelivery } from './deliveries.ts'
import { wordsOf } from './events.ts'

/** One alert as the body of a webhook. For a bundle, the fields describe all its alerts. */
export interface AlertMessage {
  /** The ID of the delivery. A retry has the same ID. */
  id: string
  /** The event name. `bundle` means several alerts, `test` a test message. */
  event: string
  edge: 'raised' | 'recovered'
  severity: Severity
  title: string
  text: string
  /** The dashboard page. Null if the public URL is not set. */
  url: string | null
  subject: { kind: string; id: string; name: string } | null
  /** ISO 8601: when it began. */
  since: string
  /** ISO 8601: when it was raised or recovered. */
  at: string
  /** The name of the Sluice installation: the host of its public URL, or its host name. */
  install: string
  /** How long the problem lasted. Only present if it is over. */
  durationSeconds?: number
  /** The alerts of a bundle. */
  alerts?: AlertMessage[]
}

export interface Install {
  name: string
  /** The public URL, without a trailing slash; null: not set. */
  url: string | null
}

interface Audience {
  showEmails: boolean
  install: Install
}

export const toMessage = ({ delivery, incident }: DueDelivery, { showEmails, install }: Audience): AlertMessage => {
  const { edge, at } = delivery
  const name = showEmails ? incident.subjectName : incident.subjectMasked
  const said = showEmails ? incident.text : incident.textMasked
  const lastedMs = Math.max(0, at - incident.since)
  const title = wordsOf(incident.event)?.title ?? incident.event
  const isRepeat = edge === 'raised' && incident.raisedAt !== null && at > incident.raisedAt
  const raised = isRepeat ? `Still active after ${spanText(lastedMs)}: ${said}` : said
  return {
    id: delivery.id,
    event: incident.event,
    edge,
    severity: incident.severity,
    title: edge === 'recovered' ? `Resolved: ${title}` : title,
    text: edge === 'recovered' ? `Resolved after ${spanText(lastedMs)}: ${said}` : raised,
    url: install.url && install.url + incident.path,
    subject: { kind: incident.subjectKind, id: incident.subjectId, name },
    since: iso(incident.since),
    at: iso(at),
    install: install.name,
    ...(edge === 'recovered' && { durationSeconds: Math.round(lastedMs / 1000) }),
  }
}

/** The most lines of text in a bundle. */
const MAX_LINES = 20

/** Several alerts as one message. `alerts` must not be empty. */
export const bundled = (alerts: readonly AlertMessage[], install: Install): AlertMessage => {
  const first = alerts[0]! // `alerts` is not empty
  const lines = alerts.slice(0, MAX_LINES).map(({ title, text }) => `• ${title}: ${text}`)
  const rest = alerts.length - lines.length
  const raised = alerts.filter(({ edge }) => edge === 'raised').length
  const counts = [
    ...(raised > 0 ? [`${raised} ${raised === 1 ? 'alert' : 'alerts'}`] : []),
    ...(raised < alerts.length ? [`${alerts.length - raised} resolved`] : []),
  ]
  return {
    id: first.id,
    event: 'bundle',
    edge: raised > 0 ? 'raised' : 'recovered',
    severity: SEVERITIES.findLast((severity) => alerts.some((alert) => alert.severity === severity)) ?? 'info',
    title: counts.join(', '),
    text: [...lines, ...(rest > 0 ? [`… and ${rest} more`] : [])].join('\n'),
    url: install.url && `${install.url}/dashboard`,
    subject: null,
    since: alerts.map(({ since }) => since).toSorted()[0] ?? first.since,
    at: first.at,
    install: install.name,
    alerts: [...alerts],
  }
}

export const testMessage = ({ id, now, install }: { id: string; now: number; install: Install }): AlertMessage => ({
  id,
  event: 'test',
  edge: 'raised',
  severity: 'info',
  title: 'Test alert',
  text: 'This channel works. Sluice sends its alerts here.',
  url: install.url && `${install.url}/settings/alerts`,
  subject: null,
  since: iso(now),
  at: iso(now),
  install: install.name,
})
