/**
 * Usage and reset credits in the format of native clients: for a key, and for the owner of an account of the pool, whose
 * ChatGPT token proves it. Codex and ChatGPT Desktop read these before they send anything.
 */
import { z } from 'zod'
import { notOwnerError } from '../../auth/client-key.ts'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { withInput } from '../../http/body.ts'
import { keyOrOwner, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { isoOrNull } from '../../lib/iso.ts'
import { storeRedemption } from '../../model/accounts/redemption-record.ts'
import { type ResetCredit, redeemable } from '../../model/accounts/reset-credits.ts'
import { redeem } from '../../upstream/redeem.ts'
import { fetchResetCredits } from '../../upstream/reset-credits.ts'
import { parseAt } from '../formats/invalid-request.ts'
import { requireProvedOwner } from '../ingress/owner-proofs.ts'
import { usageDocument } from '../pool/rate-limit-formats.ts'
import { readSmallBody } from './small-body.ts'

/** `GET /api/codex/usage`, `/wham/usage`, `/backend-api/wham/usage`. */
export const showNativeUsage = createHandlers(
  keyOrOwner('key-or-owner'),
  requireProvedOwner,
  restricted('local'),
  (c) => {
    const { clientLimits, pool, resetCredits, settings, clock } = c.env
    const { key } = c.get('client')
    const now = clock.now()
    const accountId = c.get('ownedAccount')
    if (accountId === null) {
      const credits = resetCredits.listFor(key?.scope ?? null, pool.all(), now).length
      return c.json(
        usageDocument({ planType: 'api_key', limits: clientLimits.forKey(key), resetCredits: credits, now }),
      )
    }
    const seesPool = settings.current().pooledUsageForOwners && !clientLimits.hidesPool(null)
    const limits = seesPool ? clientLimits.forScope(null).limits : clientLimits.forAccount(accountId)
    const planType = pool.get(accountId)?.planType ?? 'unknown'
    const credits = redeemable(resetCredits.of(accountId) ?? [], now).length
    return c.json(usageDocument({ planType, limits, resetCredits: credits, now }))
  },
)

/** `GET …/wham/rate-limit-reset-credits`: of the account the client owns. */
export const showNativeResetCredits = createHandlers(
  keyOrOwner('owner'),
  requireProvedOwner,
  restricted('local'),
  async (c) => {
    const { proxyDeps, resetCredits, clock } = c.env
    const accountId = ownedAccount(c)
    const known = resetCredits.of(accountId)
    const credits =
      known ?? (await fetchResetCredits({ ...proxyDeps.upstream, credentials: proxyDeps.credentials }, accountId))
    if (known === null) resetCredits.set(accountId, credits)
    return c.json({
      available_count: redeemable(credits, clock.now()).length,
      credits: credits.map(nativeCredit),
    })
  },
)

const Wish = z.strictObject({
  redeem_request_id: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .describe('An ID you choose. Repeating a request with the same ID uses only one credit.'),
})

const consume = async (c: Ctx): Promise<Response> => {
  const { db, pool, proxyDeps, resetCredits, clock } = c.env
  const accountId = ownedAccount(c)
  const { redeem_request_id: requestId } = parseAt(Wish, await readSmallBody(c))
  const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials, pool, resetCredits }
  const redemption = await redeem(deps, { accountId, creditId: null, requestId })
  const name = pool.get(accountId)?.displayName ?? accountId
  const who = { id: accountId, name, method: 'account_owner', address: c.var.clientIp }
  await storeRedemption(db, clock, who, { ...redemption, accountId, requestId })
  return c.json({ code: redemption.code, windows_reset: redemption.windowsReset })
}

/** `POST /api/codex/rate-limit-reset-credits/consume`: redeems the credit of the owned account that expires first. */
export const consumeNativeResetCredit = createHandlers(
  keyOrOwner('owner'),
  requireProvedOwner,
  restricted('refuse'),
  withInput(consume, { in: 'body', schema: Wish }),
)

const ownedAccount = (c: Ctx): string => {
  const accountId = c.get('ownedAccount')
  if (accountId === null) throw notOwnerError(c.req.header('authorization') ?? null)
  if (!c.env.pool.get(accountId)) throw new AppError('account_not_found')
  return accountId
}

const nativeCredit = (credit: ResetCredit) => ({
  id: credit.id,
  reset_type: credit.resetType ?? null,
  status: credit.status,
  granted_at: isoOrNull(credit.grantedAt),
  expires_at: isoOrNull(credit.expiresAt),
  title: credit.title ?? null,
  description: credit.description ?? null,
  redeem_started_at: isoOrNull(credit.redeemStartedAt),
  redeemed_at: isoOrNull(credit.redeemedAt),
})
