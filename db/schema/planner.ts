/** What the quota planner decided: when the five-hour window of an account is to start, and what came of it. */
import { index, integer, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { accounts } from './accounts.ts'

export const DECISION_STATUSES = ['planned', 'executed', 'skipped', 'canceled'] as const

export const plannerDecisions = sqliteTable(
  'planner_decisions',
  {
    id: text().primaryKey(),
    createdAt: integer().notNull(),
    /** The planner's mode at that time, or `manual` for a start that a user asked for. */
    mode: text({ enum: ['advise', 'act', 'manual'] }).notNull(),
    /** Null: the account was deleted. */
    accountId: text().references(() => accounts.id, { onDelete: 'set null' }),
    /** ms since epoch */
    scheduledAt: integer().notNull(),
    executedAt: integer(),
    /** Percent that is served more because of the start; null: not computed. */
    gainPercent: real(),
    /** When more is served, ms since epoch. */
    gainFrom: integer(),
    gainTo: integer(),
    status: text({ enum: DECISION_STATUSES }).notNull(),
    /** A sentence about the status. */
    reason: text(),
    /** The model of the request that started the window. */
    model: text(),
    /** Account and cycle: one decision for each. */
    idempotencyKey: text().notNull().unique(),
  },
  (t) => [index('planner_decisions_scheduled').on(t.scheduledAt), index('planner_decisions_account').on(t.accountId)],
)
