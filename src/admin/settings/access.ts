/** `/settings`, `/settings/access`: security settings, users and roles, as far as the user may see them. */
import { z } from 'zod'
import type { AccessProps } from '../../../views/people/page.tsx'
import { AccessTab } from '../../../views/settings/access.tsx'
import { type SecurityProps, SettingsPage, type SettingsProps } from '../../../views/settings.tsx'
import { isProxyTrusted } from '../../auth/identity.ts'
import { mayCreateLocalAdmin } from '../../auth/local-admin.ts'
import { type AccountPrincipal, mustConfirm, type Principal } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { requires, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { query } from '../../http/query.ts'
import { reply } from '../../http/reply.tsx'
import { mapInOrder } from '../../lib/in-order.ts'
import { iso } from '../../lib/iso.ts'
import { getProvider } from '../../model/users/auth-providers.ts'
import { grantableRoles, mayActOn } from '../../model/users/delegation.ts'
import { guestPasswordHash } from '../../model/users/guest.ts'
import { listPasskeys } from '../../model/users/passkeys.ts'
import { countWithoutTotp } from '../../model/users/people.ts'
import { listRoleViews, permissionViews } from '../../model/users/people-roles-view.ts'
import { listUsers, type User } from '../../model/users/people-view.ts'
import { holds, isAdminLevel, PERMISSIONS } from '../../model/users/permissions.ts'
import { listRoles } from '../../model/users/roles.ts'
import { getSessions } from '../auth/sessions.ts'
import { getFormFeedback } from '../form-feedback.ts'
import { purgeInvites } from '../people/invites.ts'
import { proxyProvider } from '../people/providers.ts'
import { shareUsesOf } from '../people/shares.ts'
import { getFrame, settingsOfTab } from './frame.ts'

/** Shown on the settings page; the others have their own page. */
const FIRST = 5

export const showSettings = createHandlers(signedIn(), async (c) => {
  const { principal } = c.var
  const props: SettingsProps = {
    frame: getFrame(c, 'general'),
    settings: await settingsOfTab(c, 'general'),
    me: principal.kind === 'account' ? await getMe(c, principal) : null,
    authMode: c.env.env.DASHBOARD_AUTH_MODE,
    security: holds(principal.grants, 'security:write') ? await getSecurity(c) : null,
    people: holds(principal.grants, 'users:manage') ? await firstPeople(c, principal) : null,
    now: iso(c.env.clock.now()),
    ...getFormFeedback(c),
  }
  return principal.kind === 'guest' ? c.redirect('/login') : reply(c, props, SettingsPage)
})

const getSecurity = async ({ env: { db, settings } }: Ctx): Promise<SecurityProps> => ({
  guestAccessEnabled: settings.current().guestAccessEnabled,
  usersWithoutTotpCount: await countWithoutTotp(db, () => true),
  adminsWithoutTotpCount: await countWithoutTotp(db, ({ grants }) => isAdminLevel(grants)),
  guestPasswordConfigured: (await guestPasswordHash(db)) !== null,
})

const getMe = async (c: Ctx, { id, person: { row, role } }: AccountPrincipal): Promise<SettingsProps['me']> => {
  const passkeys = (await listPasskeys(c.env.db, id)).length
  const hasTotp = row.totpSecretSealed !== null
  const ways = [
    row.passwordHash === null ? 'signed in by the reverse proxy' : 'password',
    `two-factor ${hasTotp ? 'on' : 'off'}`,
    passkeys === 0 ? 'no passkeys' : passkeys === 1 ? '1 passkey' : `${passkeys} passkeys`,
  ]
  return { username: row.username, roleName: role.name, ways }
}

const firstPeople = async (c: Ctx, principal: Principal): Promise<SettingsProps['people']> => {
  const users = await peopleFor(c, principal)
  return { first: users.slice(0, FIRST), total: users.length }
}

const Asked = z.object({ clone: z.string().max(64).optional() })

/** Open to every `users:manage` holder (spec §4). `clone`, a role id, opens the form for a copy of that role. */
export const showAccess = createHandlers(requires('users:manage'), query(Asked), async (c) => {
  const { principal } = c.var
  const { db, clock } = c.env
  const { clone } = c.req.valid('query')
  const props: AccessProps = {
    users: await peopleFor(c, principal),
    grantable: principal.kind === 'account' ? await grantableRoles(db, principal.person) : [],
    roles: await listRoleViews(db),
    cloneOf: clone ?? null,
    permissions: permissionViews(),
    held: PERMISSIONS.filter((permission) => holds(principal.grants, permission)),
    canEdit: principal.kind === 'account' && holds(principal.grants, 'roles:manage'),
    provider: holds(principal.grants, 'security:write') ? await proxyProvider(c) : null,
    isProxyTrusted: isProxyTrusted(c),
    mayCreateLocalAdmin: await mayCreateLocalAdmin(c, principal),
    hasAccount: principal.kind === 'account',
    mustConfirm: mustConfirm(principal, clock.now()),
    now: iso(clock.now()),
    ...getFormFeedback(c),
  }
  return reply(c, { ...props, frame: getFrame(c, 'access') }, AccessTab)
})

/** Expired invites are deleted first, as in the API's list. */
const peopleFor = async (c: Ctx, principal: Principal) => {
  await purgeInvites(c)
  const roles = new Map((await listRoles(c.env.db)).map((role) => [role.id, role]))
  const { unknownIdentityRoleId } = await getProvider(c.env.db)
  const newcomer = {
    roleName: unknownIdentityRoleId === null ? null : (roles.get(unknownIdentityRoleId)?.name ?? null),
  }
  return mapInOrder(await listUsers(c.env.db), async (user) => {
    const role = roles.get(user.role.id)
    const isManageable = principal.kind === 'account' && role !== undefined && mayActOn(principal.person, role)
    return {
      ...user,
      isSelf: user.id === principal.id,
      isManageable,
      shareUses: shareUsesOf(c, user.id),
      afterDeletion: isProxyTrusted(c) && isAnnounced(user) ? newcomer : null,
      sessions: isManageable ? (await getSessions(c, user.id)).items : [],
    }
  })
}

/** Whether the proxy has signed this user in, or will. */
const isAnnounced = ({ identities, pendingInvite }: User): boolean =>
  identities.length > 0 || pendingInvite?.ssoOnly === true
