/** Decisions of the quota planner: when to start an account's five-hour window, and the result. */
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
    /** Percent more demand served because of the start; null: not computed. */
    gainPercent: real(),
    /** Start of the time in which more is served, ms since epoch. */
    gainFrom: integer(),
    gainTo: integer(),
    status: text({ enum: DECISION_STATUSES }).notNull(),
    /** A sentence about the status. */
    reason: text(),
    /** The model of the request that started the window. */
    model: text(),
    /** Account and cycle, so that there is one decision for each. */
    idempotencyKey: text().notNull().unique(),
  },
  (t) => [index('planner_decisions_scheduled').on(t.scheduledAt), index('planner_decisions_account').on(t.accountId)],
)
