/** Dashboard users, their passwords and second factors, roles, invites and sessions. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** A dashboard user (spec §2). A user who waits for an identity is `invited` and has an invite without a link. */
export const users = sqliteTable(
  'users',
  {
    id: text().primaryKey(),
    /** Lower case. */
    username: text().notNull().unique(),
    displayName: text(),
    email: text().unique(),
    /** Whether the user entered the address. Such an address is not used to link an identity from the reverse proxy. */
    isEmailOwn: integer({ mode: 'boolean' }).notNull().default(false),
    /** `role_<preset>` or the id of a custom role. */
    roleId: text().notNull(),
    status: text({ enum: ['invited', 'active', 'disabled'] }).notNull(),
    /** argon2id as a PHC string; null: no password. */
    passwordHash: text(),
    totpSecretSealed: text(),
    /** The newest accepted time step. Codes of the same or an earlier step are rejected as replays. */
    totpLastStep: integer(),
    createdAt: integer().notNull(),
    createdBy: text(),
    lastLoginAt: integer(),
    lastLoginMethod: text(),
  },
  (t) => [index('users_role').on(t.roleId, t.status)],
)

/** Custom roles. Built-in roles are defined in code. */
export const roles = sqliteTable('roles', {
  id: text().primaryKey(),
  slug: text().notNull().unique(),
  name: text().notNull(),
  description: text(),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})

export const roleGrants = sqliteTable(
  'role_grants',
  {
    roleId: text()
      .notNull()
      .references(() => roles.id, { onDelete: 'cascade' }),
    permission: text().notNull(),
    scope: text({ enum: ['all', 'own'] }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.roleId, t.permission] })],
)

/** Names under which a reverse proxy announces users. */
export const identities = sqliteTable(
  'identities',
  {
    id: text().primaryKey(),
    userId: text()
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    provider: text({ enum: ['trusted_header'] }).notNull(),
    /** Trimmed, lower case. */
    subject: text().notNull(),
    createdAt: integer().notNull(),
    lastSeenAt: integer(),
  },
  (t) => [uniqueIndex('identities_subject').on(t.provider, t.subject), index('identities_user').on(t.userId)],
)

/** At most one open invite per user. Accepting, revoking and expiring delete it. */
export const invites = sqliteTable(
  'invites',
  {
    userId: text()
      .primaryKey()
      .references(() => users.id, { onDelete: 'cascade' }),
    /**
     * Hex SHA-256. `void:` and the user ID: the link is invalid and a new one must be sent. Null: waits for an identity
     * instead.
     */
    tokenHash: text().unique(),
    /** null: never. */
    expiresAt: integer(),
    usernameLocked: integer({ mode: 'boolean' }).notNull().default(false),
    expectedProvider: text({ enum: ['trusted_header'] }),
    expectedSubject: text(),
    createdBy: text(),
    createdAt: integer().notNull(),
  },
  (t) => [
    uniqueIndex('invites_expected').on(t.expectedProvider, t.expectedSubject).where(sql`expected_subject IS NOT NULL`),
  ],
)

/** A signed-in browser. Deleting the row ends the session with the next request. */
export const sessions = sqliteTable(
  'sessions',
  {
    /** Public ID, for lists. */
    id: text().primaryKey(),
    /** Hex SHA-256 of the token in the cookie. */
    tokenHash: text().notNull().unique(),
    /** null: a guest. */
    userId: text().references(() => users.id, { onDelete: 'cascade' }),
    method: text({
      enum: ['password', 'totp', 'recovery_code', 'passkey', 'invite', 'guest', 'trusted_header'],
    }).notNull(),
    /** False while the second factor is missing. */
    isComplete: integer({ mode: 'boolean' }).notNull(),
    /** Until when sensitive changes need no confirmation; null: they need one. */
    confirmedUntil: integer(),
    createdAt: integer().notNull(),
    lastSeenAt: integer().notNull(),
    expiresAt: integer().notNull(),
    address: text(),
    userAgent: text(),
  },
  (t) => [index('sessions_user').on(t.userId)],
)

export const passkeys = sqliteTable(
  'passkeys',
  {
    id: text().primaryKey(),
    /** Base64url, as sent by the authenticator. */
    credentialId: text().notNull().unique(),
    userId: text()
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    name: text().notNull(),
    /** Base64url of the COSE key. */
    publicKey: text().notNull(),
    counter: integer().notNull(),
    transports: text({ mode: 'json' }).$type<string[]>().notNull(),
    createdAt: integer().notNull(),
    lastUsedAt: integer(),
  },
  (t) => [index('passkeys_user').on(t.userId)],
)

/** Recovery codes of users with an authenticator. Using one deletes its row. */
export const recoveryCodes = sqliteTable(
  'recovery_codes',
  {
    userId: text()
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** Hex SHA-256 of the user id and the code. A code has 80 random bits, so a fast hash is enough. */
    codeHash: text().notNull(),
    createdAt: integer().notNull(),
  },
  (t) => [primaryKey({ columns: [t.userId, t.codeHash] })],
)

/** A passkey challenge. It can be used once. */
export const challenges = sqliteTable(
  'challenges',
  {
    /** Base64url; the value that the authenticator signs. */
    challenge: text().primaryKey(),
    purpose: text({ enum: ['register', 'sign_in', 'step_up'] }).notNull(),
    /** The session it was created for; null: signing in. */
    sessionId: text().references(() => sessions.id, { onDelete: 'cascade' }),
    expiresAt: integer().notNull(),
  },
  (t) => [index('challenges_session').on(t.sessionId)],
)

/** Sign-in methods that can create users. */
export const authProviders = sqliteTable('auth_providers', {
  id: text().primaryKey(),
  kind: text({ enum: ['password', 'trusted_header'] })
    .notNull()
    .unique(),
  label: text().notNull(),
  /** The role of users created for unknown identities; null: they are rejected. */
  unknownIdentityRoleId: text(),
  linkByEmail: integer({ mode: 'boolean' }).notNull().default(false),
  /** Recorded, not used yet (spec §2). */
  idpMfaEnforced: integer({ mode: 'boolean' }).notNull().default(false),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})

/** Shares of the pool's capacity. A user's own share wins over that of their role. */
export const shares = sqliteTable('shares', {
  /** The ID of a user or role. */
  holderId: text().primaryKey(),
  /** Percent of the pool's five-hour capacity. Null means not limited. */
  fiveHourPercent: real(),
  weeklyPercent: real(),
})
