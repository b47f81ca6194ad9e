/** Readings of the accounts' usage meters, each with the requests that ended here since the previous reading. */
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { accounts } from './accounts.ts'

export const METER_WINDOWS = ['five_hour', 'weekly', 'monthly'] as const
export type MeterWindow = (typeof METER_WINDOWS)[number]

/** In the order in which the ledger wrote them. All are kept for 90 days, then one per day. */
export const meterReadings = sqliteTable(
  'meter_readings',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    window: text({ enum: METER_WINDOWS }).notNull(),
    /** When ChatGPT reported it, ms since epoch. */
    at: integer().notNull(),
    usedPercent: real().notNull(),
    windowMinutes: integer().notNull(),
    /** ms since epoch */
    resetAt: integer(),
    /** Requests that were running then, or had ended so recently that the meter may not show them yet. */
    running: integer().notNull(),
    pricedMicrosHere: integer().notNull(),
    tokensHere: integer().notNull(),
    requestsHere: integer().notNull(),
    /** How many of `requestsHere` have no known price. */
    unpricedHere: integer().notNull(),
  },
  (t) => [index('meter_readings_account').on(t.accountId, t.window, t.id), index('meter_readings_at').on(t.at)],
)

/** The last reading of each meter, and the requests that ended since then, which are added to the next reading. */
export const meterOpen = sqliteTable(
  'meter_open',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    window: text({ enum: METER_WINDOWS }).notNull(),
    at: integer().notNull(),
    usedPercent: real().notNull(),
    windowMinutes: integer().notNull(),
    resetAt: integer(),
    running: integer().notNull(),
    pricedMicros: integer().notNull(),
    tokens: integer().notNull(),
    requests: integer().notNull(),
    unpriced: integer().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.window] })],
)
