/** `/api/dashboard-roles`: built-in and custom roles and their permissions. */
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { listRoleViews, permissionViews, roleView } from '../../model/users/people-roles-view.ts'
import {
  cloneRole,
  createRole,
  deleteRole,
  editRole,
  NewRole,
  RoleClone,
  RolePatch,
} from '../../model/users/role-edit.ts'
import { commitAsManager, requiresManaging, usersPageAfter } from './manage.ts'

/** For assigning roles, and for editing them. */
const readsRoles = requires('users:manage', { or: 'roles:manage' })

export const listDashboardRoles = createHandlers(readsRoles, async (c) => c.json(await listRoleViews(c.env.db)))

export const listPermissions = createHandlers(readsRoles, (c) => c.json(permissionViews()))

export const addRole = createHandlers(requiresManaging('roles:manage', 'role_created'), body(NewRole), async (c) => {
  const { db, random } = c.env
  const role = await commitAsManager(c, 'roles:manage', (tx, caller) =>
    createRole(tx, c.req.valid('json'), { caller, random }),
  )
  return proceed(c, await roleView(db, role), usersPageAfter('role_created'), 201)
})

export const copyRole = createHandlers(requiresManaging('roles:manage', 'role_created'), body(RoleClone), async (c) => {
  const { db, random } = c.env
  const role = await commitAsManager(c, 'roles:manage', (tx, caller) =>
    cloneRole(tx, getPathId(c), c.req.valid('json'), { caller, random }),
  )
  return proceed(c, await roleView(db, role), usersPageAfter('role_created'), 201)
})

export const changeRole = createHandlers(
  requiresManaging('roles:manage', 'role_updated'),
  body(RolePatch),
  async (c) => {
    const role = await commitAsManager(c, 'roles:manage', (tx, caller) =>
      editRole(tx, getPathId(c), c.req.valid('json'), caller),
    )
    return proceed(c, await roleView(c.env.db, role), usersPageAfter('role_updated'))
  },
)

export const removeRole = createHandlers(requiresManaging('roles:manage', 'role_deleted'), async (c) => {
  await commitAsManager(c, 'roles:manage', (tx, caller) => deleteRole(tx, getPathId(c), caller))
  return proceed(c, null, usersPageAfter('role_deleted'))
})
