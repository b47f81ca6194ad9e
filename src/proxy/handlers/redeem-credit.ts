/** `POST /v1/reset-credit`: a client redeems a reset credit of an account its key may use. */
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { withInput } from '../../http/body.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { isoOrNull } from '../../lib/iso.ts'
import { storeRedemption } from '../../model/accounts/redemption-record.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import { redeem } from '../../upstream/redeem.ts'
import { parseAt } from '../formats/invalid-request.ts'
import { readSmallBody } from './small-body.ts'

const Wish = z.strictObject({
  account_id: z.string().trim().min(1).max(255).describe('As listed.'),
  redeem_id: z.string().trim().min(1).max(255).describe('As listed.'),
})

const redeemWished = async (c: Ctx): Promise<Response> => {
  const { db, pool, proxyDeps, resetCredits, random, clock } = c.env
  const { key } = c.var.client
  const { account_id: accountId, redeem_id: creditId } = parseAt(Wish, await readSmallBody(c))
  if (!key) throw new AppError('invalid_api_key')
  const account = pool.get(accountId)
  if (!account || !isInScope(key.scope, account)) throw new AppError('account_outside_pool')
  const deps = { ...proxyDeps.upstream, credentials: proxyDeps.credentials, pool, resetCredits }
  const requestId = random.id('rdm')
  const redemption = await redeem(deps, { accountId, creditId, requestId })
  const { code, windowsReset, redeemedAt } = redemption
  const who = { id: key.id, name: key.name, method: 'api_key', address: c.var.clientIp }
  await storeRedemption(db, clock, who, { ...redemption, accountId, requestId })
  const redeemed_at = isoOrNull(redeemedAt)
  return c.json({ code, windows_reset: windowsReset, redeemed_at })
}

/**
 * `{code, windows_reset, redeemed_at}`. An unknown account counts as outside the pool, so a key learns nothing about
 * others. Throws `account_outside_pool`, and what `readBody`, `parseAt` and `redeem` throw.
 */
export const redeemCredit = createHandlers(
  clientKey('always'),
  restricted('refuse'),
  withInput(redeemWished, { in: 'body', schema: Wish }),
)
