/** Records that a session was used, for the list in which users look for unknown browsers. */
import type { Ctx } from '../boot/bindings.ts'
import { isTouchDue, touchSession } from '../model/users/sessions.ts'
import type { Principal } from './principal.ts'
import { tryCommit } from './try-commit.ts'

/** Writes at most once per minute and session. */
export const recordLastSeen = async (c: Ctx, principal: Principal): Promise<void> => {
  const session = 'session' in principal ? principal.session : null
  if (session === null) return
  const now = c.env.clock.now()
  if (!isTouchDue(session, now)) return
  await tryCommit(c, (tx) => touchSession(tx, session.id, { now, address: c.var.clientIp }))
}
