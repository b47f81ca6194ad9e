/** Names under which requests without a cookie or key are served (spec §5): none that another site can let lead here. */
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

/**
 * Whether the dashboard is served under the name of this request while authentication is off: an own one, or one that a trusted
 * proxy forwards. A trusted peer that forwards nothing is a browser on that machine, and its Host proves nothing.
 */
export const isServedHost = (c: Ctx): boolean => isOwnHost(c) || isForwarded(c)

/** Several hosts in one header come of several hops, and which of them is meant cannot be told. */
const isForwarded = ({ var: { viaProxy }, req }: Ctx): boolean =>
  viaProxy &&
  FORWARDING.some((name) => req.header(name) !== undefined) &&
  !req.header('x-forwarded-host')?.includes(',')

const FORWARDING = ['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-for', 'forwarded']
