/** Sends alerts to their channels: bundled, after quiet hours, with retries; and heartbeats to Uptime Kuma. */
import { commit } from '../../db/commit.ts'
import { type CommitAgainDeps, commitResult } from '../../db/commit-again.ts'
import { MINUTE_MS } from '../lib/durations.ts'
import { inLanes } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Random } from '../lib/random.ts'
import type { Work } from '../lib/schedule.ts'
import type { Sealer } from '../lib/seal.ts'
import type { ChannelRow } from '../model/alerts/channels.ts'
import { listChannels, openChannel, recordLastDelivery } from '../model/alerts/channels.ts'
import {
  type DeliveryRow,
  type DueDelivery,
  dropDeliveries,
  dueDeliveries,
  postpone,
  recordOutcome,
} from '../model/alerts/deliveries.ts'
import { isSecurityEvent } from '../model/alerts/events.ts'
import { isWanted, openIncidents, type SeenAlert, toColumns } from '../model/alerts/incidents.ts'
import { getInstall } from '../model/alerts/install.ts'
import { bundled, toMessage } from '../model/alerts/messages.ts'
import { quietUntil } from '../model/alerts/quiet-hours.ts'
import { type SendDeps, sendAlert, sendHeartbeat } from '../upstream/alerts/send.ts'

export const ALERT_DELIVERIES_BEAT_MS = 5000
const LANES = 4
/** Messages per channel and minute. Further alerts are sent as one message. */
const MAX_A_MINUTE = 5
const HEARTBEAT_MS = MINUTE_MS

export interface AlertDeliveriesDeps extends SendDeps, CommitAgainDeps {
  random: Random
  sealer: Sealer
  log: Log
  env: { PUBLIC_URL?: string | undefined }
  sentAlerts: SentAlerts
}

/** The result of a message that was sent or failed. */
interface Result {
  channelId: string
  deliveries: readonly DeliveryRow[]
  error: string | null
  now: number
}

/** Kept for the life of the process: an outage of PostgreSQL ends its leadership before the results are stored. */
export interface SentAlerts {
  /** Not stored yet. Until then their messages still look due. */
  results: Set<Result>
  /** When messages were sent to each channel in the last minute (monotonic). */
  sent: Map<string, number[]>
  /** When the last heartbeat was sent to each channel, and its state. */
  beats: Map<string, { at: number; isUp: boolean }>
}

export const newSentAlerts = (): SentAlerts => ({ results: new Set(), sent: new Map(), beats: new Map() })

export const alertDeliveriesJob =
  (deps: AlertDeliveriesDeps): Work =>
  async (signal) => {
    const channels = await listChannels(deps.db)
    if (channels.length === 0) return
    for (const result of deps.sentAlerts.results) await store(deps, result)
    const due = await dueDeliveries(deps.db, deps.clock.now())
    await inLanes(channels, LANES, async (channel) => {
      signal.throwIfAborted()
      if (channel.kind === 'uptime_kuma') await beat(deps, channel, signal)
      else await deliver(deps, { channel, due: due.get(channel.id) ?? [] }, signal)
    })
  }

interface Batch {
  channel: ChannelRow
  due: readonly DueDelivery[]
}

const deliver = async (deps: AlertDeliveriesDeps, { channel, due }: Batch, signal: AbortSignal): Promise<void> => {
  if (due.length === 0) return
  const { db, clock, sealer } = deps
  const rows = (some: readonly DueDelivery[]) => some.map(({ delivery }) => delivery)
  if (!channel.isActive) return commit(db, (tx) => dropDeliveries(tx, rows(due), 'The channel is turned off.'))
  const quiet = quietUntil(channel.quietHours, clock.now())
  if (quiet !== null) return commit(db, (tx) => postpone(tx, rows(due), quiet))
  const opened = openChannel(channel, sealer)
  if (opened === null)
    return commit(db, (tx) => dropDeliveries(tx, rows(due), 'The target cannot be decrypted. Set it again.'))
  const isAllowed = ({ incident }: DueDelivery) => channel.mayGetSecurity || !isSecurityEvent(incident.event)
  const refused = due.filter((one) => !isAllowed(one))
  if (refused.length > 0)
    await commit(db, (tx) => dropDeliveries(tx, rows(refused), 'The channel isn’t allowed to get security events.'))
  const audience = { showEmails: channel.showEmails, install: getInstall(deps.env) }
  for (const some of portions(due.filter(isAllowed))) {
    const minute = recent(deps, channel.id)
    if (minute.length >= MAX_A_MINUTE) return
    const messages = some.map((one) => toMessage(one, audience))
    const [first] = messages
    if (!first) return
    const message = messages.length === 1 ? first : bundled(messages, audience.install)
    minute.push(clock.monotonic())
    const error = await sendAlert(deps, { ...channel, ...opened }, message, signal)
    await store(deps, { channelId: channel.id, deliveries: rows(some), error, now: clock.now() })
    if (error === null) continue
    deps.log.warn('an alert could not be sent', { channel: channel.name, why: error })
    return // the other messages wait, so that a server that does not answer cannot delay the round
  }
}

/** If it fails, the next round stores the result before it sends anything. Otherwise, it would send the message again. */
const store = async (deps: AlertDeliveriesDeps, result: Result): Promise<void> => {
  const { results } = deps.sentAlerts
  results.add(result)
  await commitResult(deps, (tx) => recordOutcome(tx, result.channelId, result))
  results.delete(result)
}

/** One message per alert while the rate limit allows it, otherwise all alerts in one message. */
const portions = (due: readonly DueDelivery[]): (readonly DueDelivery[])[] =>
  due.length > MAX_A_MINUTE ? [due] : due.map((one) => [one])

const recent = ({ sentAlerts: { sent }, clock }: AlertDeliveriesDeps, channelId: string): number[] => {
  const since = clock.monotonic() - MINUTE_MS
  const times = (sent.get(channelId) ?? []).filter((at) => at > since)
  sent.set(channelId, times)
  return times
}

/**
 * Sends a heartbeat every minute and when the state changes. It is `down` while an alert for this channel is active.
 */
const beat = async (deps: AlertDeliveriesDeps, channel: ChannelRow, signal: AbortSignal): Promise<void> => {
  const { db, clock, sealer } = deps
  const { beats } = deps.sentAlerts
  if (!channel.isActive) return
  const wanted = (await openIncidents(db)).filter((one) => one.raisedAt !== null && isWanted(channel, one))
  const isUp = wanted.length === 0
  const last = beats.get(channel.id)
  if (last && last.isUp === isUp && clock.monotonic() - last.at < HEARTBEAT_MS) return
  beats.set(channel.id, { at: clock.monotonic(), isUp })
  const opened = openChannel(channel, sealer)
  const target = opened?.target
  if (target?.kind !== 'uptime_kuma') return
  const texts = wanted.map(({ text, textMasked }) => (channel.showEmails ? text : textMasked))
  const text = isUp ? 'OK' : texts.length === 1 ? texts[0]! : `${texts.length} alerts: ${texts.join('; ')}` // one is there
  const error = await sendHeartbeat(deps, { ...channel, target, secret: null }, { isUp, text }, signal)
  const before = channel.lastDelivery
  const isNews = before === null || before.ok !== (error === null) || clock.now() - before.at >= 10 * MINUTE_MS
  if (isNews)
    await commit(db, (tx) => recordLastDelivery(tx, channel.id, { at: clock.now(), ok: error === null, error }))
}

/** An alert that could not be stored. */
export interface UnstoredAlert {
  alert: SeenAlert
  edge: 'raised' | 'recovered'
  /** ms since epoch */
  since: number
}

/** Sends alerts once, without storing them, because the database cannot be written. */
export const sendUnstored =
  (deps: AlertDeliveriesDeps) =>
  async (alerts: readonly UnstoredAlert[]): Promise<void> => {
    const { db, sealer, log } = deps
    const install = getInstall(deps.env)
    await inLanes(await listChannels(db), LANES, async (channel) => {
      const opened = openChannel(channel, sealer)
      if (opened === null || channel.kind === 'uptime_kuma') return
      for (const one of alerts.filter(({ alert }) => isWanted(channel, alert))) {
        const message = toMessage(asDelivery(deps, one, channel.id), { showEmails: channel.showEmails, install })
        const error = await sendAlert(deps, { ...channel, ...opened }, message)
        if (error !== null) log.warn('an alert could not be sent', { channel: channel.name, why: error })
      }
    })
  }

const asDelivery = (
  { clock, random }: AlertDeliveriesDeps,
  { alert, edge, since }: UnstoredAlert,
  channelId: string,
): DueDelivery => {
  const now = clock.now()
  const id = random.orderedId('ald', now)
  const ends = { recoveredAt: null, acknowledgedAt: null, acknowledgedBy: null }
  return {
    incident: { ...toColumns(alert), id, since, raisedAt: edge === 'raised' ? now : since, ...ends },
    delivery: {
      ...{ id, channelId, incidentId: id, eventKey: alert.key, edge, at: now, status: 'pending' },
      ...{ tries: 0, nextAt: now, sentAt: null, lastError: null },
    },
  }
}
