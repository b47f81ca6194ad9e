/** Scheduled requests on chosen accounts, and their runs. */
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/**
 * `ping` sends one small request per account. `probe` also fetches the usage and stores the result with the account.
 */
export const AUTOMATION_KINDS = ['ping', 'probe'] as const
export type AutomationKind = (typeof AUTOMATION_KINDS)[number]

export const WEEKDAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const
export type Weekday = (typeof WEEKDAYS)[number]

export const RUN_TRIGGERS = ['scheduled', 'manual'] as const
export const RUN_STATUSES = ['running', 'success', 'failed', 'partial'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

/** The prompt. Copied to each run, so that a later edit does not change it. */
const task = () => ({
  kind: text({ enum: AUTOMATION_KINDS }).notNull(),
  /** Null: the cheapest model of each account. */
  model: text(),
  /** Null: the lowest of the model. */
  effort: text(),
  prompt: text().notNull(),
  includePaused: integer({ mode: 'boolean' }).notNull(),
})

export const automations = sqliteTable('automations', {
  id: text().primaryKey(),
  name: text().notNull(),
  enabled: integer({ mode: 'boolean' }).notNull(),
  ...task(),
  /** HH:MM, local time in `zone`. */
  time: text().notNull(),
  /** IANA name, or `server_default`. */
  zone: text().notNull(),
  days: text({ mode: 'json' }).$type<Weekday[]>().notNull(),
  /** The accounts after the first one start within this many minutes. */
  spreadMinutes: integer().notNull(),
  /** Null: every account of the pool. */
  accountIds: text({ mode: 'json' }).$type<string[]>(),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})

/** One account of a run. Times are ms since epoch. */
export interface RunAccount {
  accountId: string
  status: 'pending' | 'running' | 'success' | 'failed' | 'skipped'
  scheduledFor: number
  startedAt: number | null
  finishedAt: number | null
  errorCode: string | null
  errorMessage: string | null
}

export const automationRuns = sqliteTable(
  'automation_runs',
  {
    id: text().primaryKey(),
    automationId: text()
      .notNull()
      .references(() => automations.id, { onDelete: 'cascade' }),
    trigger: text({ enum: RUN_TRIGGERS }).notNull(),
    /** The scheduled time, ms since epoch, used once per automation; null: started by a user. */
    slot: integer(),
    status: text({ enum: RUN_STATUSES }).notNull(),
    startedAt: integer().notNull(),
    finishedAt: integer(),
    ...task(),
    errorCode: text(),
    errorMessage: text(),
    /** Fixed when the run starts. */
    accounts: text({ mode: 'json' }).$type<RunAccount[]>().notNull(),
  },
  (t) => [
    uniqueIndex('automation_runs_slot').on(t.automationId, t.slot),
    index('automation_runs_started').on(t.startedAt),
    index('automation_runs_status').on(t.status),
  ],
)
