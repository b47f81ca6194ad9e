/** The WebSocket side of the stand-in upstream: checks handshakes, opens sessions and can end them all. */
import type { Server, ServerWebSocket, WebSocketHandler } from 'bun'
import { answerHeaders } from './answer-headers.ts'
import type { ReceivedHandshake } from './ledger.ts'
import { isSideband, joinCall, LiveCallSocket } from './live-calls.ts'
import { headerOddities } from './oddities.ts'
import { authenticate, getRouteName } from './received.ts'
import { detail, Refusal } from './refusal.ts'
import { SocketSession, type Socket as TurnSocket } from './socket-session.ts'
import { rateHeaders } from './usage.ts'
import { applyEarlyFault, type World } from './world.ts'

const PATH = '/backend-api/codex/responses'
const BETA = 'responses_websockets=2026-02-06'
/** ChatGPT's limit for one frame. */
const FRAME_LIMIT_BYTES = 16 * 1024 * 1024

export type SocketData = SocketSession | LiveCallSocket
type Socket = ServerWebSocket<SocketData>
type SocketServer = Server<SocketData>

export class Sockets {
  readonly #world: World
  readonly #open = new Map<Socket, SocketServer>()
  #handshakes = 0

  constructor(world: World) {
    this.#world = world
  }

  /** For `Bun.serve`. A larger frame closes with 1009; nothing is ever dropped, the sessions wait for their peer. */
  handler(server: () => SocketServer): WebSocketHandler<SocketData> {
    return {
      maxPayloadLength: FRAME_LIMIT_BYTES,
      backpressureLimit: 0,
      idleTimeout: 0,
      open: (socket) => {
        this.#open.set(socket, server())
        socket.data.opened(socket as TurnSocket) // as: a live call takes any
      },
      message: (socket, message) => socket.data.receive(message).catch((error) => breakSocket(socket, error)),
      drain: (socket) => socket.data.drained(),
      close: (socket, code, reason) => {
        this.#open.delete(socket)
        socket.data.closed(code, reason)
      },
      error: (error, socket) => breakSocket(socket, error),
    }
  }

  /** Whether a request wants a socket; all others are for the routes. */
  wants(request: Request): boolean {
    const isUpgrade = request.headers.get('upgrade')?.toLowerCase() === 'websocket'
    const { pathname } = new URL(request.url)
    return isUpgrade && request.method === 'GET' && (pathname === PATH || isSideband(pathname))
  }

  /** Upgrades the request, or returns the rejection; throws when the connection is to break. */
  async shake(request: Request, server: SocketServer): Promise<Response | undefined> {
    const handshake = this.#receive(request)
    try {
      return await this.#accept(request, server, handshake)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      handshake.status = error.status
      const account = this.#world.accounts.byId(handshake.account ?? '')
      const rates = account ? rateHeaders(account, this.#world.now()) : {}
      return error.toResponse({ ...rates, 'x-request-id': this.#world.mint('req') })
    }
  }

  /** Closes every open socket, or those of one server. */
  closeAll(code: number, reason: string, of?: SocketServer): void {
    for (const [socket, server] of Array.from(this.#open))
      if (of === undefined || of === server) socket.data.close(code, reason)
  }

  #receive(request: Request): ReceivedHandshake {
    const { ledger, now } = this.#world
    this.#handshakes += 1
    const headers = Object.fromEntries(request.headers)
    const handshake: ReceivedHandshake = {
      at: now(),
      method: 'WS',
      path: new URL(request.url).pathname,
      url: request.url,
      connection: this.#handshakes,
      account: null,
      headers,
      status: null,
      aborted: false,
      closed: null,
    }
    ledger.receiveHandshake(handshake)
    const kind = isSideband(handshake.path) ? 'sideband' : 'handshake'
    for (const sentence of headerOddities(getRouteName(handshake), headers, kind)) ledger.odd(sentence)
    return handshake
  }

  async #accept(request: Request, server: SocketServer, handshake: ReceivedHandshake): Promise<Response | undefined> {
    const { accounts, ledger, mint } = this.#world
    if (isSideband(handshake.path)) return this.#acceptLive(request, server, handshake)
    const account = authenticate(handshake, accounts, ledger)
    const betas = (handshake.headers['openai-beta'] ?? '').split(',').map((beta) => beta.trim())
    if (!betas.includes(BETA)) throw detail(400, `The openai-beta header must contain ${BETA}`)
    const fault = account.takeFault('handshake')
    await applyEarlyFault(fault, this.#world, { signal: request.signal, record: handshake })
    const headers = { 'x-request-id': mint('req'), ...answerHeaders(handshake, account, this.#world) }
    handshake.status = 101
    const data = new SocketSession(this.#world, account, handshake, fault)
    if (server.upgrade(request, { data, headers })) return undefined
    throw detail(400, 'The upgrade failed')
  }

  async #acceptLive(
    request: Request,
    server: SocketServer,
    handshake: ReceivedHandshake,
  ): Promise<Response | undefined> {
    const account = joinCall(handshake, this.#world)
    const fault = account.takeFault('handshake')
    await applyEarlyFault(fault, this.#world, { signal: request.signal, record: handshake })
    handshake.status = 101
    const data = new LiveCallSocket(this.#world, handshake)
    if (server.upgrade(request, { data, headers: fault?.headers ?? {} })) return undefined
    throw detail(400, 'The upgrade failed')
  }
}

function breakSocket(socket: Socket, error: Error): void {
  console.error('stand-in upstream:', error)
  socket.terminate()
}
