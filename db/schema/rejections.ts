/**
 * Clients that were rejected before an account was used: one row per client, reason and minute, written by the ledger.
 */
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
    /** Ascending with time. */
    id: integer().primaryKey(),
    /** Start of the minute, ms since epoch. For clients that are counted together, start of the hour. */
    minute: integer().notNull(),
    /** Client address; empty: unknown; `*`: the other clients, once the hour has its maximum of rows. */
    client: text().notNull(),
    reason: text({ enum: REJECTION_REASONS }).notNull(),
    count: integer().notNull(),
    lastAt: integer().notNull(),
    /** From the last counted rejection. At most eight characters of the key that was sent. */
    keyStart: text(),
    /** The key that has expired, is disabled, or may not use the model. */
    keyId: text(),
    model: text(),
    route: text().notNull(),
    userAgent: text(),
  },
  (t) => [uniqueIndex('rejected_clients_place').on(t.minute, t.client, t.reason)],
)
