/** A stand-in upstream on a port with sockets that a test opens, all closed after each test. */
import { connectSocket, type TestSocket } from '../socket-client.ts'
import { until } from '../until.ts'
import type { Account } from './accounts.ts'
import { createUpstream, type Upstream, type UpstreamOptions } from './app.ts'
import { type Event, getHandshake } from './client.ts'

export const SOCKET_PATH = '/backend-api/codex/responses'

type OpenOptions = { headers?: Record<string, string>; protocols?: string[]; timeoutMs?: number }

type SocketLab = {
  upstream: Upstream
  url: string
  anAccount: () => Account
  open: (account: Account, options?: OpenOptions) => Promise<TestSocket>
  /** For `afterEach`: every socket and stream is closed, the record empty. */
  tidy: () => Promise<void>
}

export function createSocketLab(options: UpstreamOptions): SocketLab {
  const upstream = createUpstream(options)
  const { url } = upstream.listen()
  const opened: TestSocket[] = []
  return {
    upstream,
    url,
    anAccount: () => upstream.addAccount(),
    async open(account, { headers = {}, protocols = [], timeoutMs = 2000 } = {}) {
      const all = { headers: getHandshake(account, headers), protocols, timeoutMs }
      const socket = await connectSocket(`${url}${SOCKET_PATH}`, all)
      opened.push(socket)
      return socket
    },
    async tidy() {
      for (const socket of opened.splice(0)) socket.terminate()
      upstream.closeSockets()
      await until(() => upstream.openSockets === 0 && upstream.openStreams === 0)
      upstream.reset()
    },
  }
}

/** The events of one turn, typed as those of a body are. */
export async function turnOn(socket: TestSocket, frame: Parameters<TestSocket['turn']>[0]): Promise<Event[]> {
  return (await socket.turn(frame)) as Event[] // as: the same objects as in a body
}
