/** `/api/dashboard-users`: lists and changes users. */
import { isProxyTrusted } from '../../auth/identity.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { idOf } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { editPerson } from '../../model/users/people-edit.ts'
import { PersonPatch } from '../../model/users/people-input.ts'
import { deletePerson, resetTotp, restoreKeys, revokeSessions } from '../../model/users/people-removal.ts'
import { listUsers, userView } from '../../model/users/people-view.ts'
import { purgeInvites } from './invites.ts'
import { manage, managing, peopleAfter } from './manage.ts'

export const listDashboardUsers = createHandlers(requires('users:manage'), (c) => {
  purgeInvites(c)
  return c.json(listUsers(c.env.db))
})

const getChange = ({ status }: PersonPatch) =>
  status === 'disabled' ? 'user_disabled' : status === 'active' ? 'user_enabled' : 'user_updated'

/** Includes role and status; see `editPerson` for the rules. */
export const editDashboardUser = createHandlers(managing('users:manage', 'user_updated'), body(PersonPatch), (c) => {
  const person = manage(c, 'users:manage', (tx, caller) =>
    editPerson(tx, idOf(c), c.req.valid('json'), { ...caller, isProxyTrusted: isProxyTrusted(c) }),
  )
  return proceed(c, userView(c.env.db, person), peopleAfter(getChange(c.req.valid('json'))))
})

export const deleteDashboardUser = createHandlers(managing('users:manage', 'user_deleted'), (c) => {
  manage(c, 'users:manage', (tx, caller) => deletePerson(tx, idOf(c), caller))
  return proceed(c, null, peopleAfter('user_deleted'))
})

export const resetUserTotp = createHandlers(managing('users:manage', 'user_totp_reset'), (c) => {
  manage(c, 'users:manage', (tx, caller) => resetTotp(tx, idOf(c), caller))
  return proceed(c, { status: 'ok' }, peopleAfter('user_totp_reset'))
})

export const revokeUserSessions = createHandlers(managing('users:manage', 'user_sessions_revoked'), (c) => {
  manage(c, 'users:manage', (tx, caller) => revokeSessions(tx, idOf(c), caller))
  return proceed(c, { status: 'ok' }, peopleAfter('user_sessions_revoked'))
})

/** Only keys that were disabled with the user. */
export const reactivateUserKeys = createHandlers(managing('users:manage', 'user_keys_reactivated'), (c) => {
  const reactivated = manage(c, 'users:manage', (tx, caller) => restoreKeys(tx, idOf(c), caller))
  return proceed(c, { reactivated }, peopleAfter('user_keys_reactivated'))
})
