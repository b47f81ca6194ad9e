/** Upstream accounts: identity, encrypted tokens, state, last usage and model catalogs. */
import { index, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const ACCOUNT_STATUSES = [
  'active',
  'rate_limited',
  'quota_exceeded',
  'paused',
  'reauth_required',
  'deactivated',
] as const
export type AccountStatus = (typeof ACCOUNT_STATUSES)[number]

export const ROUTING_POLICIES = ['normal', 'burn_first', 'preserve'] as const
export type RoutingPolicy = (typeof ROUTING_POLICIES)[number]

/** When reset credits are used automatically. */
export const RESET_POLICIES = ['never', 'before_expiry', 'when_exhausted', 'at_percent'] as const
export type ResetPolicy = (typeof RESET_POLICIES)[number]

export const accounts = sqliteTable(
  'accounts',
  {
    id: text().primaryKey(),
    /** The workspace ID sent upstream. Users of one workspace share it. */
    chatgptAccountId: text(),
    /** The user within the workspace. A re-import must match it. */
    chatgptUserId: text(),
    email: text().notNull(),
    alias: text(),
    planType: text().notNull(),
    workspaceId: text(),
    workspaceLabel: text(),
    seatType: text(),
    routingPolicy: text({ enum: ROUTING_POLICIES }).notNull().default('normal'),
    securityWorkAuthorized: integer({ mode: 'boolean' }).notNull().default(false),
    /** Whether Sluice starts its five-hour windows. */
    windowStartEnabled: integer({ mode: 'boolean' }).notNull().default(false),
    /** Null, as in the next three: the setting for all accounts. */
    resetPolicy: text({ enum: RESET_POLICIES }),
    /** Reset credits that are not used by rule. */
    keepCredits: integer('reset_keep_credits'),
    /** Used by rule only if the limits would not reset on their own for this long. */
    minBlockedMinutes: integer('reset_min_blocked_minutes'),
    percent: integer('reset_percent'),
    /** Percent used of the 5-hour window from which routing skips the account; null: no cap. */
    maxUsedPercentPrimary: integer(),
    /** The same for the weekly window, or the monthly one of plans without a weekly window. */
    maxUsedPercentSecondary: integer(),
    /** The dashboard user whose account this is. */
    ownerUserId: text(),
    /** Keys of the owner are exempt from the caps. */
    reserveForOwner: integer({ mode: 'boolean' }).notNull().default(false),
    /** Place in the order of the strategies that use accounts one after another; null: last. */
    position: integer(),
    /** The pool of outbound proxies for every call of the account; null: as the settings say. A missing pool means no route. */
    egressPoolId: text(),
    /** Streams that processes may run on the account, by number of the process; null: none, or only one process. */
    streamSlots: text({ mode: 'json' }).$type<Record<string, number>>(),
    accessTokenSealed: text().notNull(),
    refreshTokenSealed: text().notNull(),
    idTokenSealed: text().notNull(),
    lastRefreshAt: integer().notNull(),
    createdAt: integer().notNull(),
    /** The state machine of model/accounts/account-state.ts, flattened. */
    status: text({ enum: ACCOUNT_STATUSES }).notNull().default('active'),
    cause: text(),
    evidence: text(),
    since: integer(),
    until: integer(),
    nextCheckAt: integer(),
    attempts: integer().notNull().default(0),
  },
  /**
   * Imports look for this first and compare the e-mail afterwards, because SQLite folds the case of ASCII letters only.
   */
  (t) => [index('accounts_seat').on(t.chatgptAccountId, t.chatgptUserId)],
)

/** Labels that operators give to accounts, for filters and for assigning accounts to keys. */
export const accountTags = sqliteTable(
  'account_tags',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    tag: text().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.tag] })],
)

/** The last known usage of an account, updated by polls and by the ledger. */
export const accountUsage = sqliteTable('account_usage', {
  accountId: text()
    .primaryKey()
    .references(() => accounts.id, { onDelete: 'cascade' }),
  at: integer().notNull(),
  snapshot: text({ mode: 'json' }).$type<unknown>().notNull(),
})

/** Lifetime totals of an account, written by the ledger only, so that its hours need not be added up. */
export const accountTotals = sqliteTable('account_totals', {
  accountId: text()
    .primaryKey()
    .references(() => accounts.id, { onDelete: 'cascade' }),
  requests: integer().notNull(),
  inputTokens: integer().notNull(),
  cachedInputTokens: integer().notNull(),
  outputTokens: integer().notNull(),
  costMicros: integer().notNull(),
})

/** The last model catalog that was fetched with an account, per client version. */
export const accountCatalogs = sqliteTable(
  'account_catalogs',
  {
    accountId: text()
      .notNull()
      .references(() => accounts.id, { onDelete: 'cascade' }),
    clientVersion: text().notNull(),
    fetchedAt: integer().notNull(),
    models: text({ mode: 'json' }).$type<Record<string, unknown>[]>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.clientVersion] })],
)

/**
 * Which account owns a conversation or a piece of ciphertext. Keys are SHA-256 of the value. Rows of a deleted account
 * are ignored and deleted in small parts: a cascade over that many rows would take seconds.
 */
export const affinity = sqliteTable(
  'affinity',
  {
    kind: text({ enum: ['conversation', 'ciphertext', 'file'] }).notNull(),
    keyHash: text().notNull(),
    accountId: text().notNull(),
    /**
     * The conversation holds ciphertext of an earlier owner, which is left out when it is replayed. For ciphertext: its
     * account was released, so conversations do not follow it.
     */
    mixed: integer({ mode: 'boolean' }).notNull().default(false),
    usedAt: integer().notNull(),
    /** What the last request of the conversation used, in units of `model/log/request-units.ts`. 0 if unknown. */
    units: real().notNull().default(0),
    /** What reading its cached tokens without the cache would use: what a move costs. */
    moveUnits: real().notNull().default(0),
    /** How many those are: the most that a move loses. */
    cachedTokens: integer().notNull().default(0),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.keyHash] }),
    index('affinity_used').on(t.usedAt),
    index('affinity_account').on(t.accountId),
  ],
)
