/**
 * Outbound proxies for accounts: endpoints, and the pools that use them in order. `accounts.egressPoolId` selects the
 * pool of an account.
 */
import { index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'

export const EGRESS_SCHEMES = ['http', 'https', 'socks5', 'socks5h'] as const
export type EgressScheme = (typeof EGRESS_SCHEMES)[number]

/** The result of the last test of an endpoint. */
export interface EgressTest {
  /** ms since epoch */
  at: number
  ok: boolean
  /** Null: no answer. */
  statusCode: number | null
  elapsedMs: number
  /** The address ChatGPT saw; null: unknown. */
  exitAddress: string | null
  /** Null: it succeeded. */
  error: string | null
}

export const egressEndpoints = sqliteTable('egress_endpoints', {
  id: text().primaryKey(),
  name: text().notNull().unique(),
  scheme: text({ enum: EGRESS_SCHEMES }).notNull(),
  host: text().notNull(),
  port: integer().notNull(),
  username: text(),
  passwordSealed: text(),
  isActive: integer({ mode: 'boolean' }).notNull().default(true),
  lastTest: text({ mode: 'json' }).$type<EgressTest>(),
  createdAt: integer().notNull(),
})

export const egressPools = sqliteTable('egress_pools', {
  id: text().primaryKey(),
  name: text().notNull().unique(),
  isActive: integer({ mode: 'boolean' }).notNull().default(true),
  createdAt: integer().notNull(),
})

/** The endpoints of a pool, used in the order of `sortOrder`. */
export const egressMembers = sqliteTable(
  'egress_members',
  {
    poolId: text()
      .notNull()
      .references(() => egressPools.id, { onDelete: 'cascade' }),
    endpointId: text()
      .notNull()
      .references(() => egressEndpoints.id, { onDelete: 'cascade' }),
    sortOrder: integer().notNull(),
    isActive: integer({ mode: 'boolean' }).notNull().default(true),
  },
  (t) => [primaryKey({ columns: [t.poolId, t.endpointId] }), index('egress_members_endpoint').on(t.endpointId)],
)
