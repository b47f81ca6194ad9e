/** Settings, the audit log, and facts about this database itself. */
import { index, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'

/** One row a setting that differs from its default. */
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
    /** Account id, or `bootstrap`, `cli`, `system`. */
    actor: text().notNull(),
    target: text(),
    method: text(),
    address: text(),
    severity: text({ enum: ['info', 'notice', 'warning'] }).notNull(),
    details: text({ mode: 'json' }).$type<Record<string, unknown>>(),
  },
  (t) => [index('audit_logs_at').on(t.at)],
)
