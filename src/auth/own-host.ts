/** Under which names the dashboard may be opened where authentication is off or with the proxy, and pages may ask models without a key (spec §5): none that another site can take. */
import type { Ctx } from '../bindings.ts'
import { normaliseIp } from '../lib/cidr.ts'

/**
 * Whether the Host is one that no page of another site can give itself: an address, a name of one part, which the public DNS
 * does not have, or what is configured. Where no cookie says who is asking, a foreign name that leads here is an attack.
 */
export const isOwnHost = (c: Ctx): boolean => {
  const { hostname } = new URL(c.req.url)
  const { PUBLIC_URL } = c.env.env
  if (PUBLIC_URL && new URL(PUBLIC_URL).hostname === hostname) return true
  return !hostname.includes('.') || normaliseIp(hostname) !== null
}
