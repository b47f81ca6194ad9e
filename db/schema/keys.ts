/** API keys of model clients, their limits, and the firewall list. */
import { index, integer, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

export const LIMIT_TYPES = ['requests', 'total_tokens', 'input_tokens', 'output_tokens', 'cost_usd'] as const
export type LimitType = (typeof LIMIT_TYPES)[number]
export const LIMIT_WINDOWS = ['5h', 'daily', '7d', 'weekly', 'monthly'] as const
export type LimitWindow = (typeof LIMIT_WINDOWS)[number]

/** `strip`: requests are sent without a fast tier; `refuse`: requests with one are rejected. */
export const FAST_MODE_RULES = ['off', 'strip', 'refuse'] as const
export type FastModeRule = (typeof FAST_MODE_RULES)[number]

/** The sizes of Claude models that can be served by a chosen model. */
export const CLAUDE_SIZES = ['opus', 'sonnet', 'haiku'] as const
export type ClaudeSize = (typeof CLAUDE_SIZES)[number]
/** `effort` null: as the client requests. */
export interface ChosenModel {
  model: string
  effort: string | null
}
/** Null: a model is chosen by price. */
export type ClaudeModels = Record<ClaudeSize, ChosenModel | null>

export const apiKeys = sqliteTable('api_keys', {
  id: text().primaryKey(),
  name: text().notNull(),
  /** Hex SHA-256 of the whole key; the key itself is shown once and never stored. */
  keyHash: text().notNull().unique(),
  keyPrefix: text().notNull(),
  isActive: integer({ mode: 'boolean' }).notNull().default(true),
  deactivatedReason: text({ enum: ['manual', 'owner_disabled', 'expired'] }),
  ownerUserId: text(),
  createdAt: integer().notNull(),
  expiresAt: integer(),
  lastUsedAt: integer(),
  allowedModels: text({ mode: 'json' }).$type<string[]>(),
  /** Hide other models in the native catalog instead of leaving them out. */
  applyToCodexModel: integer({ mode: 'boolean' }).notNull().default(false),
  enforcedModel: text(),
  enforcedReasoningEffort: text(),
  allowedReasoningEfforts: text({ mode: 'json' }).$type<string[]>(),
  enforcedServiceTier: text(),
  trafficClass: text({ enum: ['foreground', 'opportunistic'] })
    .notNull()
    .default('foreground'),
  transportPolicyOverride: text({ enum: ['smart', 'always_http', 'always_websocket'] }),
  usageSections: text().notNull().default('upstream_limits,account_pool_usage'),
  /** null: every account, unless `assignedTags` has some; a list: only these. */
  assignedAccountIds: text({ mode: 'json' }).$type<string[]>(),
  /** Accounts with any of these tags too; null: none. */
  assignedTags: text({ mode: 'json' }).$type<string[]>(),
  /** null: not limited to model sources; a list: only these sources, which take precedence over the pool. */
  assignedSourceIds: text({ mode: 'json' }).$type<string[]>(),
  /** May overflow to model sources when the setting allows that for marked keys only. */
  allowOverflow: integer({ mode: 'boolean' }).notNull().default(false),
  /** null: as the setting says. */
  prohibitFastMode: text({ enum: FAST_MODE_RULES }),
  /** The models that serve requests for Claude models; null, also for a single size: as the setting says. */
  claudeModels: text({ mode: 'json' }).$type<ClaudeModels>(),
  /** The holder of the key can replace its secret on the page of the key. */
  holderMayRegenerate: integer({ mode: 'boolean' }).notNull().default(false),
  /** Lifetime totals, written by the ledger in the transaction that inserts the request rows. */
  requestCount: integer().notNull().default(0),
  inputTokens: integer().notNull().default(0),
  cachedInputTokens: integer().notNull().default(0),
  outputTokens: integer().notNull().default(0),
  costMicros: integer().notNull().default(0),
})

export const apiKeyLimits = sqliteTable(
  'api_key_limits',
  {
    id: text().primaryKey(),
    keyId: text()
      .notNull()
      .references(() => apiKeys.id, { onDelete: 'cascade' }),
    limitType: text({ enum: LIMIT_TYPES }).notNull(),
    limitWindow: text({ enum: LIMIT_WINDOWS }).notNull(),
    /** Tokens, requests, or micro-dollars for `cost_usd`. */
    maxValue: integer().notNull(),
    currentValue: integer().notNull().default(0),
    /**
     * Leased and not used yet, by number of the process; together with `currentValue` never above the maximum. Per
     * process, so that the lease of one that died can be dropped while others run.
     */
    leases: text({ mode: 'json' }).$type<Readonly<Record<string, number>>>().notNull().default({}),
    /** Exact model the limit counts; empty string: all models (part of the identity, so not null). */
    modelFilter: text().notNull().default(''),
    resetAt: integer().notNull(),
  },
  (t) => [
    index('api_key_limits_key').on(t.keyId),
    uniqueIndex('api_key_limits_identity').on(t.keyId, t.limitType, t.limitWindow, t.modelFilter),
  ],
)

/**
 * Sessions of the page of a key (`/key`), separate from dashboard sessions. A session belongs to the secret, so it ends
 * when the key is deleted or gets a new one.
 */
export const keySessions = sqliteTable(
  'key_sessions',
  {
    /** Hex SHA-256 of the token in the cookie. */
    id: text().primaryKey(),
    /** `api_keys.key_hash`. */
    keyHash: text().notNull(),
    createdAt: integer().notNull(),
    expiresAt: integer().notNull(),
  },
  (t) => [index('key_sessions_key').on(t.keyHash)],
)

/** Allowed client addresses and CIDR ranges. An empty table allows every address. */
export const firewallEntries = sqliteTable('firewall_entries', {
  /** Canonical text of the address or range. */
  ipAddress: text().primaryKey(),
  createdAt: integer().notNull(),
})
