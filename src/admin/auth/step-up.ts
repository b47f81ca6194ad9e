/** `/api/dashboard-auth/step-up`: confirms the user's identity again before a sensitive change. */
import { z } from 'zod'
import { requireEnrolledAccount } from '../../auth/own-account.ts'
import { type AccountPrincipal, getActor, requireOwnAccount } from '../../auth/principal.ts'
import { readSecondFactor, spendSecondFactor } from '../../auth/second-factor.ts'
import { attempt } from '../../auth/secret-attempt.ts'
import { confirm } from '../../auth/sign-in.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { open } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { proceed } from '../../http/reply.tsx'
import { returnPath } from '../../http/return-path.ts'
import { iso } from '../../lib/iso.ts'
import { GivenPassword, isUnchanged } from '../../model/users/passwords.ts'
import { STEP_UP_MS } from '../../model/users/sessions.ts'

/** The user's factors of these two; passkeys have their own routes. */
const Factors = z.strictObject({
  password: GivenPassword.nullish(),
  code: z.string().max(64).nullish().describe('Six digits of the authenticator app, or a recovery code.'),
})
type Factors = z.output<typeof Factors>

/**
 * Throws `step_up_unavailable`, `step_up_required` for users with only a passkey, `invalid_credentials` whichever
 * factor was wrong or missing, `step_up_rate_limited` and the 401 of the case.
 */
export const stepUp = createHandlers(
  open('the signed-in user, with their factors', {
    audit: 'step_up_verified',
    check: async (c) => requireFactors(await requireEnrolledAccount(c)),
  }),
  body(Factors),
  async (c) => {
    const principal = requireOwnAccount(c.var.principal)
    const tried = { limited: 'step_up_rate_limited', method: 'step_up', target: principal.id } as const
    const until = await attempt(c, tried, () => check(c, principal, c.req.valid('json')))
    return proceed(c, { verifiedAt: iso(until - STEP_UP_MS), expiresAt: iso(until) }, returnPath(c))
  },
)

const requireFactors = ({ person: { row }, stepUpMethods }: AccountPrincipal): void => {
  if (stepUpMethods.length === 0) throw new AppError('step_up_unavailable')
  if (row.passwordHash === null && row.totpSecretSealed === null)
    throw new AppError('step_up_required', { details: { methods: stepUpMethods } })
}

/** Checks both before judging, so that the answer does not reveal which was wrong. */
const check = async (c: Ctx, principal: AccountPrincipal, { password, code }: Factors): Promise<number> => {
  const { passwords } = c.env
  const { row } = principal.person
  const hasPassword = row.passwordHash !== null
  const hasTotp = row.totpSecretSealed !== null
  const isPasswordRight = !hasPassword || (await passwords.verify(password ?? '', row.passwordHash))
  const factor = readSecondFactor(c.env, row, code ?? '')
  if (!isPasswordRight || (hasTotp && factor === null)) throw new AppError('invalid_credentials')
  return confirm(c, principal, {
    methods: [...(hasPassword ? ['password'] : []), ...(factor ? [factor.method] : [])],
    first: async (tx) => {
      if (
        !(await isUnchanged(tx, row)) ||
        (factor && !(await spendSecondFactor(tx, row, factor, getActor(principal, c))))
      )
        throw new AppError('invalid_credentials')
    },
  })
}
