/** `/api/dashboard-auth/password/setup`: sets the first password and creates its user. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { requireBootstrap } from '../../auth/bootstrap.ts'
import { isLocal } from '../../auth/caller.ts'
import { isProxyTrusted } from '../../auth/identity.ts'
import { requireLocalAdminRights } from '../../auth/local-admin.ts'
import { requireManaged } from '../../auth/own-account.ts'
import { getActor, requireStepUp } from '../../auth/principal.ts'
import { type Resolution, resolve, resolvePrincipal } from '../../auth/resolve.ts'
import { sessionView } from '../../auth/session-view.ts'
import { signIn } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import { callerNow, requireGrantable } from '../../model/users/delegation.ts'
import { createPasswordAdmin, NewPassword } from '../../model/users/passwords.ts'
import { hasPasswordAccount } from '../../model/users/people.ts'
import { ADMIN_ROLE_ID, getRole } from '../../model/users/roles.ts'

const Setup = z.strictObject({
  password: NewPassword,
  bootstrapToken: z
    .string()
    .trim()
    .max(256)
    .nullish()
    .describe('From the log of Sluice. Not needed on its own machine.'),
})

/**
 * Sets the first password and creates the user `admin`. Throws `password_management_disabled`,
 * `password_already_configured`, and what `requireBootstrap` or, behind a proxy, `requireLocalAdminRights` and
 * `requireStepUp` do.
 */
export const setUpPassword = createHandlers(
  open('the first password, before anyone can sign in', { audit: 'password_set' }),
  body(Setup),
  async (c) => {
    const { password, bootstrapToken } = c.req.valid('json')
    requireManaged(c)
    if (await hasPasswordAccount(c.env.db)) throw new AppError('password_already_configured')
    const resolution = isProxyTrusted(c)
      ? await setUpBehindProxy(c, password)
      : await setUpHere(c, password, bootstrapToken || undefined)
    return proceed(c, await sessionView(c, resolution), returnPath(c))
  },
)

/** Signs in the new administrator. */
const setUpHere = async (c: Ctx, password: string, bootstrapToken: string | undefined): Promise<Resolution> => {
  const { db, random, passwords, clock } = c.env
  const spendToken = await requireBootstrap(c, bootstrapToken)
  const hash = await passwords.hash(password)
  const method = isLocal(c) ? 'local_bootstrap' : 'bootstrap_token'
  const actor = { id: 'bootstrap', method, address: c.var.clientIp, at: clock.now() }
  const person = await commit(db, async (tx) => {
    await spendToken(tx)
    return createPasswordAdmin(tx, { id: random.id('usr'), hash, actor })
  })
  return signIn(c, { person, method: 'password', isComplete: true })
}

/**
 * Creates the fallback administrator; the user who creates it stays signed in through the proxy (spec §5 Trusted-header
 * 6).
 */
const setUpBehindProxy = async (c: Ctx, password: string): Promise<Resolution> => {
  const principal = await resolvePrincipal(c)
  await requireLocalAdminRights(c, principal)
  requireStepUp(principal, c.env.clock.now()) // creating a user is a sensitive change (spec §5 Step-up 1)
  const hash = await c.env.passwords.hash(password)
  const made = { id: c.env.random.id('usr'), hash, actor: getActor(principal, c) }
  await commit(c.env.db, async (tx) => {
    requireGrantable(await callerNow(tx, made.actor, 'users:manage'), await getRole(tx, ADMIN_ROLE_ID)) // hashing took time
    return createPasswordAdmin(tx, made)
  })
  return resolve(c)
}
