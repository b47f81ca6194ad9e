/** Whether the service knows the reverse proxy in front of it: the peer that was seen, against the ranges it trusts. */
import { anyContains, type Cidr, normaliseIp } from '../lib/cidr.ts'
import { type Check, type Found, fine, unknown, warning } from './checks.ts'

export interface SeenRequest {
  /** The socket's own remote address. */
  peer: string | null
  /** Who that makes the client. */
  clientIp: string | null
  headers: Headers
  /** Ranges whose forwarded headers are believed; null: header trust is off. */
  trust: readonly Cidr[] | null
  /** What browsers call this service, as configured; null: nothing is. */
  publicUrl: string | null
}

export const proxyChecks = (seen: SeenRequest): Check[] => [
  { id: 'trusted_proxies', title: 'Reverse proxy', run: () => checkTrust(seen) },
  { id: 'host_header', title: 'Host header', run: () => checkHost(seen) },
]

/** The headers that name a client (RFC 7239, and the one everybody sends). */
const NAMING = ['x-forwarded-for', 'forwarded']

const checkTrust = ({ peer, clientIp, headers, trust }: SeenRequest): Found => {
  const ip = peer === null ? null : normaliseIp(peer)
  const isForwarded = NAMING.some((name) => headers.has(name))
  if (ip === null) return unknown('The address this request came from is not known.')
  if (!isForwarded)
    return trust && anyContains(trust, ip)
      ? warning(
          `${ip} is trusted as a proxy and named no client.`,
          'Let it send X-Forwarded-For; without it everybody looks like the proxy itself.',
        )
      : fine(`You are connected directly, from ${ip}.`)
  if (!trust)
    return warning(
      `${ip} names another client, and headers are not trusted: everybody looks like ${ip}, and nobody is local.`,
      'Set CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS=true, and name the proxy as below.',
    )
  if (!anyContains(trust, ip))
    return warning(
      `${ip} names another client and is not among the trusted proxies, so it is not believed.`,
      `Add ${ip}${ip.includes(':') ? '/128' : '/32'} to CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS if it is your reverse proxy.`,
    )
  return clientIp === null
    ? warning(
        `What the proxy ${ip} says of the client contradicts itself or cannot be read.`,
        'Let it set one of X-Forwarded-For and Forwarded, and drop what clients send.',
      )
    : fine(`The proxy ${ip} is trusted, and names you as ${clientIp}.`)
}

/** Browsers send their own address with every change; where the proxy rewrote Host, the two differ and changes are refused. */
const checkHost = ({ headers, publicUrl }: SeenRequest): Found => {
  const host = headers.get('host')
  const forwarded = headers.get('x-forwarded-host')
  const expected = publicUrl === null ? forwarded : new URL(publicUrl).host
  if (!host) return unknown('The request had none.')
  if (expected === null || expected === host) return fine(`It arrives as ${host}.`)
  return warning(
    `Browsers say ${expected}, and here it arrives as ${host}.`,
    'Let the proxy pass the Host header on as it came, with its port (nginx: proxy_set_header Host $http_host).',
  )
}
