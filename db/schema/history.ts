/** What the dashboard tells of the past of accounts, and the sign-ins that are under way to add one. */
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { accounts } from './accounts.ts'

/** What happened to an account: state changes with their cause, tokens, probes, imports. Purged with the log. */
export const accountEvents = sqliteTable(
  'account_events',
  {
    id: integer().primaryKey({ autoIncrement: true }),
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    at: integer().notNull(),
    kind: text({ enum: ['state', 'token', 'probe', 'import', 'plan', 'reset'] }).notNull(),
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

/** A sign-in to the upstream that was begun here; kept a little while after its end for whoever still asks. */
export const oauthFlows = sqliteTable(
  'oauth_flows',
  {
    id: text().primaryKey(),
    method: text({ enum: ['browser', 'device'] }).notNull(),
    /** The account to be signed in again; null: whoever signs in is added. */
    accountId: text().references(() => accounts.id, { onDelete: 'cascade' }),
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
