/**
 * The only way to the upstream: every call states its proxy or explicitly none, because the runtime rereads the
 * environment at each fetch and connects directly when it does not understand it. Proxy code is loaded only when
 * needed.
 */
import type { Agent } from 'node:http'
import { createConnection, isIP, isIPv6 } from 'node:net'
import { AppError } from '../errors.ts'
import { chooseProxy, type Environment } from '../lib/env-proxy.ts'
import type { Random } from '../lib/random.ts'
import { endpointOf } from './endpoint.ts'
import type { SocksBridge } from './socks-bridge.ts'

export interface Dial {
  /**
   * `fetch`, through the proxy the environment names for this target. Throws `EgressError`, `upstream_unreachable`,
   * `TunnelError`.
   */
  fetch(url: string, init: RequestInit): Promise<Response>
  /**
   * `fetch`, with a direct connection to `address`, to which the name of `url` was resolved: resolving it again could
   * give another one. A proxy resolves the name itself.
   */
  fetchAt(url: string, address: string, init: RequestInit): Promise<Response>
  /**
   * The agent for a WebSocket handshake to `url` (ws: or wss:); `undefined` means a direct connection (interface
   * §1.11). Rejects with `EgressError`; the agent fails with `TunnelError`.
   */
  socketAgent(url: string): Promise<Agent | undefined>
  /** Whether calls to `url` use a proxy. Throws `EgressError`. */
  isProxied(url: string): boolean
  /** Whether a TCP connection to `url` (or its proxy) is possible; checked only when an answer is late. */
  canConnect(url: string): Promise<boolean>
  /**
   * Throws `EgressError` when calls to `url` (http:, https:, ws: or wss:) cannot be made as the environment says. Run
   * at start.
   */
  check(url: string): void
  /** Closes the SOCKS bridges and the calls through them. */
  close(): void
}

interface DialOptions {
  /** Whether WebSocket handshakes use the environment; fetch always does (interface §1.11). */
  trustsSocketEnvironment: boolean
  /** For the secret that keeps other local processes off the SOCKS bridge. */
  random: Pick<Random, 'token'>
}

/** A proxy variable that cannot be honoured. It is never silently ignored. */
export class EgressError extends Error {
  override readonly name = 'EgressError'
}

type Route =
  | { kind: 'direct' }
  | { kind: 'http'; proxy: string }
  | { kind: 'socks'; proxy: string; bridge: () => Promise<SocksBridge> }

export const createDial = (
  environment: Environment,
  fetch: typeof globalThis.fetch,
  { trustsSocketEnvironment, random }: DialOptions,
): Dial => {
  const bridges = new Map<string, Promise<SocksBridge>>()
  const bridgeTo = (proxy: string): Promise<SocksBridge> =>
    bridges.getOrInsertComputed(proxy, () => {
      const bridge = newBridge(proxy, random.token(SECRET_BYTES))
      bridge.catch(() => bridges.delete(proxy)) // retry a failed load
      return bridge
    })
  const routeOf = memoized((origin) => {
    if (!trustsSocketEnvironment && origin.startsWith('ws')) return DIRECT
    const choice = chooseProxy(origin, environment)
    switch (choice.kind) {
      case 'direct':
        return DIRECT
      case 'proxy':
        return { kind: 'http', proxy: choice.url }
      case 'socks':
        return { kind: 'socks', proxy: choice.url, bridge: () => bridgeTo(choice.url) }
      case 'invalid':
        throw new EgressError(`${choice.variable} cannot be used as a proxy: ${choice.why}.`)
    }
  })
  return {
    fetch: async (url, init) => {
      const route = routeOf(url)
      return route.kind === 'direct' ? fetch(url, { ...init, ...OURS, proxy: false }) : send(fetch, route, url, init)
    },
    fetchAt: async (url, address, init) => {
      const route = routeOf(url)
      if (route.kind !== 'direct') return send(fetch, route, url, init)
      const there = pinned(url, address, init)
      return fetch(there.url, { ...there.init, ...OURS, proxy: false })
    },
    socketAgent: async (url) => {
      const route = routeOf(url)
      if (route.kind === 'direct') return undefined
      const { tunnelAgent } = await import('./tunnel-agent.ts')
      return tunnelAgent(route.proxy, { isSecure: url.startsWith('wss:') })
    },
    isProxied: (url) => routeOf(url).kind !== 'direct',
    canConnect: (url) => {
      const route = routeOf(url)
      return canConnect(route.kind === 'direct' ? url : route.proxy)
    },
    check: (url) => void routeOf(url),
    close: () => {
      for (const bridge of bridges.values()) void bridge.then((open) => open.close()).catch(() => {}) // it never opened
    },
  }
}

const DIRECT: Route = { kind: 'direct' }
const SECRET_BYTES = 32

const newBridge = async (proxy: string, secret: string): Promise<SocksBridge> => {
  const bridge = await import('./socks-bridge.ts')
  return new bridge.SocksBridge(proxy, secret)
}

/** There are only two or three origins, and every turn needs one. */
const memoized = (resolve: (origin: string) => Route): ((url: string) => Route) => {
  const known = new Map<string, Route>()
  return (url) => known.getOrInsertComputed(originOf(url), resolve)
}

const originOf = (url: string): string => {
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

const send = async (
  fetch: typeof globalThis.fetch,
  route: Exclude<Route, { kind: 'direct' }>,
  url: string,
  init: RequestInit,
): Promise<Response> => {
  const bridge = route.kind === 'socks' ? await route.bridge() : null
  const way = bridge ? await wayOver(bridge, url) : { proxy: { url: route.proxy, respectNoProxy: false } }
  const response = await fetch(url, { ...init, ...OURS, ...way })
  if (response.status === PROXY_AUTHENTICATION_REQUIRED) throw await proxyRefused(response)
  const failure = bridge && (await bridge.failureIn(response))
  if (failure) throw failure
  return response
}

const wayOver = async (bridge: SocksBridge, url: string): Promise<Pick<BunFetchRequestInit, 'proxy' | 'keepalive'>> => {
  const proxy = { url: await bridge.url(), respectNoProxy: false }
  return url.startsWith('https:') ? { proxy } : { proxy, keepalive: false } // see `SocksBridge`
}

const PROXY_AUTHENTICATION_REQUIRED = 407

/** This answer is the proxy's (RFC 9110 §15.5.8), so it must not count against the account. */
const proxyRefused = async (response: Response): Promise<AppError> => {
  await response.body?.cancel()
  return new AppError('upstream_unreachable', { message: 'The outbound proxy rejected its user name or password.' })
}

const PROBE_MS = 3000

const canConnect = async (target: string): Promise<boolean> => {
  const socket = createConnection({ ...endpointOf(new URL(target)), timeout: PROBE_MS })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.once('timeout', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
