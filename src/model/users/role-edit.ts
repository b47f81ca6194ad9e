/** Creates, changes and deletes custom roles. Users cannot grant or remove more than they hold. */
import { and, eq, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type Db, notice, type Tx } from '../../../db/commit.ts'
import { roleGrants, roles } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import type { Random } from '../../lib/random.ts'
import { append } from '../audit/audit.ts'
import { getChanges } from '../audit/changes-of.ts'
import { ExpectedVersion, requireVersion } from '../edit-version.ts'
import { ShareInput } from '../shares/share-input.ts'
import { type Share, storeShare } from '../shares/share-rows.ts'
import { type Caller, requireDelegation } from './delegation.ts'
import { voidLinks } from './invites.ts'
import { type Grants, grantProblem, isSubset, PERMISSIONS } from './permissions.ts'
import { getRole, listRoles, type Role, roleVersion } from './roles.ts'

const Name = z.string().trim().min(1).max(64)
const Description = z
  .string()
  .trim()
  .max(256)
  .transform((text) => text || null)
  .nullable()

/** Forms send one string: `accounts:read:all`. */
const Grant = z.preprocess(
  (value) => {
    if (typeof value !== 'string') return value
    const [, permission, scope] = /^(.+?)(?::(all|own))?$/.exec(value) ?? []
    return { permission, scope }
  },
  z.strictObject({
    permission: z.enum(PERMISSIONS).describe('The permission.'),
    scope: z.enum(['all', 'own']).default('all').describe('Everything, or only what the user owns.'),
  }),
)

/** `grantProblem` checks the list as a whole. */
const GrantList = z
  .array(Grant)
  .max(PERMISSIONS.length)
  .refine((list) => new Set(list.map(({ permission }) => permission)).size === list.length, 'names a permission twice')
  .transform((list): Grants => new Map(list.map(({ permission, scope }) => [permission, scope])))
  .superRefine((grants, context) => {
    const problem = grantProblem(grants)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })

export const NewRole = z.strictObject({
  name: Name.describe('Display name. Must be unique.'),
  description: Description.optional().describe('What the role is for. Blank or null: none.'),
  grants: GrantList.describe('Permissions, each as an object or as text like `accounts:read:all`.'),
})
export const RolePatch = NewRole.partial().extend({
  share: ShareInput.optional().describe(
    'The share of the pool for each user with this role, unless they have their own. Built-in roles can have one too. Null means no share.',
  ),
  expectedVersion: ExpectedVersion,
})
export const RoleClone = NewRole.omit({ grants: true })
export type NewRole = z.output<typeof NewRole>
export type RolePatch = z.output<typeof RolePatch>
export type RoleClone = z.output<typeof RoleClone>

interface Doing {
  caller: Caller
  random: Random
}

/** Throws `insufficient_delegation`, `role_taken`. */
export const createRole = async (tx: Tx, input: NewRole, { caller, random }: Doing): Promise<Role> => {
  const { name, description = null, grants } = input
  const { actor } = caller
  requireHeld(caller, grants)
  await requireFreeName(tx, name)
  const id = random.id('role')
  const slug = await freeSlug(tx, name)
  await tx.insert(roles).values({ id, slug, name, description, createdAt: actor.at, updatedAt: actor.at }).run()
  await writeGrants(tx, id, grants)
  await append(tx, actor, 'role_created', { target: id, details: { name, slug, grants: Object.fromEntries(grants) } })
  notice(tx, 'people')
  return getRole(tx, id)
}

/** A custom role with the grants of any other. Throws `role_not_found`, `insufficient_delegation`, `role_taken`. */
export const cloneRole = async (tx: Tx, id: string, input: RoleClone, doing: Doing): Promise<Role> =>
  createRole(tx, { ...input, grants: (await getRole(tx, id)).grants }, doing)

/**
 * Removed permissions are lost with the next request, and invites for other grants become void. The slug stays when the
 * name changes. Throws `role_not_found`, `role_locked`, `insufficient_delegation`, `edit_conflict`,
 * `self_modification_forbidden`, `role_taken`.
 */
export const editRole = async (tx: Tx, id: string, { share, ...patch }: RolePatch, caller: Caller): Promise<Role> => {
  const { expectedVersion: _, ...rest } = patch
  if (share !== undefined) await changeShare(tx, id, share, caller)
  if (share !== undefined && Object.values(rest).every((value) => value === undefined)) return getRole(tx, id)
  const before = await customRole(tx, id, caller)
  requireVersion(patch.expectedVersion, roleVersion(before))
  const change = getChanges(before, { name: patch.name, description: patch.description, grants: patch.grants })
  const { name, description, grants } = change
  const changed = Object.keys(change)
  if (changed.length === 0) return before
  if (grants) requireOthersRole(caller, before, grants)
  if (name !== undefined) await requireFreeName(tx, name, before.id)
  await tx.update(roles).set({ name, description, updatedAt: caller.actor.at }).where(eq(roles.id, before.id)).run()
  if (grants) await writeGrants(tx, before.id, grants)
  const voidedLinks = grants ? await voidLinks(tx, { roleId: before.id }) : 0
  await append(tx, caller.actor, 'role_updated', {
    target: before.id,
    details: {
      changed,
      ...(grants && { from: Object.fromEntries(before.grants), to: Object.fromEntries(grants) }),
      ...(voidedLinks > 0 && { voidedLinks }),
    },
  })
  notice(tx, 'people')
  return getRole(tx, before.id)
}

/** Locked built-in roles can have a share too, because it grants no permissions. */
const changeShare = async (tx: Tx, id: string, share: Share | null, caller: Caller): Promise<void> => {
  const role = await getRole(tx, id)
  requireDelegation(caller, role)
  if (!(await storeShare(tx, role.id, share))) return
  await append(tx, caller.actor, 'role_updated', { target: role.id, details: { changed: ['share'], share } })
  notice(tx, 'people')
}

/**
 * One statement, so that the role cannot be assigned in between. Throws `role_not_found`, `role_locked`,
 * `insufficient_delegation`, `role_in_use`.
 */
export const deleteRole = async (tx: Tx, id: string, caller: Caller): Promise<void> => {
  const role = await customRole(tx, id, caller)
  const isUnused = sql`NOT EXISTS (SELECT 1 FROM users WHERE users.role_id = ${role.id})
    AND NOT EXISTS (SELECT 1 FROM auth_providers WHERE auth_providers.unknown_identity_role_id = ${role.id})`
  const { changes } = await tx
    .delete(roles)
    .where(and(eq(roles.id, role.id), isUnused))
    .run()
  if (changes === 0) throw new AppError('role_in_use')
  await storeShare(tx, role.id, null)
  await append(tx, caller.actor, 'role_deleted', { target: role.id, details: { name: role.name, slug: role.slug } })
  notice(tx, 'people')
}

const customRole = async (tx: Tx, id: string, caller: Caller): Promise<Role> => {
  const role = await getRole(tx, id)
  if (role.kind === 'preset') throw new AppError('role_locked')
  requireDelegation(caller, role)
  return role
}

const requireHeld = ({ person }: Caller, grants: Grants): void => {
  if (!isSubset(grants, person.role.grants)) throw new AppError('insufficient_delegation', { param: 'grants' })
}

/** Users cannot change the role they hold (spec §5, delegation 2). */
const requireOthersRole = (caller: Caller, role: Role, grants: Grants): void => {
  if (caller.person.row.roleId === role.id) throw new AppError('self_modification_forbidden')
  requireHeld(caller, grants)
}

const writeGrants = async (tx: Tx, roleId: string, grants: Grants): Promise<void> => {
  await tx.delete(roleGrants).where(eq(roleGrants.roleId, roleId)).run()
  const rows = [...grants].map(([permission, scope]) => ({ roleId, permission, scope }))
  if (rows.length > 0) await tx.insert(roleGrants).values(rows).run()
}

/** Names differ by more than case. Throws `role_taken`. */
const requireFreeName = async (db: Db, name: string, except?: string): Promise<void> => {
  const isTaken = (await listRoles(db)).some(
    (role) => role.id !== except && role.name.toLowerCase() === name.toLowerCase(),
  )
  if (isTaken) throw new AppError('role_taken', { param: 'name' })
}

/** `Key Keepers` becomes `key-keepers`; a slug that is taken gets a number. */
const freeSlug = async (db: Db, name: string): Promise<string> => {
  const taken = new Set((await listRoles(db)).flatMap(({ slug, id }) => [slug, id]))
  const base =
    name
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '') || 'role'
  for (let n = 1; ; n++) {
    const slug = n === 1 ? base : `${base}-${n}`
    if (!taken.has(slug)) return slug
  }
}
