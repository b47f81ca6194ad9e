/**
 * The address of a request's client: the socket peer, or the client named by trusted proxies; when in doubt, unknown. And
 * which addresses count as one client.
 */
import { anyContains, type Cidr, normaliseIp, parseCidr } from './cidr.ts'

interface Caller {
  /** The socket's remote address, before anything rewrote it. */
  peer: string | null
  headers: Headers
  /** Ranges whose forwarded headers are trusted; null when header trust is off. */
  trust: readonly Cidr[] | null
}

/**
 * The client's canonical address. For a trusted peer, `X-Forwarded-For` and `Forwarded` are read from right to left
 * past trusted hops. `ip` is null when unclear: an invalid hop, or two headers that disagree. `viaProxy`: the peer is
 * trusted, and so are its forwarded headers.
 */
export function clientIp({ peer, headers, trust }: Caller): { ip: string | null; viaProxy: boolean } {
  const ip = peer === null ? null : normaliseIp(peer)
  if (ip === null || !trust || !anyContains(trust, ip)) return { ip, viaProxy: false }
  const claims = chainClaims(headers, trust)
  return { ip: claims.length === 0 ? ip : agreed(claims), viaProxy: true }
}

/** 127.0.0.0/8 or ::1, also when written as a mapped IPv6 address. */
export function isLoopback(ip: string): boolean {
  return ip === '127.0.0.1' || anyContains(LOOPBACK, ip)
}

/** Whether a server listening on `host` is reachable only from this machine. */
export function isLoopbackHost(host: string): boolean {
  return LOCAL_HOSTS.includes(host) || isLoopback(host.replace(/^\[(.*)\]$/, '$1'))
}

/**
 * Whether the request comes from this machine: loopback client and loopback Host. Without trust, any proxy header makes
 * it remote; with trust, the peer must be trusted and all such headers must name one loopback client.
 */
export function isLocalRequest({ peer, host, headers, trust }: Caller & { host: string | null }): boolean {
  const ip = peer === null ? null : normaliseIp(peer)
  if (ip === null || !isLocalHost(host)) return false
  if (!trust) return isLoopback(ip) && !hasProxyHeader(headers)
  if (!anyContains(trust, ip)) return false
  const claims = [...chainClaims(headers, trust), ...singleClaims(headers)]
  if (claims.length === 0) return isLoopback(ip) && !hasProxyHeader(headers)
  const client = agreed(claims)
  return client !== null && isLoopback(client)
}

/** The client address in a header; null when unusable. */
type Claim = string | null

const LOOPBACK = ['127.0.0.0/8', '::1'].map((text) => parseCidr(text)!)
const LOCAL_HOSTS: readonly string[] = ['', 'localhost', '127.0.0.1', '::1', '[::1]']
const SINGLE_HEADERS = ['x-real-ip', 'x-client-ip', 'true-client-ip', 'cf-connecting-ip']
/** Whole families of headers: a proxy that rewrites the Host to loopback must not make its clients local. */
const PROXY_HEADER = /^(?:via$|forwarded$|true-client-ip$|x-real-ip$|x-client-ip$|x-forwarded-|x-original-|cf-)/

/** One pass over all names costs as much as looking up the twenty best known (Bun 1.4.5). */
function hasProxyHeader(headers: Headers): boolean {
  for (const name of headers.keys()) if (PROXY_HEADER.test(name)) return true
  return false
}

function agreed(claims: Claim[]): string | null {
  const [first = null] = claims
  return claims.every((claim) => claim === first) ? first : null
}

function chainClaims(headers: Headers, trust: readonly Cidr[]): Claim[] {
  const forwardedFor = headers.get('x-forwarded-for')
  const forwarded = headers.get('forwarded')
  return [
    ...(forwardedFor === null ? [] : [firstUntrusted(forwardedFor.split(',').map(hopAddress), trust)]),
    ...(forwarded === null ? [] : [firstUntrusted(forwardedHops(forwarded), trust)]),
  ]
}

function singleClaims(headers: Headers): Claim[] {
  return SINGLE_HEADERS.flatMap((name) => {
    const value = headers.get(name)
    return value === null ? [] : [normaliseIp(value.trim())]
  })
}

/** The first untrusted hop from the right is the client; anything further left may be forged. */
function firstUntrusted(hops: Claim[], trust: readonly Cidr[]): Claim {
  let client: Claim = null
  for (const hop of hops.toReversed()) {
    client = hop
    if (hop === null || !anyContains(trust, hop)) break
  }
  return client
}

/** The `for=` of each element (RFC 7239 §4). Missing, obfuscated or malformed ones are null hops. */
function forwardedHops(header: string): Claim[] {
  const elements = header.match(/(?:[^",]|"[^"]*"?)+/g) ?? []
  return elements.map((element) => {
    const [, quoted, bare] = /(?:^|;)\s*for=(?:"([^"\\]*)"|([^";\s]*))\s*(?:;|$)/i.exec(element) ?? []
    return hopAddress(quoted ?? bare ?? '')
  })
}

/** An address, optionally with a port as some proxies add: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function hopAddress(text: string): Claim {
  const trimmed = text.trim()
  const [, bracketed, v4] = /^(?:\[([^\]]+)\]|([\d.]+))(?::\d{1,5})?$/.exec(trimmed) ?? []
  return normaliseIp(bracketed ?? v4 ?? trimmed)
}

/** Whether the Host names this machine, ignoring the port; a missing Host counts as local. */
function isLocalHost(host: string | null): boolean {
  const name = (host ?? '').toLowerCase()
  return LOCAL_HOSTS.includes(name) || LOCAL_HOSTS.includes(name.replace(/^(\[[^\]]*\]|[^:]+):\d{1,5}$/, '$1'))
}

/** A client may use a whole IPv6 /64. All clients without a known address are one. */
export const getClient = (ip: string | null): string => {
  const address = ip === null ? null : normaliseIp(ip)
  if (address === null) return 'unknown'
  return address.includes(':') ? expanded(address).slice(0, 4).join(':') : address
}

const expanded = (address: string): string[] => {
  const [head = '', tail] = address.split('::')
  const left = head === '' ? [] : head.split(':')
  const right = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - left.length - right.length
  return [...left, ...Array.from({ length: zeros }, () => '0'), ...right].map((part) => part.replace(/^0+(?=.)/, ''))
}
