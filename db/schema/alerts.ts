/** Alerts: the channels, the problems and when they began, and each message. */
import { sql } from 'drizzle-orm'
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

export const CHANNEL_KINDS = [
  'webhook',
  'ntfy',
  'smtp',
  'discord',
  'slack',
  'telegram',
  'gotify',
  'uptime_kuma',
] as const
export type ChannelKind = (typeof CHANNEL_KINDS)[number]

/** From least to most severe. */
export const SEVERITIES = ['info', 'warning', 'bad'] as const
export type Severity = (typeof SEVERITIES)[number]

/** Local times HH:MM; `to` may be before `from`, on the next day. */
export interface QuietHours {
  from: string
  to: string
  timezone: string
}

/** The newest message of a channel. */
export interface LastDelivery {
  /** ms since epoch */
  at: number
  ok: boolean
  error: string | null
}

export const alertChannels = sqliteTable('alert_channels', {
  id: text().primaryKey(),
  name: text().notNull().unique(),
  kind: text({ enum: CHANNEL_KINDS }).notNull(),
  targetSealed: text().notNull(),
  secretSealed: text(),
  /** Null means all events except security events. */
  events: text({ mode: 'json' }).$type<string[]>(),
  minSeverity: text({ enum: SEVERITIES }).notNull(),
  quietHours: text({ mode: 'json' }).$type<QuietHours>(),
  isActive: integer({ mode: 'boolean' }).notNull(),
  allowPrivateAddress: integer({ mode: 'boolean' }).notNull(),
  showEmails: integer({ mode: 'boolean' }).notNull(),
  /** Repeats standing alerts once a day. */
  repeatDaily: integer({ mode: 'boolean' }).notNull(),
  /** Whether the target was set by a user who may read the audit log. */
  mayGetSecurity: integer({ mode: 'boolean' }).notNull(),
  lastDelivery: text({ mode: 'json' }).$type<LastDelivery>(),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})

export const alertIncidents = sqliteTable(
  'alert_incidents',
  {
    id: text().primaryKey(),
    /** `<event>:<subject id>` */
    key: text().notNull(),
    event: text().notNull(),
    severity: text({ enum: SEVERITIES }).notNull(),
    subjectKind: text().notNull(),
    subjectId: text().notNull(),
    subjectName: text().notNull(),
    /** The subject's name without e-mail addresses. */
    subjectMasked: text().notNull(),
    text: text().notNull(),
    textMasked: text().notNull(),
    /** The dashboard page that shows more. */
    path: text().notNull(),
    /** When it was first seen, ms since epoch. */
    since: integer().notNull(),
    /** Null until it has lasted for the dwell time. Nothing is sent before. */
    raisedAt: integer(),
    /** Equal to `raisedAt` for a single event, which has no duration. */
    recoveredAt: integer(),
    acknowledgedAt: integer(),
    acknowledgedBy: text(),
  },
  (t) => [
    uniqueIndex('alert_incidents_open').on(t.key).where(sql`recovered_at IS NULL`),
    index('alert_incidents_recovered').on(t.recoveredAt),
  ],
)

export const DELIVERY_STATUSES = ['pending', 'sent', 'failed', 'dropped'] as const

export const alertDeliveries = sqliteTable(
  'alert_deliveries',
  {
    id: text().primaryKey(),
    channelId: text()
      .notNull()
      .references(() => alertChannels.id, { onDelete: 'cascade' }),
    incidentId: text()
      .notNull()
      .references(() => alertIncidents.id, { onDelete: 'cascade' }),
    eventKey: text().notNull(),
    edge: text({ enum: ['raised', 'recovered'] }).notNull(),
    /** ms since epoch */
    at: integer().notNull(),
    status: text({ enum: DELIVERY_STATUSES }).notNull(),
    tries: integer().notNull().default(0),
    /** A pending message is not sent before this time (ms since epoch). */
    nextAt: integer().notNull(),
    sentAt: integer(),
    lastError: text(),
  },
  (t) => [
    index('alert_deliveries_due').on(t.status, t.nextAt),
    index('alert_deliveries_channel').on(t.channelId, t.at),
    index('alert_deliveries_incident').on(t.incidentId),
    index('alert_deliveries_at').on(t.at),
  ],
)
