/** The other end of an upstream socket: a real server in the test, which answers each frame as the test specifies. */
import { createServer, type Socket } from 'node:net'
import type { ServerWebSocket } from 'bun'
import { systemClock } from '../../src/lib/clock.ts'
import { openSocket, type SocketRequest, type UpstreamSocket } from '../../src/upstream/socket.ts'
import type { UpstreamStream } from '../../src/upstream/stream.ts'

type Client = ServerWebSocket<undefined>

export const startPeer = (answer: (client: Client, text: string) => void = () => {}) => {
  const seen = { handshakes: [] as Headers[], frames: [] as string[], closes: [] as number[], pings: 0 }
  const clients: Client[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, { upgrade }) => {
      seen.handshakes.push(request.headers)
      if (upgrade.call(server, request, { headers: { 'x-codex-turn-state': 'kept', 'openai-model': 'm' } })) return
      return new Response('no upgrade', { status: 400 })
    },
    websocket: {
      idleTimeout: 0,
      backpressureLimit: 1024 ** 3,
      open: (client) => void clients.push(client),
      message: (client: Client, frame) => {
        const text = typeof frame === 'string' ? frame : `binary ${frame.length}`
        seen.frames.push(text)
        answer(client, text)
      },
      close: (_, code) => void seen.closes.push(code),
      ping: () => void seen.pings++,
    },
  })
  return {
    url: `ws://127.0.0.1:${server.port}/responses`,
    seen,
    clients,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

/** A TCP server that does what the test specifies with each connection once it has sent something. */
export const startRaw = async (onRequest: (connection: Socket, request: string) => void) => {
  const connections = new Set<Socket>()
  const server = createServer((connection) => {
    connections.add(connection)
    connection.on('error', () => {})
    connection.once('data', (data) => onRequest(connection, data.toString()))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return {
    url: `ws://127.0.0.1:${port}/`,
    connections,
    [Symbol.dispose]: () => {
      for (const connection of connections) connection.destroy()
      server.close()
    },
  }
}

/** The `101` to a handshake, written by hand. */
export const acceptance = (request: string, headers = ''): string => {
  const key = /sec-websocket-key: (\S+)/i.exec(request)?.[1] ?? ''
  const accept = new Bun.CryptoHasher('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  return `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n${headers}\r\n`
}

export const connectTo = (url: string, request: Partial<SocketRequest> = {}): Promise<UpstreamSocket> =>
  openSocket({
    url,
    headers: { authorization: 'Bearer t' },
    agent: undefined,
    clock: systemClock,
    timeoutMs: 5000,
    signal: new AbortController().signal,
    ...request,
  })

/** Everything the stream still gives, as texts. */
export const rest = async (stream: UpstreamStream): Promise<(string | null)[]> => {
  const texts: (string | null)[] = []
  for (let batch = await stream.read(); batch; batch = await stream.read()) texts.push(...batch.map(({ data }) => data))
  return texts
}

/** The same for a stream that rejects at the end, with its rejection; null if it does not. */
export const collectTexts = async (stream: UpstreamStream): Promise<{ texts: (string | null)[]; error: unknown }> => {
  const texts: (string | null)[] = []
  try {
    for (let batch = await stream.read(); batch; batch = await stream.read())
      texts.push(...batch.map(({ data }) => data))
  } catch (error) {
    return { texts, error }
  }
  return { texts, error: null }
}

export const DELTA = '{"type":"response.output_text.delta","delta":"a"}'
export const COMPLETED = '{"type":"response.completed","response":{"id":"resp_1"}}'
