/** Checks whether Sluice trusts the reverse proxy in front of it. */
import { anyContains, type Cidr, normaliseIp } from '../lib/cidr.ts'
import { type Check, type Found, passed, unknown, warning } from './checks.ts'

export interface SeenRequest {
  /** The socket's own remote address. */
  peer: string | null
  /** The resulting client address. */
  clientIp: string | null
  headers: Headers
  /** Ranges whose forwarded headers are trusted; null: header trust is off. */
  trust: readonly Cidr[] | null
  /** The configured public URL; null: none. */
  publicUrl: string | null
}

export const proxyChecks = (seen: SeenRequest): Check[] => [
  { id: 'trusted_proxies', title: 'Reverse proxy', run: () => checkTrust(seen) },
  { id: 'host_header', title: 'Host header', run: () => checkHost(seen) },
]

/** Headers that name a client (RFC 7239, and the common one). */
const NAMING = ['x-forwarded-for', 'forwarded']

const checkTrust = ({ peer, clientIp, headers, trust }: SeenRequest): Found => {
  const ip = peer === null ? null : normaliseIp(peer)
  const isForwarded = NAMING.some((name) => headers.has(name))
  if (ip === null) return unknown('The address of this request is unknown.')
  if (!isForwarded)
    return trust && anyContains(trust, ip)
      ? warning(
          `${ip} is a trusted proxy, but it doesn’t send the client’s address.`,
          'Make it send X-Forwarded-For. Without it, every client appears to have the address of the proxy.',
        )
      : passed(`You are connected directly from ${ip}.`)
  if (!trust)
    return warning(
      `${ip} forwards requests, but its headers aren’t trusted. Every client appears to have the address ${ip}.`,
      `Set SLUICE_FIREWALL_TRUST_PROXY_HEADERS=true and add ${ip} to SLUICE_FIREWALL_TRUSTED_PROXY_CIDRS.`,
    )
  if (!anyContains(trust, ip))
    return warning(
      `${ip} forwards requests but isn’t a trusted proxy, so its headers are ignored.`,
      `Add ${ip}${ip.includes(':') ? '/128' : '/32'} to SLUICE_FIREWALL_TRUSTED_PROXY_CIDRS if it is your reverse proxy.`,
    )
  return clientIp === null
    ? warning(
        `The forwarding headers of the proxy ${ip} are contradictory or invalid.`,
        'Make it set either X-Forwarded-For or Forwarded, and drop the ones clients send.',
      )
    : passed(`The proxy ${ip} is trusted. Your address is ${clientIp}.`)
}

/** Browsers send their origin with every change; if the proxy rewrites the Host, the two differ and changes are rejected. */
const checkHost = ({ headers, publicUrl }: SeenRequest): Found => {
  const host = headers.get('host')
  const forwarded = headers.get('x-forwarded-host')
  const expected = publicUrl === null ? forwarded : new URL(publicUrl).host
  if (!host) return unknown('The request had no Host header.')
  if (expected === null || expected === host) return passed(`The Host header arrives as ${host}.`)
  return warning(
    `The browser sends ${expected}, but it arrives as ${host}.`,
    'Make the reverse proxy forward the Host header unchanged, with its port (nginx: proxy_set_header Host $http_host).',
  )
}
