/** `/api/dashboard-auth/sessions` and `/api/dashboard-users/:id/sessions`: lists and ends a user's sessions. */
import { commit } from '../../../db/commit.ts'
import { actor, requireOwnAccount } from '../../auth/principal.ts'
import { clearSessionToken } from '../../auth/session-cookie.ts'
import { endOthers } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { requires, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { append } from '../../model/audit/audit.ts'
import { callerNow, requireDelegation } from '../../model/users/delegation.ts'
import { getPerson } from '../../model/users/people.ts'
import { endOneSession, sessionList } from '../../model/users/session-list.ts'
import { endSessionsOf } from '../../model/users/sessions.ts'

export const listOwnSessions = createHandlers(signedIn({ account: true }), async (c) => c.json(await ownSessions(c)))

export const ownSessions = async (c: Ctx) => {
  const { id } = requireOwnAccount(c.var.principal)
  return getSessions(c, id)
}

export const getSessions = (c: Ctx, userId: string) =>
  sessionList(c.env.db, userId, { currentId: currentId(c), now: c.env.clock.now() })

/** Ending the current session signs out. */
export const endOwnSession = createHandlers(signedIn({ account: true, audit: 'session_ended' }), async (c) => {
  const userId = requireOwnAccount(c.var.principal).id
  const id = getPathId(c)
  const wasCurrent = id === currentId(c)
  await commit(c.env.db, (tx) => endOneSession(tx, id, { userId, actor: actor(c) }))
  if (wasCurrent) clearSessionToken(c)
  return proceed(c, null, wasCurrent ? '/login' : '/me?done=session_ended#sessions')
})

/** Ends all sessions except this one. Without others there is nothing to audit. */
export const endOtherSessions = createHandlers(
  signedIn({ account: true, audit: 'user_sessions_revoked' }),
  async (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const { id } = principal
    const who = actor(c)
    const count = await endOthers(c, principal, async (tx, exceptSession) => {
      const ended = await endSessionsOf(tx, id, exceptSession)
      if (ended > 0)
        await append(tx, who, 'user_sessions_revoked', { target: id, details: { scope: 'others', count: ended } })
      return ended
    })
    return proceed(c, { ended: count }, '/me?done=sessions_ended#sessions')
  },
)

/** Sessions of any user; viewing needs no confirmation. Throws `user_not_found`. */
export const listSessionsOf = createHandlers(requires('users:manage', { account: true }), async (c) => {
  const { row } = await getPerson(c.env.db, getPathId(c))
  return c.json(await getSessions(c, row.id))
})

/** Throws `user_not_found`, `insufficient_delegation`, `not_found`. */
export const endUserSession = createHandlers(
  requires('users:manage', { stepUp: true, account: true, audit: 'session_ended' }),
  async (c) => {
    // as: named by the route
    const { id: userId = '', sessionId = '' } = c.req.param() as Record<string, string | undefined>
    const who = actor(c)
    await commit(c.env.db, async (tx) => {
      const caller = await callerNow(tx, who, 'users:manage')
      requireDelegation(caller, (await getPerson(tx, userId)).role)
      await endOneSession(tx, sessionId, { userId, actor: who })
    })
    return proceed(c, null, '/settings/access?done=session_ended')
  },
)

const currentId = ({ var: { principal } }: Ctx): string | null =>
  principal.kind === 'account' ? (principal.session?.id ?? null) : null
