/** Roles and the permission vocabulary as the dashboard's clients see them. */
import { count } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { DESCRIPTIONS, IMPLIES, OWN_SUPPORTED, PERMISSIONS, PRIVILEGED } from './permissions.ts'
import { listRoles, type Role, roleVersion } from './roles.ts'

export type RoleView = ReturnType<typeof toRole>

export const listRoleViews = (db: Db): RoleView[] => {
  const holders = getHolders(db)
  return listRoles(db).map((role) => toRole(role, holders))
}

export const roleView = (db: Db, role: Role): RoleView => toRole(role, getHolders(db))

export const permissionViews = () =>
  PERMISSIONS.map((permission) => ({
    permission,
    description: DESCRIPTIONS[permission],
    implies: IMPLIES[permission] ?? [],
    ownSupported: OWN_SUPPORTED.includes(permission),
    privileged: PRIVILEGED.includes(permission),
  }))

const getHolders = (db: Db): Map<string, number> =>
  new Map(
    db
      .select({ roleId: users.roleId, n: count() })
      .from(users)
      .groupBy(users.roleId)
      .all()
      .map(({ roleId, n }) => [roleId, n]),
  )

const toRole = (role: Role, holders: Map<string, number>) => ({
  id: role.id,
  slug: role.slug,
  name: role.name,
  description: role.description,
  kind: role.kind,
  locked: role.kind === 'preset',
  assignableToUsers: role.isAssignable,
  grants: [...role.grants].map(([permission, scope]) => ({ permission, scope })),
  usersCount: holders.get(role.id) ?? 0,
  version: roleVersion(role),
})
