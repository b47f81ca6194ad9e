/** Where a request comes from, for access decisions. */
import type { Ctx } from '../boot/bindings.ts'
import type { Cidr } from '../lib/cidr.ts'
import { isLocalRequest } from '../lib/client-ip.ts'

/** Whether the request comes from this machine. Not computed for every request, because it reads every header. */
export const isLocal = (c: Ctx): boolean =>
  isLocalRequest({
    peer: c.get('peer'),
    headers: c.req.raw.headers,
    trust: getTrust(c),
    host: c.req.header('host') ?? null,
  })

/** Ranges whose forwarded headers are trusted; null when none are. */
export const getTrust = ({ env: { env } }: Ctx): readonly Cidr[] | null =>
  env.FIREWALL_TRUST_PROXY_HEADERS ? env.FIREWALL_TRUSTED_PROXY_CIDRS : null
