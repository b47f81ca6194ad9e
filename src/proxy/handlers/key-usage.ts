/** What a client can query about its own key: usage, limits, and reset credits of its pool. Calls no upstream. */
import { AppError } from '../../errors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { getKey } from '../../model/keys/api-keys.ts'
import { keyUsage } from '../../model/keys/key-usage.ts'

/** `GET /v1/usage`. */
export const showKeyUsage = createHandlers(clientKey('always'), restricted('local'), (c) => {
  const { db, clientLimits, clock } = c.env
  const policy = c.var.client.key
  if (!policy) throw new AppError('invalid_api_key')
  const now = clock.now()
  return c.json(
    keyUsage({
      totals: getKey(db, policy.id, 'all'),
      policy,
      pool: clientLimits.forScope(policy.scope).windows,
      hidesUpstreamQuota: clientLimits.hidesPool(policy),
      now,
    }),
  )
})

/** `GET /v1/reset-credit`, from memory. */
export const listResetCredits = createHandlers(clientKey('always'), restricted('local'), (c) => {
  const { pool, resetCredits, clock } = c.env
  const policy = c.var.client.key
  if (!policy) throw new AppError('invalid_api_key')
  return c.json(resetCredits.listFor(policy.scope, pool.all(), clock.now()))
})
