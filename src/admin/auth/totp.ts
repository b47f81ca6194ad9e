/** `/api/dashboard-auth/totp`: setting up an authenticator, showing its code at sign-in, and doing without again. */
import { z } from 'zod'
import { commit } from '../../../db/commit.ts'
import { attempt } from '../../auth/attempt.ts'
import { demandManaged, demandOwnSession, ownAccount, settledAccount } from '../../auth/own-account.ts'
import { type AccountPrincipal, actorOf, demandOwnAccount } from '../../auth/principal.ts'
import { type Resolution, resolveHalf } from '../../auth/resolve.ts'
import { sessionView } from '../../auth/session-view.ts'
import { completeSession, confirm, endOthers } from '../../auth/sign-in.ts'
import { offerTotp, stepOfCode, stepOfTheirCode, TOTP_SECRET } from '../../auth/totp.ts'
import type { Ctx } from '../../bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import { demandTotpStep, disableTotp, enableTotp, totpContext } from '../../model/credentials.ts'
import { hasPasskey, type UserRow } from '../../model/people.ts'

/** Whatever is typed; what is no code is a wrong one. */
const Code = z.string().max(64).describe('Six digits of the authenticator.')
const Confirmation = z.strictObject({
  secret: z.string().trim().regex(TOTP_SECRET, 'is not the offered secret').describe('The secret from `setup/start`.'),
  code: Code,
})
const Shown = z.strictObject({ code: Code })

/** Nothing is stored: the secret comes back with its first code. Throws `invalid_totp_setup` when there is one already. */
export const startTotpSetup = createHandlers(
  open('the signed-in user, also before setting up required two-factor'),
  (c) => {
    const { row } = newcomer(c).person
    return c.json(offerTotp(c.env.random, row.username))
  },
)

/** Throws `invalid_totp_setup`, `invalid_totp_code`, `totp_rate_limited`. */
export const confirmTotpSetup = createHandlers(
  open('the signed-in user, also before setting up required two-factor', {
    audit: 'totp_enabled',
    check: (c) => newcomer(c),
  }),
  body(Confirmation),
  async (c) => {
    const { secret, code } = c.req.valid('json')
    const principal = demandOwnAccount(c.var.principal)
    const doer = actorOf(principal, c)
    const sealed = c.env.sealer.seal(secret, totpContext(principal.id))
    await attempt(c, { limited: 'totp_rate_limited', method: 'totp_setup', target: principal.id }, () => {
      const step = stepOfCode(secret, code, doer.at)
      if (step === null) throw new AppError('invalid_totp_code')
      endOthers(c, principal, (tx, exceptSession) =>
        enableTotp(tx, principal.id, { sealed, step, exceptSession, actor: doer }),
      )
    })
    return proceed(c, { status: 'ok' }, returnPath(c))
  },
)

/**
 * The second factor of a session that waits for it. For somebody the proxy signs in without a password it is a
 * confirmation. Throws `invalid_totp_code`, `totp_rate_limited` and the 401 of the case.
 */
export const verifyTotp = createHandlers(
  open('the second factor of signing in', { audit: 'login_success', check: (c) => whoWaits(c) }),
  body(Shown),
  async (c) => {
    const { code } = c.req.valid('json')
    const { resolution, row } = whoWaits(c)
    const after = await attempt(c, { limited: 'totp_rate_limited', method: 'totp', target: row.id }, () =>
      accept(c, resolution, { row, step: demandStep(c, row, code) }),
    )
    return proceed(c, sessionView(c, after), returnPath(c))
  },
)

/** The requirement stays where there is one, and asks for a new authenticator. Throws as above. */
export const removeTotp = createHandlers(
  open('the signed-in user, with a code', {
    audit: 'totp_disabled',
    check: (c) => manager(c, settledAccount),
  }),
  body(Shown),
  async (c) => {
    const principal = demandOwnAccount(c.var.principal)
    const { row } = principal.person
    const doer = actorOf(principal, c)
    await attempt(c, { limited: 'totp_rate_limited', method: 'totp_removal', target: row.id }, () => {
      const step = demandStep(c, row, c.req.valid('json').code)
      commit(c.env.db, (tx) => disableTotp(tx, row, { step, actor: doer }))
    })
    const stepUpAvailable = row.passwordHash !== null || hasPasskey(c.env.db, row.id)
    return proceed(c, { status: 'ok', stepUpAvailable }, '/me?done=totp_disabled#two-factor')
  },
)

/** Whose code it is: of the session that waits for it, or else of the account that asks. */
const whoWaits = (c: Ctx): { resolution: Resolution; row: UserRow } => {
  demandManaged(c)
  const resolution = resolveHalf(c)
  return { resolution, row: resolution.kind === 'half' ? resolution.person.row : ownAccount(c).person.row }
}

const accept = (c: Ctx, resolution: Resolution, { row, step }: { row: UserRow; step: number }): Resolution => {
  if (resolution.kind === 'half')
    return completeSession(c, resolution.session, resolution.person, (tx) => demandTotpStep(tx, row, step))
  const principal = ownAccount(c)
  if (row.passwordHash === null) {
    confirm(c, principal, { methods: ['totp'], first: (tx) => demandTotpStep(tx, row, step) })
    return resolution
  }
  commit(c.env.db, (tx) => demandTotpStep(tx, row, step))
  return resolution
}

const demandStep = (c: Ctx, row: UserRow, code: string): number => {
  const step = stepOfTheirCode(c.env.sealer, row, { code, now: c.env.clock.now() })
  if (step === null) throw new AppError('invalid_totp_code')
  return step
}

const newcomer = (c: Ctx): AccountPrincipal => {
  const principal = manager(c, ownAccount)
  if (principal.person.row.totpSecretSealed !== null) throw new AppError('invalid_totp_setup')
  return principal
}

/** Whom a proxy signs in manages the second factor of a password only after giving that password (spec §5, auth modes). */
const manager = (c: Ctx, whoAsks: (c: Ctx) => AccountPrincipal): AccountPrincipal => {
  demandManaged(c)
  const principal = whoAsks(c)
  if (principal.person.row.passwordHash !== null) demandOwnSession(principal)
  return principal
}
