/** Who may use the dashboard: people, how they prove who they are, what they may do, and where they are signed in. */
import { sql } from 'drizzle-orm'
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core'

/** A dashboard account (spec §2). A waiting one is `invited` with an invite that expects an identity. */
export const users = sqliteTable(
  'users',
  {
    id: text().primaryKey(),
    /** Lower case. */
    username: text().notNull().unique(),
    displayName: text(),
    email: text().unique(),
    /** Whether the account wrote its address itself: such a one proves nothing to the reverse proxy's linking. */
    isEmailOwn: integer({ mode: 'boolean' }).notNull().default(false),
    /** `role_<preset>` or the id of a custom role. */
    roleId: text().notNull(),
    status: text({ enum: ['invited', 'active', 'disabled'] }).notNull(),
    /** argon2id, as a PHC string; null: signs in some other way, or not yet. */
    passwordHash: text(),
    totpSecretSealed: text(),
    /** The newest step that was accepted: an older or equal one is a replay. */
    totpLastStep: integer(),
    createdAt: integer().notNull(),
    createdBy: text(),
    lastLoginAt: integer(),
    lastLoginMethod: text(),
  },
  (t) => [index('users_role').on(t.roleId, t.status)],
)

/** Custom roles; the presets live in code. */
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

/** Names under which a reverse proxy announces people. */
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

/** One open invite a person; accepting, revoking and expiring delete it. */
export const invites = sqliteTable(
  'invites',
  {
    userId: text()
      .primaryKey()
      .references(() => users.id, { onDelete: 'cascade' }),
    /** Hex SHA-256; `void:` and the user id: the link is dead and has to be sent again; null: waits for an identity instead of a link. */
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

/** A signed-in browser. Ending it is deleting the row, which holds on its very next request. */
export const sessions = sqliteTable(
  'sessions',
  {
    /** Public name, for lists. */
    id: text().primaryKey(),
    /** Hex SHA-256 of what the cookie holds. */
    tokenHash: text().notNull().unique(),
    /** null: a guest. */
    userId: text().references(() => users.id, { onDelete: 'cascade' }),
    method: text({
      enum: ['password', 'totp', 'recovery_code', 'passkey', 'invite', 'guest', 'trusted_header'],
    }).notNull(),
    /** False while the second factor is still to come. */
    isComplete: integer({ mode: 'boolean' }).notNull(),
    /** Until when sensitive changes need no confirmation; null: they do now. */
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
    /** Base64url, as the authenticator names it. */
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

/** What was sent to be signed, until it comes back once. */
export const challenges = sqliteTable(
  'challenges',
  {
    /** Base64url; what the authenticator signs. */
    challenge: text().primaryKey(),
    purpose: text({ enum: ['register', 'sign_in', 'step_up'] }).notNull(),
    /** The session it was made for; null: signing in. */
    sessionId: text().references(() => sessions.id, { onDelete: 'cascade' }),
    expiresAt: integer().notNull(),
  },
  (t) => [index('challenges_session').on(t.sessionId)],
)

/** Ways to sign in that bring strangers. */
export const authProviders = sqliteTable('auth_providers', {
  id: text().primaryKey(),
  kind: text({ enum: ['password', 'trusted_header'] })
    .notNull()
    .unique(),
  label: text().notNull(),
  /** What unknown identities become; null: they are refused. */
  unknownIdentityRoleId: text(),
  linkByEmail: integer({ mode: 'boolean' }).notNull().default(false),
  /** Recorded, not used yet (spec §2). */
  idpMfaEnforced: integer({ mode: 'boolean' }).notNull().default(false),
  createdAt: integer().notNull(),
  updatedAt: integer().notNull(),
})
