/**
 * The only way to the upstream: every call names its route, and fetch gets a proxy or explicitly none, because the runtime rereads the
 * environment at each fetch and connects directly when it does not understand it. Proxy code is loaded only when
 * needed.
 */
import type { Agent } from 'node:http'
import { createConnection, isIP, isIPv6 } from 'node:net'
import { AppError } from '../errors.ts'
import { chooseProxy, type Environment } from '../lib/env-proxy.ts'
import type { Random } from '../lib/random.ts'
import { noRoute, type Route } from '../model/egress/route.ts'
import { toEndpoint } from './endpoint.ts'
import type { ProxyBridge as Bridge } from './proxy-bridge.ts'
import type { Proxies } from './tunnel.ts'

export interface Dial {
  /**
   * `fetch` by this route: that of the account the call is made for, or `NOT_FOR_AN_ACCOUNT`. Throws `EgressError`,
   * `upstream_unreachable`, `TunnelError`, and `egress_unavailable` when the route is closed or none of its proxies
   * connects; then nothing was sent.
   */
  fetch(url: string, init: RequestInit, route: Route): Promise<Response>
  /**
   * `fetch` for no account, as the environment says. A direct connection goes to `address`, to which the name of `url`
   * was resolved: resolving it again could give another one. A proxy resolves the name itself.
   */
  fetchAt(url: string, address: string, init: RequestInit): Promise<Response>
  /**
   * The agent for a WebSocket handshake to `url` (ws: or wss:); `undefined` means a direct connection (spec §1.11).
   * Rejects with `EgressError`, `egress_unavailable`; the agent fails with `TunnelError`, `egress_unavailable`.
   */
  socketAgent(url: string, route: Route): Promise<Agent | undefined>
  /** Whether calls to `url` use a proxy. Throws `EgressError`. */
  isProxied(url: string, route: Route): boolean
  /**
   * Whether a TCP connection to `url` (or its proxy) is possible; checked only when an answer is late. Always true for
   * a route through proxies, which has time limits of its own.
   */
  canConnect(url: string, route: Route): Promise<boolean>
  /**
   * Throws `EgressError` when calls to `url` (http:, https:, ws: or wss:) cannot be made as the environment says. Run
   * at start.
   */
  check(url: string): void
  /** Takes no more connections for routes whose key is not among these; open ones end by themselves. */
  keepRoutes(keys: ReadonlySet<string>): void
  /** Closes the bridges to proxies and the calls through them. */
  close(): void
}

interface DialOptions {
  /** Whether WebSocket handshakes use the environment; fetch always does (spec §1.11). */
  trustsSocketEnvironment: boolean
  /** For the secret that keeps other local processes off the bridges. */
  random: Pick<Random, 'token'>
  /** How long connecting through one endpoint of a route may take. */
  endpointTimeoutMs?: number
}

/** A proxy variable that cannot be honoured. It is never silently ignored. */
export class EgressError extends Error {
  override readonly name = 'EgressError'
}

type Way =
  | { kind: 'direct' }
  | { kind: 'http'; proxy: string }
  /** Over a bridge of ours; the bridges are kept by `key`. */
  | { kind: 'bridge'; key: string; proxies: Proxies }

export const createDial = (
  environment: Environment,
  fetch: typeof globalThis.fetch,
  { trustsSocketEnvironment, random, endpointTimeoutMs = ENDPOINT_CONNECT_MS }: DialOptions,
): Dial => {
  const bridges = new Map<string, Promise<Bridge>>()
  const bridgeTo = (key: string, proxies: Proxies): Promise<Bridge> =>
    bridges.getOrInsertComputed(key, () => {
      const bridge = newBridge(proxies, { secret: random.token(SECRET_BYTES), timeoutMs: endpointTimeoutMs })
      bridge.catch(() => bridges.delete(key)) // retry a failed load
      return bridge
    })
  const wayOfEnvironment = memoized((origin) => {
    if (!trustsSocketEnvironment && origin.startsWith('ws')) return DIRECT
    const choice = chooseProxy(origin, environment)
    switch (choice.kind) {
      case 'direct':
        return DIRECT
      case 'proxy':
        return { kind: 'http', proxy: choice.url }
      case 'socks':
        return { kind: 'bridge', key: choice.url, proxies: choice.url }
      case 'invalid':
        throw new EgressError(`${choice.variable} cannot be used as a proxy: ${choice.why}.`)
    }
  })
  const getWay = (url: string, route: Route): Way => {
    if (route.kind === 'environment') return wayOfEnvironment(url)
    if (route.kind === 'closed') throw noRoute(route.reason)
    return { kind: 'bridge', key: ROUTE + route.key, proxies: route }
  }
  const over = async (way: Exclude<Way, { kind: 'direct' }>, url: string, init: RequestInit): Promise<Response> =>
    way.kind === 'http'
      ? overProxy(fetch, way.proxy, url, init)
      : overBridge(fetch, await bridgeTo(way.key, way.proxies), url, init)
  return {
    fetch: async (url, init, route) => {
      const way = getWay(url, route)
      return way.kind === 'direct' ? fetch(url, { ...init, ...OURS, proxy: false }) : over(way, url, init)
    },
    fetchAt: async (url, address, init) => {
      const way = wayOfEnvironment(url)
      if (way.kind !== 'direct') return over(way, url, init)
      const there = pinned(url, address, init)
      return fetch(there.url, { ...there.init, ...OURS, proxy: false })
    },
    socketAgent: async (url, route) => {
      const way = getWay(url, route)
      if (way.kind === 'direct') return undefined
      const [{ tunnelAgent }, { openerFor }] = await Promise.all([import('./tunnel-agent.ts'), import('./tunnel.ts')])
      const opener = openerFor(way.kind === 'http' ? way.proxy : way.proxies, endpointTimeoutMs)
      return tunnelAgent(opener, { isSecure: url.startsWith('wss:') })
    },
    isProxied: (url, route) => route.kind !== 'environment' || wayOfEnvironment(url).kind !== 'direct',
    canConnect: async (url, route) => {
      if (route.kind !== 'environment') return true
      const way = wayOfEnvironment(url)
      return canConnect(way.kind === 'direct' ? url : way.kind === 'http' ? way.proxy : way.key)
    },
    check: (url) => void wayOfEnvironment(url),
    keepRoutes: (keys) => {
      for (const [key, bridge] of bridges) {
        if (!key.startsWith(ROUTE) || keys.has(key.slice(ROUTE.length))) continue
        bridges.delete(key)
        void bridge.then((open) => open.retire()).catch(() => {}) // it never opened
      }
    },
    close: () => {
      for (const bridge of bridges.values()) void bridge.then((open) => open.close()).catch(() => {}) // it never opened
    },
  }
}

const DIRECT: Way = { kind: 'direct' }
const SECRET_BYTES = 32
/** Begins the keys of bridges for routes; others are proxy URLs. */
const ROUTE = 'route '
/** Shorter than a handshake may take, so that the next endpoint gets its turn. */
const ENDPOINT_CONNECT_MS = 5000

/** How much longer a handshake by this route may take, because several endpoints may be tried. */
export const extraConnectMs = (route: Route): number =>
  route.kind === 'proxies' ? ENDPOINT_CONNECT_MS * route.endpoints().length : 0

const newBridge = async (
  proxies: Proxies,
  { secret, timeoutMs }: { secret: string; timeoutMs: number },
): Promise<Bridge> => {
  const [{ ProxyBridge }, { openerFor }] = await Promise.all([import('./proxy-bridge.ts'), import('./tunnel.ts')])
  return new ProxyBridge(openerFor(proxies, timeoutMs), secret)
}

/** There are only two or three origins, and every turn needs one. */
const memoized = (resolve: (origin: string) => Way): ((url: string) => Way) => {
  const known = new Map<string, Way>()
  return (url) => known.getOrInsertComputed(getOrigin(url), resolve)
}

const getOrigin = (url: string): string => {
  const end = url.indexOf('/', url.indexOf('://') + 3)
  return end === -1 ? url : url.slice(0, end)
}

/**
 * We enforce time limits ourselves (architecture §3.5): the runtime's idle timer would end a model that thinks for
 * long. Nor may the runtime decompress: 1 MB of gzip can hold 1 GB (`bounded-body.ts`).
 */
const OURS = { timeout: false, redirect: 'manual', decompress: false } as const

/** The name stays in the Host header and in the handshake, so that certificates are checked against it. */
const pinned = (url: string, address: string, init: RequestInit): { url: string; init: BunFetchRequestInit } => {
  const { host, hostname, protocol } = new URL(url)
  if (isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return { url, init }
  const headers = new Headers(init.headers)
  headers.set('host', host)
  const there = new URL(url)
  there.hostname = isIPv6(address) ? `[${address}]` : address
  return {
    url: there.href,
    init: { ...init, headers, ...(protocol === 'https:' && { tls: { serverName: hostname } }) },
  }
}

const overProxy = async (
  fetch: typeof globalThis.fetch,
  proxy: string,
  url: string,
  init: RequestInit,
): Promise<Response> => {
  const response = await fetch(url, { ...init, ...OURS, proxy: { url: proxy, respectNoProxy: false } })
  if (response.status === PROXY_AUTHENTICATION_REQUIRED) throw await proxyRefused(response)
  return response
}

const overBridge = async (
  fetch: typeof globalThis.fetch,
  bridge: Bridge,
  url: string,
  init: RequestInit,
): Promise<Response> => {
  const isReused = url.startsWith('https:') // see `ProxyBridge`
  const asked = bridge.call((at) => {
    const proxy = { url: at, respectNoProxy: false }
    return fetch(url, { ...init, ...OURS, proxy, ...(!isReused && { keepalive: false }) })
  })
  const response = await asked.catch((err: unknown) => {
    throw bridge.failureBehind(err) ?? err
  })
  if (response.status === PROXY_AUTHENTICATION_REQUIRED) throw await proxyRefused(response)
  const failure = await bridge.failureIn(response)
  if (failure) throw failure
  return response
}

const PROXY_AUTHENTICATION_REQUIRED = 407

/** This answer is the proxy's (RFC 9110 §15.5.8), so it must not count against the account. */
const proxyRefused = async (response: Response): Promise<AppError> => {
  await response.body?.cancel()
  return new AppError('upstream_unreachable', { message: 'The outbound proxy rejected its user name or password.' })
}

const PROBE_MS = 3000

const canConnect = async (target: string): Promise<boolean> => {
  const socket = createConnection({ ...toEndpoint(new URL(target)), timeout: PROBE_MS })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.once('timeout', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
