/** Roles: the built-in presets and the custom ones in the database. */
import { asc, eq } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { roleGrants, roles } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { getVersion } from '../edit-version.ts'
import {
  DESCRIPTIONS,
  type Grants,
  holds,
  PERMISSIONS,
  type Permission,
  PRESETS,
  type PresetSlug,
  type Scope,
} from './permissions.ts'

export interface Role {
  id: string
  slug: string
  name: string
  description: string | null
  kind: 'preset' | 'custom'
  /** Whether it can be assigned to a user (spec §2: never Guest). */
  isAssignable: boolean
  grants: Grants
}

const preset = (slug: PresetSlug, name: string, description: string, isAssignable: boolean): Role => ({
  id: `role_${slug}`,
  slug,
  name,
  description,
  kind: 'preset',
  isAssignable,
  grants: PRESETS[slug],
})

export const PRESET_ROLES: readonly Role[] = [
  preset('admin', 'Admin', 'Full access', true),
  preset('operator', 'Operator', 'Manages accounts, keys and routing. No users or security settings.', true),
  preset('viewer', 'Viewer', 'Read-only access with masked names', true),
  preset('member', 'Member', 'Own keys, their requests and reports', true),
  preset('guest', 'Guest', 'Read-only access without signing in as a user', false),
]
export const ADMIN_ROLE_ID = 'role_admin'

/** What a 403 says: the missing permission, the built-in roles that have it, and who can assign one. */
export const missingPermissionText = (permission: Permission, isGuest: boolean): string => {
  const roles = PRESET_ROLES.filter((role) => role.isAssignable && holds(role.grants, permission))
  const names = roles.map(({ name }) => name).join(' or ')
  const need = `You need the permission “${DESCRIPTIONS[permission]}” (${permission}).`
  return isGuest
    ? `${need} Guests don’t have it. Sign in as a user with the role ${names}.`
    : `${need} Ask a user who manages users to give you the role ${names}.`
}

/** Presets first, then custom roles by name. */
export const listRoles = async (db: Db): Promise<Role[]> => {
  const grants = Map.groupBy(await db.select().from(roleGrants).all(), ({ roleId }) => roleId)
  const custom = await db.select().from(roles).orderBy(asc(roles.name), asc(roles.id)).all()
  return [...PRESET_ROLES, ...custom.map((row) => customRole(row, grants.get(row.id) ?? []))]
}

/** null when there is no such role. */
export const findRole = async (db: Db, id: string): Promise<Role | null> => {
  const known = PRESET_ROLES.find((role) => role.id === id)
  if (known) return known
  const row = await db.select().from(roles).where(eq(roles.id, id)).get()
  return row ? customRole(row, await db.select().from(roleGrants).where(eq(roleGrants.roleId, id)).all()) : null
}

/** The version of a role's editable members. */
export const roleVersion = ({ name, description, grants }: Role): string => getVersion([name, description, ...grants])

/** `reference` is a slug or an id (decisions §2). Throws `role_not_found`. */
export const getRole = async (db: Db, reference: string): Promise<Role> => {
  const role = (await findRole(db, reference)) ?? (await listRoles(db)).find(({ slug }) => slug === reference)
  if (!role) throw new AppError('role_not_found')
  return role
}

type RoleRow = typeof roles.$inferSelect
type GrantRow = typeof roleGrants.$inferSelect

const customRole = ({ id, slug, name, description }: RoleRow, grants: readonly GrantRow[]): Role => ({
  id,
  slug,
  name,
  description,
  kind: 'custom',
  isAssignable: true,
  grants: inOrder(new Map(grants.map(({ permission, scope }) => [permission, scope]))),
})

/** In fixed order, without permissions unknown to this version. */
const inOrder = (granted: ReadonlyMap<string, Scope>): Grants =>
  new Map(
    PERMISSIONS.flatMap((permission): [Permission, Scope][] => {
      const scope = granted.get(permission)
      return scope ? [[permission, scope]] : []
    }),
  )
