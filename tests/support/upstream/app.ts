/** The stand-in upstream: plays ChatGPT over HTTP and WebSocket, and keeps a record. */
import type { Server } from 'bun'
import { Hono } from 'hono'
import { type Account, type AccountOptions, SimAccounts } from './accounts.ts'
import { type Controls, controlRoutes } from './control.ts'
import { Ledger, type ReceivedHandshake, type ReceivedRequest, type Stats } from './ledger.ts'
import type { LiveCallSocket } from './live-calls.ts'
import { ConnectionReset, resetError } from './refusal.ts'
import type { RelayAnswer } from './relay-routes.ts'
import { type Env, refuse, serviceRoutes } from './routes.ts'
import type { Script } from './script.ts'
import { SignIns } from './sign-ins.ts'
import { type SocketData, Sockets } from './sockets.ts'
import type { Sleep } from './stream.ts'
import { createMint } from './tokens.ts'
import type { World } from './world.ts'

export type UpstreamOptions = {
  /** Ms since epoch. */
  now?: () => number
  sleep?: Sleep
  /** How many requests are remembered, newest last; 1000 by default. */
  keepRequests?: number
}

export type Upstream = {
  /**
   * Replaces the global `fetch`: same arguments, same rejections (`AbortError` or the caller's reason, a TypeError with
   * code ECONNRESET), and the headers Bun's fetch adds on its own when they are not set.
   */
  fetch: (input: string | URL | Request, init?: RequestInit & { decompress?: boolean }) => Promise<Response>
  /** Opens a port on 127.0.0.1, for sockets too; 0 picks a free one. */
  listen: (port?: number) => { url: string; stop: () => Promise<void> }
  addAccount: (options?: AccountOptions) => Account
  /** Requested device codes, and what the users do with them. */
  readonly signIns: SignIns
  readonly accounts: readonly Account[]
  /** A `response.create` of a socket is one of them, with method `WS`. */
  readonly requests: readonly ReceivedRequest[]
  readonly handshakes: readonly ReceivedHandshake[]
  /** What a well-behaved proxy never does; tests end with `expect(upstream.oddities).toEqual([])`. */
  readonly oddities: readonly string[]
  readonly openStreams: number
  readonly openSockets: number
  /** Closes all open sockets; with 1001 by default. */
  closeSockets: (code?: number, reason?: string) => void
  readonly stats: Stats
  /** Decides the answers from now on; returning `null` leaves one to the default. */
  script: (script: Script | null) => void
  /** Decides the answers of relayed routes from now on; returning `null` leaves one to the default. */
  answerRelay: (answer: RelayAnswer | null) => void
  /** WebSockets of live calls, in the order in which they opened. */
  readonly liveSockets: readonly LiveCallSocket[]
  /** Frames that the WebSocket of a live call sends as it opens. */
  liveGreeting: string[]
  /** Plays an upstream that has retired `POST /responses/compact`. */
  compactRetired: boolean
  /** Forgets requests, handshakes, oddities, faults and script; accounts, their tokens and open sockets stay. */
  reset: () => void
}

const KEPT_REQUESTS = 1000
const BUN_DEFAULTS = { 'user-agent': `Bun/${Bun.version}`, accept: '*/*' }
const BUN_ACCEPT_ENCODING = 'gzip, deflate, br, zstd'

export function createUpstream(options: UpstreamOptions = {}): Upstream {
  const world = createWorld(options)
  const reset = () => {
    world.ledger.reset()
    world.script = null
    world.relayAnswer = null
    world.compactRetired = false
    for (const account of world.accounts.list()) account.clearFaults()
  }
  const sockets = new Sockets(world)
  const closeSockets = (code = 1001, reason = '') => sockets.closeAll(code, reason)
  const app = createApp(world, { reset, closeSockets })
  return {
    fetch: (input, init) => fetchInProcess(app, input, init),
    listen: (port = 0) => listen(app, sockets, port),
    addAccount: (account) => world.accounts.add(account),
    script(script) {
      world.script = script
    },
    answerRelay(answer) {
      world.relayAnswer = answer
    },
    reset,
    closeSockets,
    signIns: world.signIns,
    get accounts() {
      return world.accounts.list()
    },
    get requests() {
      return world.ledger.requests
    },
    get handshakes() {
      return world.ledger.handshakes
    },
    get oddities() {
      return world.ledger.oddities
    },
    get openStreams() {
      return world.ledger.openStreams
    },
    get openSockets() {
      return world.ledger.openSockets
    },
    get stats() {
      return world.ledger.stats()
    },
    get liveSockets() {
      return world.liveSockets
    },
    get liveGreeting() {
      return world.liveGreeting
    },
    set liveGreeting(frames) {
      world.liveGreeting = frames
    },
    get compactRetired() {
      return world.compactRetired
    },
    set compactRetired(retired) {
      world.compactRetired = retired
    },
  }
}

function createWorld({ now = Date.now, sleep = realSleep, keepRequests = KEPT_REQUESTS }: UpstreamOptions): World {
  const mint = createMint()
  const ledger = new Ledger(keepRequests)
  return {
    now,
    sleep,
    mint,
    accounts: new SimAccounts(now, mint),
    ledger,
    signIns: new SignIns({ now, mint, ledger }),
    script: null,
    relayAnswer: null,
    compactRetired: false,
    liveCalls: new Map(),
    liveSockets: [],
    liveGreeting: [],
    replays: new WeakMap(),
    socketReplays: new WeakMap(),
  }
}

function createApp(world: World, controls: Controls): Hono<Env> {
  const app = new Hono<Env>()
  app.route('/_sim', controlRoutes(world, controls))
  app.route('/', serviceRoutes(world))
  app.onError((error, c) => refuse(error, c, world))
  app.notFound((c) => c.json({ detail: 'Not Found' }, 404))
  return app
}

async function fetchInProcess(app: Hono<Env>, ...[input, init]: Parameters<Upstream['fetch']>): Promise<Response> {
  const request = new Request(input, init)
  request.signal.throwIfAborted()
  for (const [name, value] of Object.entries(BUN_DEFAULTS))
    if (!request.headers.has(name)) request.headers.set(name, value)
  if (!request.headers.has('accept-encoding') && init?.decompress !== false)
    request.headers.set('accept-encoding', BUN_ACCEPT_ENCODING)
  try {
    return await app.fetch(request, { overSocket: false })
  } catch (error) {
    throw error instanceof ConnectionReset ? resetError() : error
  }
}

function listen(app: Hono<Env>, sockets: Sockets, port: number): { url: string; stop: () => Promise<void> } {
  const server: Server<SocketData> = Bun.serve<SocketData>({
    port,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    maxRequestBodySize: 1024 ** 3,
    fetch: (request) =>
      sockets.wants(request) ? sockets.shake(request, server) : app.fetch(request, { overSocket: true }),
    websocket: sockets.handler(() => server),
    error: breakConnection,
  })
  const stop = () => {
    sockets.closeAll(1001, '', server)
    return server.stop(true)
  }
  return { url: server.url.origin, stop }
}

/** A body that fails before its first byte makes Bun.serve reset the connection without sending headers (Bun 1.4.5). */
function breakConnection(error: Error): Response {
  const isExpected = error instanceof ConnectionReset || error.name === 'AbortError'
  if (!isExpected) console.error('stand-in upstream:', error)
  return new Response(new ReadableStream({ start: (controller) => controller.error(undefined) }))
}

function realSleep(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener('abort', () => {
    clearTimeout(timer)
    resolve()
  })
  return promise
}
