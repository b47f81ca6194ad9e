/**
 * Live calls of the stand-in upstream: the response to an offer, and the WebSocket of the call. Its rejections are
 * assumed.
 */
import type { ServerWebSocket } from 'bun'
import type { Account } from './accounts.ts'
import type { ReceivedHandshake } from './ledger.ts'
import { authenticate, getRouteName } from './received.ts'
import { apiError } from './refusal.ts'
import type { RelayCall, RelayRoute } from './relay-routes.ts'
import type { World } from './world.ts'

export const ANSWER_SDP = 'v=0\r\no=- 2 2 IN IP4 127.0.0.1\r\ns=answer\r\n'
const SIDEBAND = /^\/v1\/(live\/[^/]+|realtime)$/
/** Headers of the client and ours; a larger set is rejected. */
const ALLOWED = new Set([
  'authorization',
  'chatgpt-account-id',
  'openai-alpha',
  'openai-beta',
  'x-session-id',
  'session-id',
  'thread-id',
  'originator',
  'x-oai-attestation',
  'user-agent',
  'host',
  'connection',
  'upgrade',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
])

export const LIVE_ROUTES: readonly RelayRoute[] = ['codex/realtime/calls', 'codex/live'].map((path) => ({
  method: 'POST',
  path,
  fault: 'live',
  headers: 'any',
  answer: createCall,
}))

function createCall({ received, account, world }: RelayCall): Response {
  if (received.search.includes('sk-clb-') || 'call_id' in received.query)
    world.ledger.odd(`${getRouteName(received)}: the query has a client API key or a call id`)
  if (received.bodyText === '') throw apiError(400, 'invalid_offer', 'An offer is needed')
  const callId = world.mint('rtc')
  world.liveCalls.set(callId, account)
  const headers = { location: `/v1/realtime/calls/${callId}`, 'content-type': 'application/sdp', 'set-cookie': 'a=b' }
  return new Response(ANSWER_SDP, { status: 201, headers })
}

export const isSideband = (path: string): boolean => SIDEBAND.test(path)

/** The account of the call; throws the error. */
export function joinCall(handshake: ReceivedHandshake, world: World): Account {
  const { accounts, ledger, liveCalls } = world
  for (const name of Object.keys(handshake.headers))
    if (!ALLOWED.has(name)) ledger.odd(`${getRouteName(handshake)}: the header ${name} came with a live call`)
  if (handshake.headers['openai-beta']?.includes('responses_websockets'))
    ledger.odd(`${getRouteName(handshake)}: a live call came with the beta of Responses sockets`)
  const account = authenticate(handshake, accounts, ledger)
  const url = new URL(handshake.url)
  const callId = url.searchParams.get('call_id') ?? url.pathname.split('/').at(-1) ?? ''
  const owner = liveCalls.get(callId)
  if (owner !== account) {
    if (owner) ledger.odd(`${getRouteName(handshake)}: ${account.email} came to a call of ${owner.email}`)
    throw apiError(404, 'call_not_found', `There is no call ${callId}.`)
  }
  return account
}

/** An open WebSocket of a call. A test specifies what it sends and when it closes. */
export class LiveCallSocket {
  readonly handshake: ReceivedHandshake
  readonly received: (string | Buffer)[] = []
  readonly #world: World
  #socket: ServerWebSocket<unknown> | null = null
  #forget = () => {}
  #changed = Promise.withResolvers<void>()

  constructor(world: World, handshake: ReceivedHandshake) {
    this.#world = world
    this.handshake = handshake
  }

  opened(socket: ServerWebSocket<unknown>): void {
    this.#socket = socket
    this.#forget = this.#world.ledger.openSocket()
    this.#world.liveSockets.push(this)
    for (const frame of this.#world.liveGreeting) socket.send(frame)
  }

  drained(): void {}

  async receive(message: string | Buffer): Promise<void> {
    this.received.push(message)
    this.#change()
  }

  closed(code: number, reason: string): void {
    this.handshake.closed = { code, reason }
    this.#forget()
    this.#change()
  }

  send(frame: string | Uint8Array<ArrayBuffer>): number {
    return this.#socket?.send(frame) ?? 0
  }

  get bufferedBytes(): number {
    return this.#socket?.getBufferedAmount() ?? 0
  }

  pause(): void {
    this.#socket?.pause()
  }

  resume(): void {
    this.#socket?.resume()
  }

  close(code: number, reason: string): void {
    this.#socket?.resume()
    this.#socket?.close(code, reason)
  }

  terminate(): void {
    this.#socket?.terminate()
  }

  /** Resolves as soon as it holds. */
  async until(holds: (socket: LiveCallSocket) => boolean): Promise<void> {
    while (!holds(this)) await this.#changed.promise
  }

  #change(): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}
