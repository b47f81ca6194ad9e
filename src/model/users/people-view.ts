/** Users and invites for dashboard clients: camelCase, ISO times, never a hash or a secret. */

import { eq, isNotNull } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { apiKeys } from '../../../db/schema/keys.ts'
import { identities, invites, passkeys } from '../../../db/schema/people.ts'
import { mapInOrder } from '../../lib/in-order.ts'
import { iso, isoOrNull } from '../../lib/iso.ts'
import { listShares, type Share } from '../shares/share-rows.ts'
import { getVoidReason, type InviteRow } from './invite-validity.ts'
import { type Link, listInvites, type OpenInvite } from './invites.ts'
import { listPeople, type Person, personVersion } from './people.ts'
import type { Role } from './roles.ts'
import { RESERVED_USERNAME } from './usernames.ts'

export type User = Awaited<ReturnType<typeof toUser>>

/** Oldest first. */
export const listUsers = async (db: Db): Promise<User[]> => {
  const facts = await getFacts(db)
  return mapInOrder(await listPeople(db), (person) => toUser(db, person, facts))
}

export const userView = async (db: Db, person: Person): Promise<User> =>
  toUser(db, person, await getFacts(db, person.row.id))

export const roleReferenceView = ({ id, slug, name, kind }: Role) => ({ id, slug, name, kind })

interface Facts {
  invites: Map<string, InviteRow>
  identities: Map<string, { subject: string }[]>
  passkeys: Map<string, unknown[]>
  keys: Map<string, { reason: string | null }[]>
  shares: ReadonlyMap<string, Share>
}

/** Facts from other tables, for one user or all, by user id. */
const getFacts = async (db: Db, id?: string): Promise<Facts> => ({
  invites: new Map(
    (
      await db
        .select()
        .from(invites)
        .where(id === undefined ? undefined : eq(invites.userId, id))
        .all()
    ).map((row) => [row.userId, row]),
  ),
  identities: Map.groupBy(
    await db
      .select({ userId: identities.userId, subject: identities.subject })
      .from(identities)
      .where(id === undefined ? undefined : eq(identities.userId, id))
      .orderBy(identities.createdAt, identities.id)
      .all(),
    ({ userId }) => userId,
  ),
  passkeys: Map.groupBy(
    await db
      .select({ userId: passkeys.userId })
      .from(passkeys)
      .where(id === undefined ? undefined : eq(passkeys.userId, id))
      .all(),
    ({ userId }) => userId,
  ),
  shares: await listShares(db),
  keys: Map.groupBy(
    await db
      .select({ ownerUserId: apiKeys.ownerUserId, reason: apiKeys.deactivatedReason })
      .from(apiKeys)
      .where(id === undefined ? isNotNull(apiKeys.ownerUserId) : eq(apiKeys.ownerUserId, id))
      .all(),
    ({ ownerUserId }) => ownerUserId ?? '',
  ),
})

const toUser = async (db: Db, { row, role }: Person, facts: Facts) => {
  const invite = facts.invites.get(row.id)
  const keys = facts.keys.get(row.id) ?? []
  return {
    id: row.id,
    username: row.username,
    displayName: row.displayName,
    email: row.email,
    role: roleReferenceView(role),
    roleSource: 'manual' as const,
    status: row.status,
    isBreakGlass: row.username === RESERVED_USERNAME,
    hasPassword: row.passwordHash !== null,
    totpConfigured: row.totpSecretSealed !== null,
    passkeyCount: facts.passkeys.get(row.id)?.length ?? 0,
    identities: (facts.identities.get(row.id) ?? []).map(({ subject }) => subject),
    keyCount: keys.length,
    /** Keys disabled with the user, which `reactivate-keys` would restore. */
    deactivatedKeyCount: keys.filter(({ reason }) => reason === 'owner_disabled').length,
    createdAt: iso(row.createdAt),
    lastLoginAt: isoOrNull(row.lastLoginAt),
    lastLoginMethod: row.lastLoginMethod,
    /** Their own share of the pool. Null means the share of their role, if it has one. */
    share: facts.shares.get(row.id) ?? null,
    version: personVersion(row),
    pendingInvite: invite
      ? {
          expiresAt: isoOrNull(invite.expiresAt),
          ssoOnly: invite.tokenHash === null,
          expectedSubject: invite.expectedSubject,
          /** Why the invite is void; null: it is valid. */
          voidReason: await getVoidReason(db, invite, role),
        }
      : null,
  }
}

export const listInviteViews = async (db: Db) =>
  mapInOrder(await listInvites(db), async ({ invite, person: { row, role } }) => ({
    userId: invite.userId,
    username: row.username,
    roleId: row.roleId,
    expiresAt: isoOrNull(invite.expiresAt),
    ssoOnly: invite.tokenHash === null,
    createdByUserId: invite.createdBy,
    voidReason: await getVoidReason(db, invite, role),
  }))

export const linkView = ({ token, expiresAt }: Link) => ({ token, expiresAt: iso(expiresAt) })

/** What the holder of the link can see. */
export const invitationView = ({ invite, person, inviter }: OpenInvite) => ({
  roleName: person.role.name,
  inviterDisplayName: inviter && (inviter.row.displayName ?? inviter.row.username),
  suggestedUsername: person.row.username,
  usernameLocked: invite.usernameLocked,
  expiresAt: iso(invite.expiresAt),
})
