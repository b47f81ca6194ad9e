/** `/api/dashboard-auth/guest`: guest sign-in, and the guest password an administrator sets. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { actor } from '../../auth/principal.ts'
import { getGuest, type Resolution, resolve } from '../../auth/resolve.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { clearSessionToken } from '../../auth/session-cookie.ts'
import { sessionView } from '../../auth/session-view.ts'
import { admitGuest } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open, requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import type { AuditEvent } from '../../model/audit/audit.ts'
import { callerNow } from '../../model/users/delegation.ts'
import { guestPasswordHash, logOutGuests, setGuestPassword } from '../../model/users/guest.ts'
import { GivenPassword, NewPassword } from '../../model/users/passwords.ts'

/** The page to redirect to, with its message. */
const accessAfter = (event: AuditEvent): string => `/settings?done=${event}#access`

const Login = z.strictObject({
  password: GivenPassword.nullish().describe('The shared guest password, if there is one.'),
})
const Password = z.strictObject({ password: NewPassword })

/**
 * Without a guest password, guests need no session; this only ends an expired one. Throws `guest_access_disabled`,
 * `invalid_credentials`, `guest_password_rate_limited`.
 */
export const logInAsGuest = createHandlers(
  open('guest sign-in', { audit: 'login_success' }),
  body(Login),
  async (c) => {
    const { db, settings } = c.env
    if (!settings.current().guestAccessEnabled) throw new AppError('guest_access_disabled')
    const hash = await guestPasswordHash(db)
    const resolution =
      hash === null ? await admitWithoutPassword(c) : await checkAndAdmit(c, hash, c.req.valid('json').password ?? '')
    if (resolution.kind === 'unauthenticated') throw resolution.error
    return proceed(c, await sessionView(c, resolution), returnPath(c))
  },
)

const admitWithoutPassword = async (c: Ctx): Promise<Resolution> => {
  const resolution = await resolve(c)
  if (resolution.kind !== 'unauthenticated' || !resolution.isSessionOver) return resolution
  clearSessionToken(c)
  return getGuest(null)
}

const checkAndAdmit = (c: Ctx, hash: string, password: string): Promise<Resolution> =>
  attempt(c, { limited: 'guest_password_rate_limited', method: 'guest', target: null }, async () => {
    if (!(await c.env.passwords.verify(password, hash))) throw new AppError('invalid_credentials')
    return getGuest(await admitGuest(c, hash))
  })

/** Signs out all guests. */
export const changeGuestPassword = createHandlers(
  requires('security:write', { stepUp: true, audit: 'guest_password_set' }),
  body(Password),
  async (c) => {
    const doer = actor(c)
    const hash = await c.env.passwords.hash(c.req.valid('json').password)
    await commit(c.env.db, async (tx) => {
      if (c.var.principal.kind === 'account') await callerNow(tx, doer, 'security:write') // hashing took time
      await setGuestPassword(tx, hash, doer)
    })
    return proceed(c, { status: 'ok' }, accessAfter('guest_password_set'))
  },
)

/** Guests then need no password while guest access is on. */
export const removeGuestPassword = createHandlers(
  requires('security:write', { stepUp: true, audit: 'guest_password_removed' }),
  async (c) => {
    await commit(c.env.db, (tx) => setGuestPassword(tx, null, actor(c)))
    return proceed(c, { status: 'ok' }, accessAfter('guest_password_removed'))
  },
)

export const logOutAllGuests = createHandlers(
  requires('security:write', { stepUp: true, audit: 'guest_sessions_revoked' }),
  async (c) => {
    await commit(c.env.db, (tx) => logOutGuests(tx, actor(c)))
    return proceed(c, { status: 'ok' }, accessAfter('guest_sessions_revoked'))
  },
)
