/** A port that stays open while the server behind it restarts, and counts connections. */
import { connect, createServer, type Socket } from 'node:net'

/** One TCP connection of a client. */
interface Visit {
  /** `GET /path` of the first request on it. */
  request: string
  isUpgrade: boolean
  /** Status of the first response; `null` until it arrived. */
  status: number | null
  isOpen: boolean
}

export interface StablePort {
  /** Origin, without a trailing slash. */
  url: string
  /** Oldest first. */
  readonly visits: readonly Visit[]
  stop(): Promise<void>
}

/** `port` is called for each connection. If nothing listens there, the connection is dropped. */
export async function openStablePort(port: () => number): Promise<StablePort> {
  const visits: Visit[] = []
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (visitor) => {
    const visit: Visit = { request: '', isUpgrade: false, status: null, isOpen: true }
    const host = connect({ host: '127.0.0.1', port: port(), allowHalfOpen: true })
    visitor.once('data', (bytes) => noteRequest(visit, bytes.toString('latin1')))
    host.once('data', (bytes) => {
      visit.status = Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1] ?? 0)
    })
    visitor.once('close', () => {
      visit.isOpen = false
    })
    visits.push(visit)
    for (const socket of [visitor, host]) sockets.add(socket)
    join(visitor, host, sockets)
    join(host, visitor, sockets)
  })
  const listening = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', () => listening.resolve())
  await listening.promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The door has no port.')
  return {
    url: `http://127.0.0.1:${address.port}`,
    visits,
    async stop() {
      for (const socket of sockets) socket.destroy()
      const closed = Promise.withResolvers<void>()
      server.close(() => closed.resolve())
      await closed.promise
    },
  }
}

function noteRequest(visit: Visit, text: string): void {
  visit.request = /^[A-Z]+ [^ ?]+/.exec(text)?.[0] ?? ''
  visit.isUpgrade = /^upgrade: *websocket\r$/im.test(text)
}

/** Passes on what comes, and an end or a break of one side to the other. */
function join(from: Socket, to: Socket, sockets: Set<Socket>): void {
  from.pipe(to)
  from.on('error', () => to.destroy())
  from.on('close', () => {
    sockets.delete(from)
    to.destroySoon()
  })
}
