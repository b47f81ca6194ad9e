/** `/api/dashboard-auth/totp`: sets up an authenticator, signs in with its code, manages recovery codes, and turns it off. */
import { z } from 'zod'
import { commit, type Tx } from '../../../db/commit.ts'
import { recoveryCodesAt } from '../../../views/recovery-codes.tsx'
import {
  countOwnChange,
  ownAccount,
  requireEnrolledAccount,
  requireManaged,
  requireOwnSession,
} from '../../auth/own-account.ts'
import { type AccountPrincipal, getActor, requireOwnAccount } from '../../auth/principal.ts'
import { type Resolution, resolveSecondStep } from '../../auth/resolve.ts'
import { readSecondFactor, requireSecondFactor, type SecondFactor } from '../../auth/second-factor.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { sessionView } from '../../auth/session-view.ts'
import { completeSession, confirm, endOthers } from '../../auth/sign-in.ts'
import { offerTotp, stepOfCode, TOTP_SECRET } from '../../auth/totp.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open, signedIn } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed, reply } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import { append } from '../../model/audit/audit.ts'
import { disableTotp, enableTotp, totpContext } from '../../model/users/passwords.ts'
import { getPerson, hasPasskey, type UserRow } from '../../model/users/people.ts'
import { createRecoveryCodes } from '../../model/users/recovery-codes.ts'

/** Not validated further: anything that is not a code is a wrong code. */
const TotpCode = z.string().max(64).describe('Six digits of the authenticator app.')
const AnyCode = z.string().max(64).describe('Six digits of the authenticator app, or a recovery code.')
const Confirmation = z.strictObject({
  secret: z.string().trim().regex(TOTP_SECRET, 'is not the offered secret').describe('The secret from `setup/start`.'),
  code: TotpCode,
})
const Shown = z.strictObject({ code: AnyCode })

/**
 * Stores nothing: the secret is sent back with the first code. Throws `invalid_totp_setup` if there is an authenticator
 * already.
 */
export const startTotpSetup = createHandlers(
  open('the signed-in user, also before setting up required two-factor'),
  async (c) => {
    const { row } = (await userWithoutTotp(c)).person
    return c.json(offerTotp(c.env.random, row.username))
  },
)

/** Answers with the recovery codes, which are shown only here. Throws `invalid_totp_setup`, `invalid_totp_code`, `totp_rate_limited`. */
export const confirmTotpSetup = createHandlers(
  open('the signed-in user, also before setting up required two-factor', {
    audit: 'totp_enabled',
    check: (c) => userWithoutTotp(c),
  }),
  body(Confirmation),
  async (c) => {
    const { secret, code } = c.req.valid('json')
    const principal = requireOwnAccount(c.var.principal)
    const doer = getActor(principal, c)
    const sealed = c.env.sealer.seal(secret, totpContext(principal.id))
    const tried = { limited: 'totp_rate_limited', method: 'totp_setup', target: principal.id } as const
    const recoveryCodes = await attempt(c, tried, async () => {
      const step = stepOfCode(secret, code, doer.at)
      if (step === null) throw new AppError('invalid_totp_code')
      return endOthers(c, principal, (tx, exceptSession) =>
        enableTotp(tx, principal.id, { sealed, step, exceptSession, random: c.env.random, actor: doer }),
      )
    })
    return reply(c, { status: 'ok', recoveryCodes }, recoveryCodesAt({ isNew: true, returnTo: returnPath(c) }))
  },
)

/** Replaces the recovery codes. Throws `invalid_totp_config` without an authenticator, and `own_account_rate_limited`. */
export const renewRecoveryCodes = createHandlers(
  signedIn({ account: true, stepUp: true, audit: 'recovery_codes_created' }),
  async (c) => {
    const principal = await manager(c, requireEnrolledAccount)
    const doer = getActor(principal, c)
    await countOwnChange(c, principal, 'recovery_codes_created')
    const recoveryCodes = await commit(c.env.db, async (tx) => {
      if ((await getPerson(tx, principal.id)).row.totpSecretSealed === null) throw new AppError('invalid_totp_config')
      await append(tx, doer, 'recovery_codes_created', { target: principal.id })
      return createRecoveryCodes(tx, principal.id, { random: c.env.random, now: doer.at })
    })
    return reply(c, { status: 'ok', recoveryCodes }, recoveryCodesAt({ isNew: false, returnTo: '/me#two-factor' }))
  },
)

/**
 * Completes a session that waits for its second factor, or confirms for a proxy user without a password. Throws
 * `invalid_totp_code`, `totp_rate_limited` and the 401 of the case.
 */
export const verifyTotp = createHandlers(
  open('the second factor of signing in', { audit: 'login_success', check: (c) => getWaitingUser(c) }),
  body(Shown),
  async (c) => {
    const { code } = c.req.valid('json')
    const { resolution, row } = await getWaitingUser(c)
    const after = await attempt(c, { limited: 'totp_rate_limited', method: 'totp', target: row.id }, () =>
      accept(c, resolution, { row, factor: requireCode(c, row, code) }),
    )
    return proceed(c, await sessionView(c, after), returnPath(c))
  },
)

/** Deletes the recovery codes too. If two-factor is required, the user must set up a new authenticator. Throws as above. */
export const removeTotp = createHandlers(
  open('the signed-in user, with a code', {
    audit: 'totp_disabled',
    check: (c) => manager(c, requireEnrolledAccount),
  }),
  body(Shown),
  async (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const { row } = principal.person
    const doer = getActor(principal, c)
    await attempt(c, { limited: 'totp_rate_limited', method: 'totp_removal', target: row.id }, async () => {
      const factor = requireCode(c, row, c.req.valid('json').code)
      await commit(c.env.db, async (tx) => {
        await requireSecondFactor(tx, row, factor, doer)
        await disableTotp(tx, row, doer)
      })
    })
    const stepUpAvailable = row.passwordHash !== null || (await hasPasskey(c.env.db, row.id))
    return proceed(c, { status: 'ok', stepUpAvailable }, '/me?done=totp_disabled#two-factor')
  },
)

/** The user whose code it is: of the waiting session, or the signed-in user. */
const getWaitingUser = async (c: Ctx): Promise<{ resolution: Resolution; row: UserRow }> => {
  requireManaged(c)
  const resolution = await resolveSecondStep(c)
  return { resolution, row: resolution.kind === 'half' ? resolution.person.row : (await ownAccount(c)).person.row }
}

const accept = async (
  c: Ctx,
  resolution: Resolution,
  { row, factor }: { row: UserRow; factor: SecondFactor },
): Promise<Resolution> => {
  if (resolution.kind === 'half') return completeSession(c, resolution.session, resolution.person, factor)
  const principal = await ownAccount(c)
  const doer = getActor(principal, c)
  const first = (tx: Tx) => requireSecondFactor(tx, row, factor, doer)
  if (row.passwordHash === null) await confirm(c, principal, { methods: [factor.method], first })
  else await commit(c.env.db, first)
  return resolution
}

const requireCode = (c: Ctx, row: UserRow, code: string): SecondFactor => {
  const factor = readSecondFactor(c.env, row, code)
  if (factor === null) throw new AppError('invalid_totp_code')
  return factor
}

const userWithoutTotp = async (c: Ctx): Promise<AccountPrincipal> => {
  const principal = await manager(c, ownAccount)
  if (principal.person.row.totpSecretSealed !== null) throw new AppError('invalid_totp_setup')
  return principal
}

/**
 * A proxy user manages the second factor of their Sluice password only after entering that password (spec §5, auth
 * modes).
 */
const manager = async (c: Ctx, whoAsks: (c: Ctx) => Promise<AccountPrincipal>): Promise<AccountPrincipal> => {
  requireManaged(c)
  const principal = await whoAsks(c)
  if (principal.person.row.passwordHash !== null) requireOwnSession(principal)
  return principal
}
