/** Notes that a session was used, for the list a person looks through for browsers that are not theirs. */
import { commit } from '../../db/commit.ts'
import type { Ctx } from '../bindings.ts'
import { isTouchDue, touchSession } from '../model/sessions.ts'
import type { Principal } from './principal.ts'

/** At most one write a minute and session. A database that is busy makes the list older, and no request fail. */
export const noteSeen = (c: Ctx, principal: Principal): void => {
  const session = 'session' in principal ? principal.session : null
  if (session === null) return
  const { db, clock, log } = c.env
  const now = clock.now()
  if (!isTouchDue(session, now)) return
  try {
    commit(db, (tx) => touchSession(tx, session.id, { now, address: c.var.clientIp }))
  } catch (err) {
    log.debug('The last use of a session could not be noted.', { err })
  }
}
