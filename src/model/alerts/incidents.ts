/** Incidents: problems from when they are first seen, through when they are raised, to when they recover. */
import { and, desc, eq, gte, inArray, isNotNull, isNull, lt, ne } from 'drizzle-orm'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { alertDeliveries, alertIncidents, SEVERITIES, type Severity } from '../../../db/schema/alerts.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import { maskEmails } from '../accounts/account-summary.ts'
import { type Actor, append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { type ChannelRow, listChannels } from './channels.ts'
import { type AlertEvent, type AlertSubject, alertKey, isSecurityEvent } from './events.ts'

export type IncidentRow = typeof alertIncidents.$inferSelect

/** Something that needs attention now, with and without e-mail addresses. */
export interface SeenAlert {
  key: string
  event: AlertEvent
  severity: Severity
  subject: AlertSubject
  subjectMasked: string
  text: string
  textMasked: string
  path: string
}

/** Problems that end sooner are not raised. */
export const DWELL_MS = MINUTE_MS
const REPEAT_MS = DAY_MS

/** The changes to store. */
export interface Plan {
  begin: SeenAlert[]
  raise: { row: IncidentRow; seen: SeenAlert }[]
  /** Incidents that ended before they were raised. */
  forget: IncidentRow[]
  recover: IncidentRow[]
  repeat: { row: IncidentRow; channels: ChannelRow[] }[]
}

/** Incidents that have not recovered, including those not raised yet. */
export const openIncidents = (db: Db): Promise<IncidentRow[]> =>
  db.select().from(alertIncidents).where(isNull(alertIncidents.recoveredAt)).all()

/**
 * Returns the changes, or null if there are none. `isUnknown`: whether an event that is not in `seen` may still last,
 * so its incident must not recover yet.
 */
export const planChanges = async (
  db: Db,
  seen: readonly SeenAlert[],
  { now, isUnknown }: { now: number; isUnknown: (event: string) => boolean },
): Promise<Plan | null> => {
  const open = await openIncidents(db)
  const byKey = new Map(seen.map((one) => [one.key, one]))
  const known = new Set(open.map(({ key }) => key))
  const gone = open.filter(({ key, event }) => !byKey.has(key) && !isUnknown(event))
  const plan: Plan = {
    begin: [...byKey.values()].filter(({ key }) => !known.has(key)),
    raise: open.flatMap((row) => {
      const one = byKey.get(row.key)
      return one && row.raisedAt === null && now - row.since >= DWELL_MS ? [{ row, seen: one }] : []
    }),
    forget: gone.filter(({ raisedAt }) => raisedAt === null),
    recover: gone.filter(({ raisedAt }) => raisedAt !== null),
    repeat: await dueRepeats(db, open, now),
  }
  return Object.values(plan).every((list) => list.length === 0) ? null : plan
}

interface Doing {
  now: number
  random: Random
  /** Keys of alerts that were already sent while the database could not be written. */
  alreadySent?: ReadonlySet<string>
}

export const applyPlan = async (tx: Tx, plan: Plan, doing: Doing): Promise<void> => {
  const { now, random, alreadySent } = doing
  const channels = await listChannels(tx)
  const begun = plan.begin.map((seen) => ({ ...toColumns(seen), id: random.orderedId('inc', now), since: now }))
  for (const some of slices(begun)) await tx.insert(alertIncidents).values(some).onConflictDoNothing().run()
  await updateAll(tx, plan.raise, { raisedAt: now })
  for (const { row, seen } of plan.raise) {
    const columns = getChanges(row, toColumns(seen))
    if (Object.keys(columns).length > 0)
      await tx.update(alertIncidents).set(columns).where(eq(alertIncidents.id, row.id)).run()
  }
  const raised = plan.raise.map(({ row, seen }) => ({ row: { ...row, ...toColumns(seen) } }))
  const isSent = ({ row }: { row: IncidentRow }) => alreadySent?.has(row.key) ?? false
  const wanted = (some: typeof raised): Enqueued[] => some.map(({ row }) => ({ row, channels: wanting(channels, row) }))
  await enqueue(tx, wanted(raised.filter(isSent)), { edge: 'raised', status: 'sent', now, random })
  const news = [...wanted(raised.filter((one) => !isSent(one))), ...plan.repeat]
  await enqueue(tx, news, { edge: 'raised', status: 'pending', now, random })
  const told = await toldChannels(tx, plan.recover)
  await updateAll(
    tx,
    plan.recover.map((row) => ({ row })),
    { recoveredAt: now },
  )
  const ended = plan.recover.map((row) => ({
    row,
    channels: channels.filter(({ id, isActive }) => isActive && told.has(`${row.id} ${id}`)),
  }))
  await enqueue(tx, ended, { edge: 'recovered', status: 'pending', now, random })
  for (const some of slices(plan.forget)) await tx.delete(alertIncidents).where(inIds(some)).run()
  if (plan.raise.length + plan.recover.length + plan.repeat.length > 0) notice(tx, 'alerts')
}

/** Rows per statement: far below the limit on bound values. */
const SLICE = 500

const slices = <T>(items: readonly T[]): T[][] =>
  Array.from({ length: Math.ceil(items.length / SLICE) }, (_, place) => items.slice(place * SLICE, (place + 1) * SLICE))

const inIds = (rows: readonly Pick<IncidentRow, 'id'>[]) =>
  inArray(
    alertIncidents.id,
    rows.map(({ id }) => id),
  )

const updateAll = async (
  tx: Tx,
  all: readonly { row: IncidentRow }[],
  columns: Pick<Partial<IncidentRow>, 'raisedAt' | 'recoveredAt'>,
): Promise<void> => {
  for (const some of slices(all))
    await tx
      .update(alertIncidents)
      .set(columns)
      .where(inIds(some.map(({ row }) => row)))
      .run()
}

/** A single event that has no duration. */
export interface Occurrence {
  event: AlertEvent
  subject: AlertSubject
  severity: Severity
  text: string
  /** The dashboard page that shows more. */
  path: string
  /** ms since epoch */
  at: number
}

/** Raises an alert for a single event: it is sent immediately and never recovers. */
export const raiseOccurrence = async (
  tx: Tx,
  { event, subject, severity, text, path, at }: Occurrence,
  random: Random,
): Promise<void> => {
  const seen = toSeen({ key: alertKey(event, subject), event, severity, subject, text, path })
  const incident = {
    ...toColumns(seen),
    id: random.orderedId('inc', at),
    since: at,
    raisedAt: at,
    recoveredAt: at,
    acknowledgedAt: null,
    acknowledgedBy: null,
  }
  await tx.insert(alertIncidents).values(incident).run()
  const channels = wanting(await listChannels(tx), incident)
  await enqueue(tx, [{ row: incident, channels }], { edge: 'raised', status: 'pending', now: at, random })
  notice(tx, 'alerts')
}

/** Adds the masked texts. */
export const toSeen = (alert: Omit<SeenAlert, 'subjectMasked' | 'textMasked'>): SeenAlert => ({
  ...alert,
  subjectMasked: maskEmails(alert.subject.name),
  textMasked: maskEmails(alert.text),
})

/**
 * Silences the alert with this key until it recovers: messages not yet sent are dropped, and it is not repeated. Throws
 * `not_found`.
 */
export const acknowledge = async (tx: Tx, key: string, actor: Actor): Promise<IncidentRow> => {
  const row = await tx
    .select()
    .from(alertIncidents)
    .where(and(eq(alertIncidents.key, key), isNull(alertIncidents.recoveredAt), isNotNull(alertIncidents.raisedAt)))
    .get()
  if (!row) throw new AppError('not_found', { message: 'There is no active alert with this key.' })
  if (row.acknowledgedAt !== null) return row
  const acknowledged = { acknowledgedAt: actor.at, acknowledgedBy: actor.name ?? actor.id }
  await tx.update(alertIncidents).set(acknowledged).where(eq(alertIncidents.id, row.id)).run()
  await tx
    .update(alertDeliveries)
    .set({ status: 'dropped', lastError: 'The alert was acknowledged.' })
    .where(and(eq(alertDeliveries.incidentId, row.id), eq(alertDeliveries.status, 'pending')))
    .run()
  await append(tx, actor, 'alert_acknowledged', { target: key })
  notice(tx, 'alerts')
  return { ...row, ...acknowledged }
}

/** Recovered incidents and single events, newest first. */
export const pastIncidents = (db: Db, limit: number): Promise<IncidentRow[]> =>
  db
    .select()
    .from(alertIncidents)
    .where(isNotNull(alertIncidents.recoveredAt))
    .orderBy(desc(alertIncidents.recoveredAt), desc(alertIncidents.id))
    .limit(limit)
    .all()

/** Deletes incidents that recovered before `before`, with their deliveries, at most `limit`. Returns how many. */
export const purgeIncidents = async (tx: Tx, { before, limit }: { before: number; limit: number }): Promise<number> => {
  const old = tx
    .select({ id: alertIncidents.id })
    .from(alertIncidents)
    .where(lt(alertIncidents.recoveredAt, before))
    .limit(limit)
  return (await tx.delete(alertIncidents).where(inArray(alertIncidents.id, old)).run()).changes
}

const rankOf = (severity: Severity): number => SEVERITIES.indexOf(severity)

/** Whether a channel gets alerts of this kind. Uptime Kuma gets a heartbeat in place of messages. */
export const isWanted = (
  channel: ChannelRow,
  { event, severity }: Pick<IncidentRow, 'event' | 'severity'>,
): boolean => {
  if (!channel.isActive || rankOf(severity) < rankOf(channel.minSeverity)) return false
  if (isSecurityEvent(event)) return channel.mayGetSecurity && (channel.events?.includes(event) ?? false)
  return channel.events?.includes(event) ?? true
}

const wanting = (channels: readonly ChannelRow[], incident: Pick<IncidentRow, 'event' | 'severity'>): ChannelRow[] =>
  channels.filter((channel) => channel.kind !== 'uptime_kuma' && isWanted(channel, incident))

/** `<incident id> <channel id>` for each message that was sent, or will be. */
const toldChannels = async (tx: Tx, rows: readonly IncidentRow[]): Promise<ReadonlySet<string>> => {
  const told = new Set<string>()
  for (const some of slices(rows)) {
    const ids = some.map(({ id }) => id)
    const isOfThese = and(inArray(alertDeliveries.incidentId, ids), ne(alertDeliveries.status, 'dropped'))
    const { incidentId, channelId } = alertDeliveries
    for (const row of await tx.select({ incidentId, channelId }).from(alertDeliveries).where(isOfThese).all())
      told.add(`${row.incidentId} ${row.channelId}`)
  }
  return told
}

/** Active alerts last sent a day ago or earlier, with the channels that repeat them. */
const dueRepeats = async (db: Db, open: readonly IncidentRow[], now: number): Promise<Plan['repeat']> => {
  const standing = open.filter(
    ({ raisedAt, acknowledgedAt }) => raisedAt !== null && acknowledgedAt === null && now - raisedAt >= REPEAT_MS,
  )
  if (standing.length === 0) return []
  const channels = (await listChannels(db)).filter(({ repeatDaily }) => repeatDaily)
  if (channels.length === 0) return []
  const recent = await db
    .selectDistinct({ incidentId: alertDeliveries.incidentId, channelId: alertDeliveries.channelId })
    .from(alertDeliveries)
    .where(gte(alertDeliveries.at, now - REPEAT_MS + 1))
    .all()
  const isRecent = new Set(recent.map(({ incidentId, channelId }) => `${incidentId} ${channelId}`))
  return standing.flatMap((row) => {
    const due = wanting(channels, row).filter(({ id }) => !isRecent.has(`${row.id} ${id}`))
    return due.length === 0 ? [] : [{ row, channels: due }]
  })
}

interface Enqueued {
  row: Pick<IncidentRow, 'id' | 'key'>
  channels: readonly ChannelRow[]
}

interface Enqueueing {
  edge: 'raised' | 'recovered'
  status: 'pending' | 'sent'
  now: number
  random: Random
}

const enqueue = async (tx: Tx, all: readonly Enqueued[], { edge, status, now, random }: Enqueueing): Promise<void> => {
  const rows = all.flatMap(({ row, channels }) =>
    channels.map(({ id: channelId }) => ({
      id: random.orderedId('ald', now),
      channelId,
      incidentId: row.id,
      eventKey: row.key,
      edge,
      at: now,
      status,
      nextAt: now,
      sentAt: status === 'sent' ? now : null,
    })),
  )
  for (const some of slices(rows)) await tx.insert(alertDeliveries).values(some).run()
}

/** The columns of the incident for this alert. */
export const toColumns = ({ key, event, severity, subject, subjectMasked, text, textMasked, path }: SeenAlert) => ({
  key,
  event,
  severity,
  subjectKind: subject.kind,
  subjectId: subject.id,
  subjectName: subject.name,
  subjectMasked,
  text,
  textMasked,
  path,
})
