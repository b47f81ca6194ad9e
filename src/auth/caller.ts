/** From where a request comes, as far as it matters for what it may do. */
import type { Ctx } from '../bindings.ts'
import type { Cidr } from '../lib/cidr.ts'
import { isLocalRequest } from '../lib/client-ip.ts'

/** Whether somebody on this machine is calling. Looks at every header, so it is told only to who asks. */
export const isLocal = (c: Ctx): boolean =>
  isLocalRequest({
    peer: c.get('peer'),
    headers: c.req.raw.headers,
    trust: trustOf(c),
    host: c.req.header('host') ?? null,
  })

/** Ranges whose forwarded headers are believed; null when none are. */
export const trustOf = ({ env: { env } }: Ctx): readonly Cidr[] | null =>
  env.FIREWALL_TRUST_PROXY_HEADERS ? env.FIREWALL_TRUSTED_PROXY_CIDRS : null
