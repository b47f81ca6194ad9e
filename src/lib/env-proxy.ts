/** Which proxy of the environment applies to a URL. Pure. */
import { contains, normaliseIp, parseCidr } from './cidr.ts'

type ProxyChoice =
  | { kind: 'direct' }
  /** An `http:` or `https:` proxy. `variable` is the name that was set. */
  | { kind: 'proxy'; url: string; variable: string }
  /** A `socks4:`, `socks4a:`, `socks5:` or `socks5h:` proxy. */
  | { kind: 'socks'; url: string; variable: string }
  /** The variable is unusable. Reject the call, because connecting directly would be a security problem. */
  | { kind: 'invalid'; variable: string; why: string }

export type Environment = Record<string, string | undefined>

/** Standard variables; lower case takes precedence over upper case. */
export const PROXY_VARIABLES = [
  'https_proxy',
  'http_proxy',
  'wss_proxy',
  'ws_proxy',
  'socks_proxy',
  'all_proxy',
  'no_proxy',
]

/** Removes the user name and password before the last `@`, with or without a scheme. */
export const withoutLogin = (text: string): string =>
  text.replace(/^(?:([a-z][a-z0-9+.-]*:\/\/).*|[^/\s]*)@/i, '$1***@')

/**
 * The choice for an `http:`, `https:`, `ws:` or `wss:` URL. Lower-case variables take precedence; empty ones count as
 * unset. Throws a TypeError for other URLs.
 */
export function chooseProxy(target: string | URL, env: Environment): ProxyChoice {
  const url = new URL(target)
  const names = ORDER.get(url.protocol)
  if (!names) throw new TypeError(`No proxy can be chosen for ${url.protocol} URLs.`)
  const found = names.map((name) => lookUp(env, name)).find((entry) => entry !== null)
  if (!found || isExcepted(url, lookUp(env, 'no_proxy')?.value ?? '')) return { kind: 'direct' }
  return parseProxy(found.variable, found.value)
}

/** `SOCKS_PROXY` is our addition: with only a SOCKS proxy set, no call should connect directly. */
const ORDER = new Map([
  ['https:', ['https_proxy', 'all_proxy', 'socks_proxy']],
  ['http:', ['http_proxy', 'all_proxy', 'socks_proxy']],
  ['wss:', ['wss_proxy', 'socks_proxy', 'https_proxy', 'all_proxy']],
  ['ws:', ['ws_proxy', 'socks_proxy', 'https_proxy', 'http_proxy', 'all_proxy']],
])

const DEFAULT_PORTS = new Map([
  ['https:', '443'],
  ['wss:', '443'],
  ['http:', '80'],
  ['ws:', '80'],
])

const SOCKS_SCHEMES = new Set(['socks4:', 'socks4a:', 'socks5:', 'socks5h:'])

function lookUp(env: Environment, name: string): { variable: string; value: string } | null {
  for (const variable of [name, name.toUpperCase()]) {
    const value = env[variable]?.trim()
    if (value) return { variable, value }
  }
  return null
}

function parseProxy(variable: string, value: string): ProxyChoice {
  const url = proxyUrl(variable.toLowerCase() === 'socks_proxy', value)
  // The value may contain a password, so the reason does not repeat it.
  if (!url?.hostname) return { kind: 'invalid', variable, why: 'it is not a URL with a host' }
  const fault = faultOfLogin(url)
  if (fault) return { kind: 'invalid', variable, why: fault }
  if (SOCKS_SCHEMES.has(url.protocol)) return { kind: 'socks', url: withoutPath(url), variable }
  if (url.protocol === 'http:' || url.protocol === 'https:') return { kind: 'proxy', url: withoutPath(url), variable }
  return { kind: 'invalid', variable, why: `${url.protocol} is not a kind of proxy this service can use` }
}

/** Plain `host:port` is an HTTP proxy; in `SOCKS_PROXY`, also with `http:`, it is SOCKS 5 with remote name resolution. */
function proxyUrl(isSocksVariable: boolean, value: string): URL | null {
  const text = value.includes('://') ? value : `http://${value}`
  return URL.parse(
    text
      .replace(/^socks:\/\//i, 'socks5h://')
      .replace(/^https?:\/\//i, (scheme) => (isSocksVariable ? 'socks5h://' : scheme)),
  )
}

const MAX_SOCKS_LOGIN_BYTES = 255

/**
 * Credentials that cannot be decoded, or that RFC 1929 cannot carry, are rejected at start instead of failing each
 * request.
 */
function faultOfLogin(url: URL): string | null {
  try {
    const parts = [url.username, url.password].map((part) => decodeURIComponent(part))
    const isTooLong = parts.some((part) => Buffer.byteLength(part) > MAX_SOCKS_LOGIN_BYTES)
    return SOCKS_SCHEMES.has(url.protocol) && isTooLong ? 'its user name or password is longer than 255 bytes' : null
  } catch {
    return 'its user name or password is not percent-encoded'
  }
}

function withoutPath(url: URL): string {
  const password = url.password && `:${url.password}`
  const login = url.username || password ? `${url.username}${password}@` : ''
  return `${url.protocol}//${login}${url.host}`
}

/**
 * `NO_PROXY`: `*`, `example.com` (and subdomains), `.example.com` (only subdomains), addresses and ranges, separated by
 * blanks or commas, each with an optional `:port`. Loopback counts only if listed.
 */
function isExcepted(url: URL, list: string): boolean {
  const port = url.port || DEFAULT_PORTS.get(url.protocol)
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .some((entry) => {
      const rule = splitPort(entry)
      return (rule.port === null || rule.port === port) && isNamed(host, rule.host)
    })
}

function splitPort(entry: string): { host: string; port: string | null } {
  const [, bracketed, bracketedPort] = /^\[([^\]]*)\](?::(\d+))?$/.exec(entry) ?? []
  if (bracketed !== undefined) return { host: bracketed, port: bracketedPort ?? null }
  const [, host, port] = /^([^:]+):(\d+)$/.exec(entry) ?? []
  return host !== undefined && port !== undefined ? { host, port } : { host: entry, port: null }
}

function isNamed(host: string, rule: string): boolean {
  if (rule === '*') return true
  const range = parseCidr(rule)
  if (range) return contains(range, host)
  if (normaliseIp(host)) return false
  const name = rule.replace(/^\*(?=\.)/, '').replace(/(?<=.)\.$/, '')
  if (name.startsWith('.')) return name.length > 1 && host.endsWith(name)
  return host === name || host.endsWith(`.${name}`)
}
