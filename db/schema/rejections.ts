/** Clients that were rejected before any account was asked: one row per client, reason and minute, written by the ledger. */
import { integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

export const REJECTION_REASONS = [
  'unknown_key',
  'inactive_key',
  'expired_key',
  'missing_key',
  'remote_client',
  'firewall',
  'model_not_allowed',
] as const

export const rejectedClients = sqliteTable(
  'rejected_clients',
  {
    /** In the order of time. */
    id: integer().primaryKey(),
    /** Its start, ms since epoch. Of clients that are counted together, the start of the hour. */
    minute: integer().notNull(),
    /** Address; empty: unknown, `*`: further clients of an hour that has its rows already. */
    client: text().notNull(),
    reason: text({ enum: REJECTION_REASONS }).notNull(),
    count: integer().notNull(),
    lastAt: integer().notNull(),
    /** These are of the last rejection that was counted. At most eight characters of what was sent as a key. */
    keyStart: text(),
    /** The key that expired, is switched off, or may not use the model. */
    keyId: text(),
    model: text(),
    route: text().notNull(),
    userAgent: text(),
  },
  (t) => [uniqueIndex('rejected_clients_place').on(t.minute, t.client, t.reason)],
)
