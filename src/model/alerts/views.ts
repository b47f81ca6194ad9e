/** Alerts, channels and messages as the API returns them, without targets and secrets. */

import { iso, isoOrNull } from '../../lib/iso.ts'
import type { Sealer } from '../../lib/seal.ts'
import { type ChannelRow, channelVersion, getServer, openChannel } from './channels.ts'
import type { listDeliveries } from './deliveries.ts'
import { wordsOf } from './events.ts'
import type { IncidentRow } from './incidents.ts'

export const toChannel = (row: ChannelRow, sealer: Sealer) => {
  const opened = openChannel(row, sealer)
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    /** The host of the target. Null if the target cannot be decrypted. */
    server: opened && getServer(opened.target),
    hasSecret: row.secretSealed !== null,
    events: row.events,
    minSeverity: row.minSeverity,
    quietHours: row.quietHours,
    isActive: row.isActive,
    allowPrivateAddress: row.allowPrivateAddress,
    showEmails: row.showEmails,
    repeatDaily: row.repeatDaily,
    mayGetSecurity: row.mayGetSecurity,
    lastDelivery: row.lastDelivery && { ...row.lastDelivery, at: iso(row.lastDelivery.at) },
    createdAt: iso(row.createdAt),
    updatedAt: iso(row.updatedAt),
    version: channelVersion(row),
  }
}
export type ChannelView = ReturnType<typeof toChannel>

interface Visibility {
  hidesAccounts: boolean
}

export const toAlert = (row: IncidentRow, { hidesAccounts }: Visibility) => ({
  key: row.key,
  event: row.event,
  severity: row.severity,
  title: wordsOf(row.event)?.title ?? row.event,
  text: hidesAccounts ? row.textMasked : row.text,
  path: row.path,
  subject: {
    kind: row.subjectKind,
    id: row.subjectId,
    name: hidesAccounts ? row.subjectMasked : row.subjectName,
  },
  since: iso(row.since),
  raisedAt: isoOrNull(row.raisedAt),
  recoveredAt: isoOrNull(row.recoveredAt),
  acknowledgedAt: isoOrNull(row.acknowledgedAt),
  acknowledgedBy: row.acknowledgedBy,
})
export type AlertView = ReturnType<typeof toAlert>

type Delivered = Awaited<ReturnType<typeof listDeliveries>>[number]

export const toDelivery = ({ delivery, incident, channelName }: Delivered, { hidesAccounts }: Visibility) => ({
  id: delivery.id,
  channelId: delivery.channelId,
  channelName,
  key: delivery.eventKey,
  title: wordsOf(incident.event)?.title ?? incident.event,
  subjectName: hidesAccounts ? incident.subjectMasked : incident.subjectName,
  edge: delivery.edge,
  at: iso(delivery.at),
  status: delivery.status,
  tries: delivery.tries,
  nextAt: delivery.status === 'pending' ? iso(delivery.nextAt) : null,
  sentAt: isoOrNull(delivery.sentAt),
  lastError: delivery.lastError,
})
export type DeliveryView = ReturnType<typeof toDelivery>
