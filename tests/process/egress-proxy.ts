/** An HTTP proxy that requires credentials, resolves one private host name, and records its connections. */
import { createServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'

export const USER = 'egress'
export const PASSWORD = 'p@ss:word'
/** Only the proxy can resolve it, so nothing that reaches it can have connected directly. */
export const HIDDEN_HOST = 'hidden-upstream.test'

interface EgressProxy extends AsyncDisposable {
  /** With the credentials in it. */
  url: string
  /** `CONNECT host:port` and `POST http://host/path`, in the order of arrival. */
  passed: string[]
  /** Requests that came without the right credentials. */
  refused: number
}

/** `targetPort` is where requests for the hidden host go; with `tls` tunnels end there behind TLS. */
export const startEgressProxy = async (
  targetPort: number,
  tls: { key: string; cert: string } | null = null,
): Promise<EgressProxy> => {
  const wanted = `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString('base64')}`
  const sockets = new Set<Socket>()
  const seen = { passed: [] as string[], refused: 0 }
  const isAllowed = (incoming: IncomingMessage): boolean => {
    const isRight = incoming.headers['proxy-authorization'] === wanted
    if (!isRight) seen.refused++
    return isRight
  }
  const terminator = tls && (await terminateTls(tls, targetPort, sockets))
  const server = createServer((incoming, outgoing) => {
    if (!isAllowed(incoming)) return void outgoing.writeHead(407).end()
    const url = new URL(incoming.url ?? '')
    seen.passed.push(`${incoming.method} ${url.origin}${url.pathname}`)
    const { 'proxy-authorization': _, 'proxy-connection': __, ...headers } = incoming.headers
    const options = {
      port: targetPort,
      host: '127.0.0.1',
      method: incoming.method,
      path: url.pathname + url.search,
      headers,
    }
    const forwarded = request(options, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  server.on('connect', (incoming, socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    if (!isAllowed(incoming)) return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
    seen.passed.push(`CONNECT ${incoming.url}`)
    const target = connect(terminator?.port ?? targetPort, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      target.pipe(socket).pipe(target)
    })
    sockets.add(target)
    target.on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo // as: it listens on a port
  return {
    url: `http://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`,
    passed: seen.passed,
    get refused() {
      return seen.refused
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      server.close()
      terminator?.close()
    },
  }
}

export const terminateTls = async (tls: { key: string; cert: string }, targetPort: number, sockets: Set<Socket>) => {
  const server = createTlsServer(tls, (socket) => {
    const target = connect(targetPort, '127.0.0.1')
    sockets.add(socket).add(target)
    socket.on('error', () => target.destroy())
    target.on('error', () => socket.destroy())
    socket.pipe(target).pipe(socket)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => server.close() } // as: it listens on a port
}
