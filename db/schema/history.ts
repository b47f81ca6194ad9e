/** History of the accounts, and pending ChatGPT sign-ins. */
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
    kind: text({ enum: ['state', 'token', 'probe', 'import', 'plan', 'reset', 'window', 'statement'] }).notNull(),
    /** One or two words: the new state, `refreshed`, `failed`. */
    result: text().notNull(),
    /** A sentence of evidence, without secrets. */
    detail: text(),
  },
  (t) => [index('account_events_account').on(t.accountId, t.id), index('account_events_kind').on(t.kind, t.at)],
)

/** The last usage seen in each hour, in percent used. An hour without a sample has no row and shows as a gap. */
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

/** Window starts. Each is written before its request, so that a crash cannot cause a second start. */
export const windowStarts = sqliteTable(
  'window_starts',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    window: text({ enum: ['five_hour'] }).notNull(),
    /** The reset or the scheduled hour that caused it, ms since epoch. */
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

/** Reset credits used by rule. Each is written before its request, so that a crash cannot use a credit twice. */
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
    /** The windows for which ChatGPT had nothing to reset. Tried again when they differ. */
    nothingToReset: text(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.creditId] })],
)

/**
 * A ChatGPT sign-in that was started here. Kept for a while after it has ended, so that pages can still read the
 * result.
 */
export const oauthFlows = sqliteTable(
  'oauth_flows',
  {
    id: text().primaryKey(),
    method: text({ enum: ['browser', 'device'] }).notNull(),
    /** The account to sign in again; null: the sign-in adds an account. */
    accountId: text().references(() => accounts.id, { onDelete: 'cascade' }),
    /** The pool of outbound proxies for a new account and its sign-in; null: as the settings say. */
    egressPoolId: text(),
    status: text({ enum: ['pending', 'success', 'error'] }).notNull(),
    errorMessage: text(),
    /** The account that was added or signed in again. */
    resultAccountId: text(),
    /** Hex SHA-256 of the `state` parameter; null for a device flow. */
    stateHash: text().unique(),
    /** PKCE verifier, or the device authorization ID, encrypted. */
    secretSealed: text().notNull(),
    userCode: text(),
    /** Polling interval of a device flow in seconds. */
    intervalSeconds: integer(),
    createdBy: text().notNull(),
    createdAt: integer().notNull(),
    expiresAt: integer().notNull(),
  },
  (t) => [index('oauth_flows_account').on(t.accountId)],
)
