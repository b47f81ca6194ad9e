/** What a client can query about its own key: usage, limits, and reset credits of its pool. Calls no upstream. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getKey } from '../../model/keys/api-keys.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { keyUsage } from '../../model/keys/key-usage.ts'

/** `GET /v1/usage`. */
export const showKeyUsage = createHandlers(clientKey('always'), restricted('local'), async (c) =>
  c.json(await getKeyUsage(c.env, getKeyPolicy(c))),
)

/** The body of `GET /v1/usage`. */
export const getKeyUsage = async ({ db, clientLimits, clock }: Ctx['env'], policy: KeyPolicy) =>
  keyUsage({
    totals: await getKey(db, policy.id, 'all'),
    policy,
    pool: clientLimits.forScope(policy.scope).windows,
    hidesUpstreamQuota: clientLimits.hidesPool(policy),
    now: clock.now(),
  })

/** Throws `invalid_api_key`. */
export const getKeyPolicy = (c: Ctx): KeyPolicy => {
  const policy = c.var.client.key
  if (!policy) throw new AppError('invalid_api_key')
  return policy
}

/** `GET /v1/reset-credit`, from memory. */
export const listResetCredits = createHandlers(clientKey('always'), restricted('local'), (c) => {
  const { pool, resetCredits, clock } = c.env
  return c.json(resetCredits.listFor(getKeyPolicy(c).scope, pool.all(), clock.now()))
})
