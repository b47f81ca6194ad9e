/** A downstream socket without a connection and with a manual clock, for tests of long timeouts. */
import type { Client } from '../../src/auth/client-key.ts'
import { contractOptions } from '../../src/proxy/downstream/contracts.ts'
import { nativeFrames, publicFrames } from '../../src/proxy/downstream/frame-contract.ts'
import { SocketSession } from '../../src/proxy/downstream/socket-session.ts'
import type { TestApp } from '../support/app.ts'
import type { Closed, SocketEvent } from '../support/socket-client.ts'
import { NATIVE, PUBLIC } from './ground.ts'

export interface FakeSocket {
  session: SocketSession
  /** Everything that was taken. */
  frames: SocketEvent[]
  pings: number
  /** In the middle of a frame, a client cannot answer a ping before that frame has come. */
  isUploading: boolean
  /** The result of `send` from now on: sent, queued and sent immediately, queued, or dropped. */
  takes: 'all' | 'flushes' | 'queues' | 'drops'
  /** How many frames more are taken until the client reads. */
  room: number
  closed: Closed | null
  isTerminated: boolean
  say: (frame: Record<string, unknown>) => void
  /** The client reads again. */
  reads: () => void
}

/** An open session of the app, as the server would have created it. */
export const createFakeSocket = (app: TestApp, { isNative = true } = {}): FakeSocket => {
  const { bindings: env } = app
  const session = new SocketSession({
    env,
    headers: new Headers(),
    route: isNative ? NATIVE : PUBLIC,
    isNative,
    isRestricted: false,
    authRequest: {
      authorization: null,
      capability: null,
      isLocal: () => true,
      ip: '127.0.0.1',
      peer: '127.0.0.1',
      unauthenticatedCidrs: [],
      keys: env.keys,
      need: 'optional',
    },
    peer: null,
    leave: () => {},
    contract: (client: Client, model: string | null) =>
      (isNative ? nativeFrames : publicFrames)(contractOptions(env, client, model)),
  })
  const pretended: FakeSocket = {
    session,
    frames: [],
    pings: 0,
    isUploading: false,
    takes: 'all',
    room: Number.POSITIVE_INFINITY,
    closed: null,
    isTerminated: false,
    say: (frame) => session.received(JSON.stringify(frame)),
    reads() {
      pretended.takes = 'all'
      session.drained()
    },
  }
  session.opened(getSocket(pretended))
  return pretended
}

/** The part of the runtime's socket that sessions use. */
const getSocket = (pretended: FakeSocket): Bun.ServerWebSocket<SocketSession> => {
  const socket: Partial<Bun.ServerWebSocket<SocketSession>> = {
    cork: (write) => write(socket as Bun.ServerWebSocket<SocketSession>), // as: below
    send: (text) => {
      if (pretended.takes === 'drops' || pretended.room === 0) return 0
      pretended.room--
      pretended.frames.push(JSON.parse(String(text)))
      return pretended.takes === 'all' ? String(text).length : -1
    },
    getBufferedAmount: () => (pretended.takes === 'queues' ? 1 : 0),
    ping: () => {
      if (!pretended.isUploading) pretended.session.ponged(0)
      return ++pretended.pings
    },
    close: (code = 1005, reason = '') => {
      pretended.closed ??= { code, reason }
    },
    terminate: () => {
      pretended.isTerminated = true
    },
  }
  return socket as Bun.ServerWebSocket<SocketSession> // as: nothing else is used
}
