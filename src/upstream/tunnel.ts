/** Raw connections through a proxy: HTTP CONNECT over TCP or TLS, and SOCKS 4, 4a and 5. The caller chooses the proxy. */
import { lookup } from 'node:dns/promises'
import { createConnection, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { SocksClient } from 'socks'
import { systemClock } from '../lib/clock.ts'
import { untilAborted } from '../lib/until-aborted.ts'
import { noRoute, type ProxyRoute } from '../model/egress/route.ts'
import { type Target, toEndpoint } from './endpoint.ts'
import { readHead } from './http-head.ts'

/** The proxy was unreachable or could not reach the target. `code` is the same as fetch's. */
export class TunnelError extends Error {
  override readonly name = 'TunnelError'
  readonly code = 'ERR_PROXY_TUNNEL'

  constructor(readonly why: string) {
    super(`The outbound proxy did not connect: ${why}`)
  }
}

/** For reaching the proxy and its answer. */
const TUNNEL_MS = 30_000
const MAX_HEAD_BYTES = 16 * 1024

/**
 * A paused connection to `target` through `proxy`, which may contain percent-encoded credentials. The proxy resolves
 * names, except for `socks4:` and `socks5:`. Rejects with `TunnelError` within `timeoutMs`; never connects directly.
 */
export const openTunnel = async (proxy: string, target: Target, timeoutMs = TUNNEL_MS): Promise<Socket> => {
  const url = new URL(proxy)
  const limit = new AbortController()
  // A socket's own timer does not run during its TLS handshake (Bun 1.4.5), nor during the lookup of a name.
  const cancel = systemClock.after(timeoutMs, () => limit.abort(new TunnelError('it did not answer in time')))
  try {
    const open = url.protocol.startsWith('socks') ? throughSocks : throughHttp
    const socket = await untilAborted(open(url, target, { timeoutMs, signal: limit.signal }), limit.signal)
    return socket.on('error', () => {}) // an error before anyone listens must not end the process
  } catch (err) {
    // Not as the cause: the errors of `socks` contain the credentials.
    throw err instanceof TunnelError ? err : new TunnelError(getWhy(err))
  } finally {
    cancel()
  }
}

interface Limit {
  timeoutMs: number
  signal: AbortSignal
}

/** A proxy of the environment, or those of a route. */
export type Proxies = string | ProxyRoute

/** How a bridge or an agent connects. */
export interface Opener {
  /** A paused connection; rejects with `TunnelError`. Nothing has been sent to the target before. */
  open: (target: Target) => Promise<Socket>
  /** The error for the caller of fetch or the handshake. */
  failed: (why: string) => Error
}

/** `timeoutMs` is for each endpoint of a route. */
export const openerFor = (proxies: Proxies, timeoutMs: number): Opener =>
  typeof proxies === 'string'
    ? { open: (target) => openTunnel(proxies, target), failed: (why) => new TunnelError(why) }
    : {
        open: (target) => openThrough(proxies, target, timeoutMs),
        failed: (why) => noRoute('endpoints_unreachable', new TunnelError(why)),
      }

/** Through the first endpoint of the route that connects; never directly. */
const openThrough = async (route: ProxyRoute, target: Target, timeoutMs: number): Promise<Socket> => {
  const failures: string[] = []
  for (const { id, url } of route.endpoints()) {
    try {
      const socket = await openTunnel(url, target, timeoutMs)
      route.note(id, null)
      return socket
    } catch (err) {
      const why = getWhy(err)
      route.note(id, why)
      failures.push(why)
    }
  }
  throw new TunnelError(failures.join('; '))
}

/** Why there was no connection, without the sentence around it. */
export const getWhy = (err: unknown): string =>
  err instanceof TunnelError ? err.why : err instanceof Error ? err.message : String(err)

const getLogin = ({ username, password }: URL) => ({
  user: decodeURIComponent(username),
  password: decodeURIComponent(password),
})

const throughSocks = async (proxy: URL, { host, port }: Target, { timeoutMs, signal }: Limit): Promise<Socket> => {
  const { user, password } = getLogin(proxy)
  const type = proxy.protocol.startsWith('socks4') ? 4 : 5
  const resolvesHere = proxy.protocol === 'socks4:' || proxy.protocol === 'socks5:'
  const { socket } = await SocksClient.createConnection({
    command: 'connect',
    proxy: { ...toEndpoint(proxy), type, ...(user && { userId: user }), ...(password && { password }) },
    destination: { host: resolvesHere ? await resolve(host, type) : host, port },
    timeout: timeoutMs,
    set_tcp_nodelay: true,
  })
  if (signal.aborted) socket.destroy() // it came too late
  return socket
}

/** SOCKS 4 does not support IPv6. */
const resolve = async (host: string, type: 4 | 5): Promise<string> =>
  (await lookup(host, { family: type === 4 ? 4 : 0 })).address

const throughHttp = async (proxy: URL, { host, port }: Target, { timeoutMs, signal }: Limit): Promise<Socket> => {
  const socket = dial(proxy)
  const giveUp = () => socket.on('error', () => {}).destroy()
  signal.addEventListener('abort', giveUp, { once: true })
  socket.write(connectRequest(proxy, isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`))
  try {
    const { text, rest } = await readHead(socket, { maxBytes: MAX_HEAD_BYTES, timeoutMs })
    const [, status = 'none'] = /^HTTP\/1\.[01] (\d{3})/.exec(text) ?? []
    if (!status.startsWith('2')) throw new TunnelError(`it answered with status ${status}`)
    if (rest.length > 0) socket.unshift(rest)
    return socket.setNoDelay()
  } catch (err) {
    giveUp()
    throw err
  }
}

const dial = (proxy: URL): Socket => {
  const { host, port } = toEndpoint(proxy)
  if (proxy.protocol === 'http:') return createConnection({ host, port })
  return connectTls({ host, port, ALPNProtocols: ['http/1.1'], ...(!isIP(host) && { servername: host }) })
}

const connectRequest = (proxy: URL, authority: string): string => {
  const { user, password } = getLogin(proxy)
  const login = user || password ? Buffer.from(`${user}:${password}`).toString('base64') : null
  return [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(login ? [`Proxy-Authorization: Basic ${login}`] : []),
    '\r\n',
  ].join('\r\n')
}
