/** `/api/dashboard-users`: adds users, with one-time links or waiting for the proxy. */
import { commit } from '../../../db/commit.ts'
import { invitedPage, newLinkAt } from '../../../views/people/invite.tsx'
import { isProxyTrusted } from '../../auth/identity.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { originForLinks } from '../../http/public-origin.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { dropExpiredInvites, hasExpiredInvites } from '../../model/users/expired-invites.ts'
import { invitePerson, resendInvite, revokeInvite } from '../../model/users/invites.ts'
import { NewPerson } from '../../model/users/people-input.ts'
import { linkView, listInviteViews, userView } from '../../model/users/people-view.ts'
import { commitAsManager, requiresManaging, usersPageAfter } from './manage.ts'

/** Answers with the link's token once; users that wait for an identity have none. */
export const inviteUser = createHandlers(
  requiresManaging('users:manage', 'user_invited'),
  body(NewPerson),
  async (c) => {
    const { db, random } = c.env
    const { person, link } = await commitAsManager(c, 'users:manage', (tx, caller) =>
      invitePerson(tx, c.req.valid('json'), { caller, random, isProxyTrusted: isProxyTrusted(c) }),
    )
    return reply(
      c,
      { user: await userView(db, person), invite: link && linkView(link) },
      invitedPage(originForLinks(c)),
      201,
    )
  },
)

/** Deletes expired invites first (spec §3). */
export const listInvitations = createHandlers(requires('users:manage'), async (c) => {
  await purgeInvites(c)
  return c.json(await listInviteViews(c.env.db))
})

export const resendInvitation = createHandlers(requiresManaging('users:manage', 'invite_resent'), async (c) => {
  const { random } = c.env
  const link = await commitAsManager(c, 'users:manage', (tx, caller) =>
    resendInvite(tx, getPathId(c), { caller, random }),
  )
  return reply(c, linkView(link), newLinkAt(originForLinks(c)))
})

export const revokeInvitation = createHandlers(requiresManaging('users:manage', 'invite_revoked'), async (c) => {
  await commitAsManager(c, 'users:manage', (tx, caller) => revokeInvite(tx, getPathId(c), caller))
  return proceed(c, null, usersPageAfter('invite_revoked'))
})

export const purgeInvites = async (c: Ctx): Promise<void> => {
  const { db, clock } = c.env
  const now = clock.now()
  if (await hasExpiredInvites(db, now)) await commit(db, (tx) => dropExpiredInvites(tx, now))
}
