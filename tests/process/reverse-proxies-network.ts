/** The connection from clients to a reverse proxy: a private host name, over TLS, from their own address. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { cert } from './reverse-proxies-certificate.ts'

export const HOST = 'llm.example.com'
export const ORIGIN = `https://${HOST}`
/** Every address of 127.0.0.0/8 is this machine's on Linux; the proxies and Sluice talk from 127.0.0.1. */
export const CLIENT_ADDRESS = '127.0.0.9'

export interface Network extends AsyncDisposable {
  /** Knows only `llm.example.com:443`; for clients that use a proxy. */
  tunnel: string
  fetch(path: string, init?: RequestInit): Promise<Response>
  /** A WebSocket that has opened. Throws with what went wrong. */
  socket(path: string, headers: Record<string, string>): Promise<ClientSocket>
}

interface ClientSocket {
  send(frame: object): void
  /** The next frame, parsed. Throws when the socket ends instead. */
  next(): Promise<{ type: string; [field: string]: unknown }>
  close(): void
}

/** `port` is where the reverse proxy listens. */
export const openNetwork = async (port: number): Promise<Network> => {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    sockets.add(client)
    client.on('error', () => client.destroy())
    client.once('data', (request) => tunnel(client, request.toString('latin1'), port, sockets))
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', () => listening.resolve())
  await listening.promise
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}` // as: it listens on a port
  return {
    tunnel: url,
    // Without keep-alive: a test that is done leaves nothing open to the next.
    fetch: (path, init) => fetch(ORIGIN + path, { ...init, proxy: url, tls: { ca: cert }, keepalive: false }),
    socket: (path, headers) => openSocket(`wss://${HOST}${path}`, url, headers),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      await closed.promise
    },
  }
}

const tunnel = (client: Socket, request: string, port: number, sockets: Set<Socket>): void => {
  if (!request.startsWith(`CONNECT ${HOST}:443 `)) return void client.end('HTTP/1.1 502 Bad Gateway\r\n\r\n')
  const proxy = connect({ host: '127.0.0.1', port, localAddress: CLIENT_ADDRESS }, () => {
    client.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    client.pipe(proxy).pipe(client)
  })
  sockets.add(proxy)
  proxy.on('error', () => client.destroy())
  proxy.on('close', () => client.destroy())
  client.on('close', () => proxy.destroy())
}

const openSocket = async (url: string, proxy: string, headers: Record<string, string>): Promise<ClientSocket> => {
  const frames: string[] = []
  const options = { headers, proxy, tls: { ca: cert } } as unknown as string[] // as: the browser type takes precedence here
  const ws = new WebSocket(url, options)
  let changed = Promise.withResolvers<void>()
  let end: string | null = null
  const change = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  ws.onmessage = ({ data }) => {
    frames.push(String(data))
    change()
  }
  ws.onclose = ({ code, reason }) => {
    end = `The socket was closed with ${code} ${reason}`
    change()
  }
  ws.onopen = change
  while (ws.readyState === WebSocket.CONNECTING) await changed.promise
  if (end !== null) throw new Error(end)
  return {
    send: (frame) => ws.send(JSON.stringify(frame)),
    async next() {
      while (frames.length === 0) {
        if (end !== null) throw new Error(end)
        await changed.promise
      }
      return JSON.parse(frames.shift() ?? '')
    },
    close: () => ws.close(),
  }
}
