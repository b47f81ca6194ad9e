/**
 * The one door to the upstream: every call leaves with an explicit proxy or an explicit "none". Left to itself the
 * runtime reads the environment again at each fetch and goes direct where it does not understand it.
 */
import { createConnection } from 'node:net'
import { AppError } from '../errors.ts'
import { chooseProxy, type Environment } from '../lib/env-proxy.ts'

export interface Dial {
  /** `fetch`, through the proxy the environment names for this target. Throws `EgressError`, `upstream_unreachable`. */
  fetch(url: string, init: RequestInit): Promise<Response>
  /** Whether a TCP connection towards `url` (or its proxy) can be made at all; asked only when an answer is late. */
  canConnect(url: string): Promise<boolean>
  /** Throws `EgressError` when calls to `url` could not be made as the environment asks. Run at start. */
  check(url: string): void
}

/** A proxy variable that would have to be ignored to go on; that is never done silently. */
export class EgressError extends Error {
  override readonly name = 'EgressError'
}

type Proxy = false | { url: string; respectNoProxy: false }

export const createDial = (environment: Environment, fetch: typeof globalThis.fetch): Dial => {
  const known = new Map<string, Proxy>()
  const proxyOf = (url: string): Proxy => {
    const origin = originOf(url)
    let proxy = known.get(origin)
    if (proxy === undefined) {
      proxy = resolve(environment, origin)
      known.set(origin, proxy)
    }
    return proxy
  }
  return {
    fetch: async (url, init) => {
      const proxy = proxyOf(url)
      // Time limits are ours (architecture §3.5); the runtime's own idle timer would end a model that thinks for long.
      const response = await fetch(url, { ...init, proxy, timeout: false, redirect: 'manual' })
      if (proxy && response.status === PROXY_AUTHENTICATION_REQUIRED) throw await proxyRefused(response)
      return response
    },
    canConnect: (url) => {
      const proxy = proxyOf(url)
      return canConnect(proxy ? proxy.url : url)
    },
    check: (url) => void proxyOf(url),
  }
}

const PROXY_AUTHENTICATION_REQUIRED = 407

/** It is the proxy that speaks (RFC 9110 §15.5.8): read as the upstream's answer it would condemn the account. */
const proxyRefused = async (response: Response): Promise<AppError> => {
  await response.body?.cancel()
  return new AppError('upstream_unreachable', { message: 'The outbound proxy refused our credentials.' })
}

const PROBE_MS = 3000

const canConnect = async (target: string): Promise<boolean> => {
  const { hostname, port, protocol } = new URL(target)
  const host = hostname.replace(/^\[|\]$/g, '')
  const socket = createConnection({ host, port: Number(port) || (protocol === 'https:' ? 443 : 80), timeout: PROBE_MS })
  const { promise, resolve } = Promise.withResolvers<boolean>()
  socket.once('connect', () => resolve(true))
  socket.once('error', () => resolve(false))
  socket.once('timeout', () => resolve(false))
  return promise.finally(() => socket.destroy())
}

const originOf = (url: string): string => url.slice(0, url.indexOf('/', url.indexOf('://') + 3))

const resolve = (environment: Environment, origin: string): Proxy => {
  const route = chooseProxy(origin, environment)
  switch (route.kind) {
    case 'direct':
      return false
    case 'proxy':
      return { url: route.url, respectNoProxy: false }
    case 'socks':
      throw new EgressError(
        `${route.variable} names a SOCKS proxy, which is not supported yet; unset it or use http://.`,
      )
    case 'invalid':
      throw new EgressError(`${route.variable} cannot be used as a proxy: ${route.why}.`)
  }
}
