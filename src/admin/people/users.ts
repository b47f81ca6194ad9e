/** `/api/dashboard-users`: lists and changes users. */
import { isProxyTrusted } from '../../auth/identity.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { editPerson } from '../../model/users/people-edit.ts'
import { PersonPatch } from '../../model/users/people-input.ts'
import { deletePerson, resetTotp, restoreKeys, revokeSessions } from '../../model/users/people-removal.ts'
import { listUsers, userView } from '../../model/users/people-view.ts'
import { purgeInvites } from './invites.ts'
import { commitAsManager, requiresManaging, usersPageAfter } from './manage.ts'

export const listDashboardUsers = createHandlers(requires('users:manage'), async (c) => {
  await purgeInvites(c)
  return c.json(await listUsers(c.env.db))
})

const getChange = ({ status }: PersonPatch) =>
  status === 'disabled' ? 'user_disabled' : status === 'active' ? 'user_enabled' : 'user_updated'

/** Includes role and status; see `editPerson` for the rules. */
export const editDashboardUser = createHandlers(
  requiresManaging('users:manage', 'user_updated'),
  body(PersonPatch),
  async (c) => {
    const person = await commitAsManager(c, 'users:manage', (tx, caller) =>
      editPerson(tx, getPathId(c), c.req.valid('json'), { ...caller, isProxyTrusted: isProxyTrusted(c) }),
    )
    return proceed(c, await userView(c.env.db, person), usersPageAfter(getChange(c.req.valid('json'))))
  },
)

export const deleteDashboardUser = createHandlers(requiresManaging('users:manage', 'user_deleted'), async (c) => {
  await commitAsManager(c, 'users:manage', (tx, caller) => deletePerson(tx, getPathId(c), caller))
  return proceed(c, null, usersPageAfter('user_deleted'))
})

export const resetUserTotp = createHandlers(requiresManaging('users:manage', 'user_totp_reset'), async (c) => {
  await commitAsManager(c, 'users:manage', (tx, caller) => resetTotp(tx, getPathId(c), caller))
  return proceed(c, { status: 'ok' }, usersPageAfter('user_totp_reset'))
})

export const revokeUserSessions = createHandlers(
  requiresManaging('users:manage', 'user_sessions_revoked'),
  async (c) => {
    await commitAsManager(c, 'users:manage', (tx, caller) => revokeSessions(tx, getPathId(c), caller))
    return proceed(c, { status: 'ok' }, usersPageAfter('user_sessions_revoked'))
  },
)

/** Only keys that were disabled with the user. */
export const reactivateUserKeys = createHandlers(
  requiresManaging('users:manage', 'user_keys_reactivated'),
  async (c) => {
    const reactivated = await commitAsManager(c, 'users:manage', (tx, caller) => restoreKeys(tx, getPathId(c), caller))
    return proceed(c, { reactivated }, usersPageAfter('user_keys_reactivated'))
  },
)
