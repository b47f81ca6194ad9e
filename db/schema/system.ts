/** Settings, the audit log, and facts about this database itself. */
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** One row per setting that differs from its default. */
export const settings = sqliteTable('settings', {
  key: text().primaryKey(),
  value: text({ mode: 'json' }).$type<unknown>().notNull(),
  updatedAt: integer().notNull(),
})

/** `encryption_key_fingerprint`, `settings_version`. */
export const facts = sqliteTable('facts', {
  name: text().primaryKey(),
  value: text().notNull(),
})

export const auditLogs = sqliteTable(
  'audit_logs',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    at: integer().notNull(),
    event: text().notNull(),
    /** User ID, or `bootstrap`, `guest`, `cli`, `system`. */
    actor: text().notNull(),
    /** Name and role of the user at that time. */
    actorName: text(),
    actorRole: text(),
    target: text(),
    method: text(),
    address: text(),
    severity: text({ enum: ['info', 'notice', 'warning'] }).notNull(),
    details: text({ mode: 'json' }).$type<Record<string, unknown>>(),
    /** `hash` of the previous row, and SHA-256 over it and this row: a changed or missing row breaks the chain. */
    previousHash: text().notNull().default(''),
    hash: text().notNull().default(''),
  },
  (t) => [
    index('audit_logs_at').on(t.at),
    index('audit_logs_event').on(t.event, t.id),
    index('audit_logs_actor').on(t.actor, t.id),
  ],
)
