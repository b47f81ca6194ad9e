/** What the dashboard tells of the past of accounts, and the sign-ins that are under way to add one. */
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { accounts, RESET_POLICIES } from './accounts.ts'

/** What happened to an account: state changes with their cause, tokens, probes, imports. Purged with the log. */
export const accountEvents = sqliteTable(
  'account_events',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    at: integer().notNull(),
    kind: text({ enum: ['state', 'token', 'probe', 'import', 'plan', 'reset', 'window'] }).notNull(),
    /** A word or two: the state it came to, `refreshed`, `failed`. */
    result: text().notNull(),
    /** A sentence of evidence, without secrets. */
    detail: text(),
  },
  (t) => [index('account_events_account').on(t.accountId, t.id)],
)

/** The last usage seen in each hour, in percent used; an hour without a sample has no row, because it is a gap. */
export const usageSamples = sqliteTable(
  'usage_samples',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    /** Start of the hour, ms since epoch. */
    hour: integer().notNull(),
    fiveHourUsed: real(),
    weeklyUsed: real(),
    monthlyUsed: real(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.hour] })],
)

/** Window starts, each written before its request: a start is never repeated, also after a crash in between. */
export const windowStarts = sqliteTable(
  'window_starts',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    window: text({ enum: ['five_hour'] }).notNull(),
    /** The reset or the set hour that caused it, ms since epoch. */
    resetAt: integer().notNull(),
    startedAt: integer().notNull(),
    model: text().notNull(),
    /** Null: unknown, because Sluice stopped before the answer. */
    result: text({ enum: ['started', 'failed'] }),
    endedAt: integer(),
    errorCode: text(),
    errorMessage: text(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.window, t.resetAt] })],
)

/** Reset credits used by rule, each written before its request: one attempt per credit, also after a crash in between. */
export const resetAttempts = sqliteTable(
  'reset_attempts',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    creditId: text().notNull(),
    rule: text({ enum: RESET_POLICIES }).notNull(),
    at: integer().notNull(),
    /** ChatGPT's answer, or an error code; null: unknown, because Sluice stopped before the answer. */
    code: text(),
    /** The windows for which ChatGPT had nothing to reset: tried again once they differ. */
    nothingToReset: text(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.creditId] })],
)

/** A sign-in to the upstream that was begun here; kept a little while after its end for whoever still asks. */
export const oauthFlows = sqliteTable(
  'oauth_flows',
  {
    id: text().primaryKey(),
    method: text({ enum: ['browser', 'device'] }).notNull(),
    /** The account to be signed in again; null: whoever signs in is added. */
    accountId: text().references(() => accounts.id, { onDelete: 'cascade' }),
    /** The pool of outbound proxies for a new account and its sign-in; null: as the settings say. */
    egressPoolId: text(),
    status: text({ enum: ['pending', 'success', 'error'] }).notNull(),
    errorMessage: text(),
    /** What came of it. */
    resultAccountId: text(),
    /** Hex SHA-256 of the `state` parameter; null for a device flow. */
    stateHash: text().unique(),
    /** PKCE verifier, or the device's authorisation id, sealed. */
    secretSealed: text().notNull(),
    userCode: text(),
    /** Seconds between two questions of a device flow. */
    intervalSeconds: integer(),
    createdBy: text().notNull(),
    createdAt: integer().notNull(),
    expiresAt: integer().notNull(),
  },
  (t) => [index('oauth_flows_account').on(t.accountId)],
)
