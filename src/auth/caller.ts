/** Where a request comes from and which host it names, for access decisions (spec §5). */
import type { Ctx } from '../boot/bindings.ts'
import { type Cidr, normaliseIp } from '../lib/cidr.ts'
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

/**
 * Whether no other site can use this Host: an address, a single-label name, which public DNS does not have, or the
 * configured name. Without a cookie to identify the user, any other name is DNS rebinding.
 */
export const isOwnHost = (c: Ctx): boolean => {
  const { hostname } = new URL(c.req.url)
  const { PUBLIC_URL } = c.env.env
  if (PUBLIC_URL && new URL(PUBLIC_URL).hostname === hostname) return true
  return !hostname.includes('.') || normaliseIp(hostname) !== null
}

/**
 * Whether the dashboard is served under this Host while authentication is off: an own name, or one forwarded by a
 * trusted proxy. A trusted peer that forwards nothing is a browser on that machine, and its Host proves nothing.
 */
export const isServedHost = (c: Ctx): boolean => isOwnHost(c) || isForwarded(c)

/** Several hosts in one header come from several hops, and it is unclear which one applies. */
const isForwarded = ({ var: { viaProxy }, req }: Ctx): boolean =>
  viaProxy &&
  FORWARDING.some((name) => req.header(name) !== undefined) &&
  !req.header('x-forwarded-host')?.includes(',')

const FORWARDING = ['x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-for', 'forwarded']
