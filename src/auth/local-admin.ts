/** The local administrator of an install behind a proxy, for signing in when the proxy fails (spec §5 Trusted-header 6). */
import type { Ctx } from '../boot/bindings.ts'
import { grantableRoles, requireGrantable } from '../model/users/delegation.ts'
import { hasPasswordAccount } from '../model/users/people.ts'
import { ADMIN_ROLE_ID, getRole } from '../model/users/roles.ts'
import { isProxyTrusted } from './identity.ts'
import { demand, type Principal, requireOwnAccount } from './principal.ts'

/** Whether there is none yet and `principal` may create one. */
export const mayCreateLocalAdmin = async (c: Ctx, principal: Principal): Promise<boolean> =>
  isProxyTrusted(c) &&
  principal.kind === 'account' &&
  !(await hasPasswordAccount(c.env.db)) &&
  (await grantableRoles(c.env.db, principal.person)).some(({ id }) => id === ADMIN_ROLE_ID)

/** Throws `permission_required`, `user_account_required`, `insufficient_delegation`. */
export const requireLocalAdminRights = async (c: Ctx, principal: Principal): Promise<void> => {
  demand(principal, 'users:manage')
  const { person } = requireOwnAccount(principal)
  requireGrantable({ person }, await getRole(c.env.db, ADMIN_ROLE_ID))
}
