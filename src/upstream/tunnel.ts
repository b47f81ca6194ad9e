/** Raw connections through a proxy: HTTP CONNECT over TCP or TLS, and SOCKS 4, 4a and 5. The caller chooses the proxy. */
import { lookup } from 'node:dns/promises'
import { createConnection, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { SocksClient } from 'socks'
import { endpointOf, type Target } from './endpoint.ts'
import { readHead } from './http-head.ts'

/** The proxy was unreachable or could not reach the target. `code` is the same as fetch's. */
export class TunnelError extends Error {
  override readonly name = 'TunnelError'
  readonly code = 'ERR_PROXY_TUNNEL'

  constructor(why: string) {
    super(`The outbound proxy did not connect: ${why}`)
  }
}

/** For reaching the proxy and its answer. */
const TUNNEL_MS = 30_000
const MAX_HEAD_BYTES = 16 * 1024

/**
 * A paused connection to `target` through `proxy`, which may contain percent-encoded credentials. The proxy resolves
 * names, except for `socks4:` and `socks5:`. Rejects with `TunnelError` within 30 s; never connects directly.
 */
export const openTunnel = async (proxy: string, target: Target): Promise<Socket> => {
  const url = new URL(proxy)
  try {
    const socket = await (url.protocol.startsWith('socks') ? throughSocks(url, target) : throughHttp(url, target))
    return socket.on('error', () => {}) // an error before anyone listens must not end the process
  } catch (err) {
    // Not as the cause: the errors of `socks` contain the credentials.
    throw err instanceof TunnelError ? err : new TunnelError(err instanceof Error ? err.message : String(err))
  }
}

const loginOf = ({ username, password }: URL) => ({
  user: decodeURIComponent(username),
  password: decodeURIComponent(password),
})

const throughSocks = async (proxy: URL, { host, port }: Target): Promise<Socket> => {
  const { user, password } = loginOf(proxy)
  const type = proxy.protocol.startsWith('socks4') ? 4 : 5
  const resolvesHere = proxy.protocol === 'socks4:' || proxy.protocol === 'socks5:'
  const { socket } = await SocksClient.createConnection({
    command: 'connect',
    proxy: { ...endpointOf(proxy), type, ...(user && { userId: user }), ...(password && { password }) },
    destination: { host: resolvesHere ? await resolve(host, type) : host, port },
    timeout: TUNNEL_MS,
    set_tcp_nodelay: true,
  })
  return socket
}

/** SOCKS 4 does not support IPv6. */
const resolve = async (host: string, type: 4 | 5): Promise<string> =>
  (await lookup(host, { family: type === 4 ? 4 : 0 })).address

const throughHttp = async (proxy: URL, { host, port }: Target): Promise<Socket> => {
  const socket = dial(proxy)
  socket.write(connectRequest(proxy, isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`))
  try {
    const { text, rest } = await readHead(socket, { maxBytes: MAX_HEAD_BYTES, timeoutMs: TUNNEL_MS })
    const [, status = 'none'] = /^HTTP\/1\.[01] (\d{3})/.exec(text) ?? []
    if (!status.startsWith('2')) throw new TunnelError(`it answered with status ${status}`)
    if (rest.length > 0) socket.unshift(rest)
    return socket.setNoDelay()
  } catch (err) {
    socket.on('error', () => {}).destroy() // ignore further errors
    throw err
  }
}

const dial = (proxy: URL): Socket => {
  const { host, port } = endpointOf(proxy)
  if (proxy.protocol === 'http:') return createConnection({ host, port })
  return connectTls({ host, port, ALPNProtocols: ['http/1.1'], ...(!isIP(host) && { servername: host }) })
}

const connectRequest = (proxy: URL, authority: string): string => {
  const { user, password } = loginOf(proxy)
  const login = user || password ? Buffer.from(`${user}:${password}`).toString('base64') : null
  return [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(login ? [`Proxy-Authorization: Basic ${login}`] : []),
    '\r\n',
  ].join('\r\n')
}
