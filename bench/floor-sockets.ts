/** The floor for sockets: the minimum of a pass-through on this Bun. One `ws` upstream per client, frames unchanged. */
import WebSocket from 'ws'

const upstream = (process.env.BENCH_UPSTREAM_URL ?? 'http://127.0.0.1:9').replace(/^http/, 'ws')
const handshakeOnly = /^(connection|upgrade|host|sec-websocket-.*)$/

type Session = { path: string; headers: Record<string, string>; peer: WebSocket | null; early: (string | Buffer)[] }

const server = Bun.serve<Session>({
  hostname: '127.0.0.1',
  port: Number(process.env.PORT ?? 0),
  development: false,
  fetch(request, self) {
    const path = request.url.slice(request.url.indexOf('/', 8))
    const headers = Object.fromEntries([...request.headers].filter(([name]) => !handshakeOnly.test(name)))
    return self.upgrade(request, { data: { path, headers, peer: null, early: [] } }) ? undefined : new Response('ready')
  },
  websocket: {
    maxPayloadLength: 128 * 1024 * 1024,
    idleTimeout: 120,
    perMessageDeflate: false,
    open(client) {
      const { path, headers, early } = client.data
      const peer = new WebSocket(upstream + path, { headers, perMessageDeflate: false })
      client.data.peer = peer
      peer.on('open', () => {
        for (const frame of early.splice(0)) peer.send(frame, { binary: false })
      })
      peer.on('message', (data: Buffer, isBinary: boolean) => client.send(isBinary ? data : data.toString()))
      peer.on('close', () => client.close())
      peer.on('error', () => client.terminate())
    },
    message(client, frame) {
      const { peer, early } = client.data
      if (peer?.readyState === WebSocket.OPEN) peer.send(frame, { binary: false })
      else early.push(frame)
    },
    close: (client) => client.data.peer?.terminate(),
  },
})
console.log(JSON.stringify({ port: server.port }))
