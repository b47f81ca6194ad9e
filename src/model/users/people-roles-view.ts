/** Roles and the permission vocabulary as the dashboard's clients see them. */
import { count } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { listShares, type Share } from '../shares/share-rows.ts'
import { DESCRIPTIONS, IMPLIES, OWN_SUPPORTED, PERMISSIONS, PRIVILEGED } from './permissions.ts'
import { listRoles, type Role, roleVersion } from './roles.ts'

export type RoleView = ReturnType<typeof toRole>

export const listRoleViews = async (db: Db): Promise<RoleView[]> => {
  const facts = await getFacts(db)
  return (await listRoles(db)).map((role) => toRole(role, facts))
}

export const roleView = async (db: Db, role: Role): Promise<RoleView> => toRole(role, await getFacts(db))

export const permissionViews = () =>
  PERMISSIONS.map((permission) => ({
    permission,
    description: DESCRIPTIONS[permission],
    implies: IMPLIES[permission] ?? [],
    ownSupported: OWN_SUPPORTED.includes(permission),
    privileged: PRIVILEGED.includes(permission),
  }))

interface Facts {
  holders: Map<string, number>
  shares: ReadonlyMap<string, Share>
}

const getFacts = async (db: Db): Promise<Facts> => ({ holders: await getHolders(db), shares: await listShares(db) })

const getHolders = async (db: Db): Promise<Map<string, number>> =>
  new Map(
    (await db.select({ roleId: users.roleId, n: count() }).from(users).groupBy(users.roleId).all()).map(
      ({ roleId, n }) => [roleId, n],
    ),
  )

const toRole = (role: Role, { holders, shares }: Facts) => ({
  id: role.id,
  slug: role.slug,
  name: role.name,
  description: role.description,
  kind: role.kind,
  locked: role.kind === 'preset',
  assignableToUsers: role.isAssignable,
  grants: [...role.grants].map(([permission, scope]) => ({ permission, scope })),
  usersCount: holders.get(role.id) ?? 0,
  share: shares.get(role.id) ?? null,
  version: roleVersion(role),
})
