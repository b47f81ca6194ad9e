/** `/api/accounts/:id/…reset-credits`: what resets the limits of an account at once, listed and redeemed, in both spellings of the API. */
import { z } from 'zod'
import { commit } from '../../db/commit.ts'
import { actor } from '../auth/principal.ts'
import type { Ctx } from '../bindings.ts'
import { AppError } from '../errors.ts'
import { body } from '../http/body.ts'
import { requires } from '../http/gates.ts'
import { createHandlers } from '../http/handlers.ts'
import { idOf } from '../http/path-id.ts'
import { proceed } from '../http/reply.tsx'
import { isoOrNull } from '../lib/iso.ts'
import { recordRedemption } from '../model/redemption-record.ts'
import { type Redemption, resetCreditsView } from '../model/reset-credits.ts'
import { redeem } from '../upstream/redeem.ts'
import { fromTo, standing } from './account-standing.ts'
import { back } from './back.ts'

/** `{accountId, rateLimitResetCredits:{availableCount}}`, as last reported. */
export const countResetCredits = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), (c) => {
  const accountId = knownId(c)
  return c.json({ accountId, rateLimitResetCredits: { availableCount: viewOf(c)?.availableCount ?? 0 } })
})

/** null until the upstream was asked. */
export const listAccountResetCredits = createHandlers(requires('dashboard:read', { and: 'accounts:read' }), (c) => {
  knownId(c)
  return c.json(viewOf(c))
})

/** Sent twice with the same `redeemRequestId` it is one redemption; without one each request is its own. */
const Consumption = z.strictObject({
  redeemRequestId: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .optional()
    .describe('Of your making: what is sent twice with the same one is one redemption.'),
  creditId: z.string().trim().min(1).max(200).nullable().default(null).describe('Null: the one that expires first.'),
})

const consuming = () => requires('accounts:write', { audit: 'reset_credit_redeemed' })

/** Answers with the standing before and after. */
export const consumeUsageResetCredit = createHandlers(consuming(), body(Consumption), async (c) => {
  const accountId = knownId(c)
  const before = standing(c, accountId)
  const { code, windowsReset, usageWritten } = await consume(c, c.req.valid('json')).catch(inFirstFamily)
  return c.json({
    status: 'reset',
    accountId,
    code,
    windowsReset,
    usageWritten,
    ...fromTo(before, standing(c, accountId)),
  })
})

/** One code for both reasons there is nothing to use, as its clients know it; the message says which it was. */
const inFirstFamily = (error: unknown): never => {
  const isUnavailable =
    error instanceof AppError &&
    (error.code === 'no_available_reset_credit' || error.code === 'account_not_reset_credit_applicable')
  if (!isUnavailable) throw error
  throw new AppError('account_usage_reset_credits_unavailable', { message: error.message, cause: error })
}

/** `{code, windowsReset, redeemedAt}`. */
export const consumeRateLimitResetCredit = createHandlers(consuming(), body(Consumption), async (c) => {
  const { code, windowsReset, redeemedAt } = await consume(c, c.req.valid('json'))
  const done = code === 'reset' ? 'reset_credit_redeemed' : 'reset_credit_not_needed'
  return proceed(c, { code, windowsReset, redeemedAt: isoOrNull(redeemedAt) }, back(c, done))
})

/** The audit row is written when the upstream has answered: before that nobody knows what became of the credit. */
const consume = async (c: Ctx, { redeemRequestId, creditId }: z.output<typeof Consumption>): Promise<Redemption> => {
  const { plane, pool, resetCredits, random, db, clock } = c.env
  const accountId = knownId(c)
  const requestId = redeemRequestId ?? random.id('rdm')
  const who = actor(c)
  const deps = { ...plane.upstream, credentials: plane.credentials, pool, resetCredits }
  const redemption = await redeem(deps, { accountId, creditId, requestId })
  if (!redemption.isRepeated)
    commit(db, (tx) => recordRedemption(tx, { ...who, at: clock.now() }, { ...redemption, accountId, requestId }))
  return redemption
}

const viewOf = (c: Ctx) => {
  const credits = c.env.resetCredits.of(knownId(c))
  return credits && resetCreditsView(credits, c.env.clock.now())
}

/** Throws `account_not_found`. */
const knownId = (c: Ctx): string => {
  const id = idOf(c)
  if (!c.env.pool.get(id)) throw new AppError('account_not_found')
  return id
}
