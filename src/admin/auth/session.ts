/** `/api/dashboard-auth/session` and sign-out: returns the current session, and ends it here or everywhere. */
import { commit } from '../../../db/commit.ts'
import { ownAccount } from '../../auth/own-account.ts'
import { actorFor, getActor } from '../../auth/principal.ts'
import { resolve } from '../../auth/resolve.ts'
import { clearSessionToken } from '../../auth/session-cookie.ts'
import { sessionView } from '../../auth/session-view.ts'
import { dropSessionOfCookie } from '../../auth/sign-in.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { append } from '../../model/audit/audit.ts'
import { getPerson } from '../../model/users/people.ts'
import { endSessionsOf } from '../../model/users/sessions.ts'

export const showSession = createHandlers(open('returns the current session'), async (c) =>
  c.json(await sessionView(c, await resolve(c))),
)

/** Works for any state of the session, even expired. */
export const logOut = createHandlers(open('ends the session of this browser', { audit: 'logout' }), async (c) => {
  const { db, clock } = c.env
  const at = clock.now()
  await commit(db, async (tx) => {
    const session = await dropSessionOfCookie(c, tx)
    if (!session) return
    const { userId, method } = session
    const doer =
      userId === null
        ? { id: 'guest', method, address: c.var.clientIp, at }
        : actorFor(c, await getPerson(tx, userId), method)
    await append(tx, doer, 'logout', { target: userId })
  })
  clearSessionToken(c)
  return proceed(c, { status: 'ok' }, '/login?done=signed_out')
})

/** Throws `user_account_required` and the 401 of the case. */
export const logOutEverywhere = createHandlers(
  open('the signed-in user, also before setting up required two-factor', { audit: 'user_sessions_revoked' }),
  async (c) => {
    const principal = await ownAccount(c)
    const doer = getActor(principal, c)
    await commit(c.env.db, async (tx) => {
      const count = await endSessionsOf(tx, principal.id)
      if (count > 0)
        await append(tx, doer, 'user_sessions_revoked', { target: principal.id, details: { scope: 'self', count } })
    })
    clearSessionToken(c)
    return proceed(c, { status: 'ok' }, '/login?done=signed_out_everywhere')
  },
)
