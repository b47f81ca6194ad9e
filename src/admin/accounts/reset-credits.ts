/** `/api/accounts/:id/rate-limit-reset-credits`: lists and redeems credits that reset an account's limits immediately. */
import { z } from 'zod'
import { actor } from '../../auth/principal.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { body } from '../../http/body.ts'
import { requires } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getPathId } from '../../http/path-id.ts'
import { proceed } from '../../http/reply.tsx'
import { isoOrNull } from '../../lib/iso.ts'
import { storeRedemption } from '../../model/accounts/redemption-record.ts'
import { resetCreditsView } from '../../model/accounts/reset-credits.ts'
import { redeem } from '../../upstream/redeem.ts'
import { back } from '../form-feedback.ts'

/** null until fetched. */
export const listAccountResetCredits = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), (c) => {
  const credits = c.env.resetCredits.of(knownId(c))
  return c.json(credits && resetCreditsView(credits, c.env.clock.now()))
})

/** Repeating a `redeemRequestId` redeems once; without one each request counts separately. */
const Consumption = z.strictObject({
  redeemRequestId: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .optional()
    .describe('An ID you choose. Repeating a request with the same ID uses only one credit.'),
  creditId: z.string().trim().min(1).max(200).nullable().default(null).describe('Null: the one that expires first.'),
})

/**
 * `{code, windowsReset, redeemedAt}`. The audit row is written after the upstream's answer, because the result is
 * unknown before.
 */
export const consumeResetCredit = createHandlers(
  requires('accounts:write', { audit: 'reset_credit_redeemed' }),
  body(Consumption),
  async (c) => {
    const { proxyDeps, pool, resetCredits, random, db, clock } = c.env
    const { redeemRequestId: requestId = random.id('rdm'), creditId } = c.req.valid('json')
    const accountId = knownId(c)
    const who = actor(c)
    const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials, pool, resetCredits }
    const redemption = await redeem(deps, { accountId, creditId, requestId })
    await storeRedemption(db, clock, who, { ...redemption, accountId, requestId })
    const { code, windowsReset, redeemedAt } = redemption
    const done = code === 'reset' ? 'reset_credit_redeemed' : 'reset_credit_not_needed'
    return proceed(c, { code, windowsReset, redeemedAt: isoOrNull(redeemedAt) }, back(c, done))
  },
)

/** Throws `account_not_found`. */
const knownId = (c: Ctx): string => {
  const id = getPathId(c)
  if (!c.env.pool.get(id)) throw new AppError('account_not_found')
  return id
}
