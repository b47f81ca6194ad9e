/**
 * The benchmark's upstream: a raw TCP server that costs as little as possible, so that the proxy dominates the
 * measurement. It checks nothing and is no model of ChatGPT; the strict stand-in is in tests/support/upstream.
 */
import type { Socket } from 'bun'
import { answerEvents, BENCH_MODEL, deltaEvent, RESPONSES_PATH } from './payload.ts'
import { acceptance, openSession, type SocketSession } from './upstream-sockets.ts'

/** How the next responses are written; set with `POST /bench/mode` and a JSON body. */
export type UpstreamMode =
  | { kind: 'burst'; groups: number }
  | { kind: 'slow'; intervalMs: number; events: number }
  | { kind: 'large'; bytes: number }
  /** Sockets only: more than the buffers of a peer that stopped reading, then closes the connection. */
  | { kind: 'flood'; bytes: number; dropAfterMs: number }

/**
 * The response of `GET /bench/stats`. `tickLagMs` is the worst lateness of the upstream's own timer since the previous
 * call.
 */
export type UpstreamStats = {
  /** Open connections that carried a turn. The jobs of each minute keep some connections of their own for a while. */
  turnSockets: number
  openStreams: number
  /** WebSockets included in it. */
  openSessions: number
  requests: number
  largeBytesWritten: number
  tickLagMs: number
}

type Connection = {
  headers: string
  bodyLeft: number
  chunkedTail: string | null
  backlog: Uint8Array[]
  slow: SlowStream | null
  largeLeft: number
  session: SocketSession | null
  hasTurn: boolean
}
type SlowStream = { next: number; last: number }

const TICK_MS = 10
const events = answerEvents('resp_bench')
const eventChunks = events.map(httpChunk)
const endOfBody = new TextEncoder().encode('0\r\n\r\n')
const largeBlock = Buffer.concat(Array.from({ length: 280 }, (_, n) => httpChunk(deltaEvent(n + 10))))
const streamHead = new TextEncoder().encode(streamHeaders())
const delta = eventChunks[10] ?? new Uint8Array()
const tail = Buffer.concat([...eventChunks.slice(-4), endOfBody])

let mode: UpstreamMode = { kind: 'burst', groups: 10 }
let burst = burstParts(10)
const stats: UpstreamStats = {
  turnSockets: 0,
  openStreams: 0,
  openSessions: 0,
  requests: 0,
  largeBytesWritten: 0,
  tickLagMs: 0,
}
let wheel: Set<Socket<Connection>>[] = []
let slot = 0
let lastTick = performance.now()

const server = Bun.listen<Connection>({
  hostname: '127.0.0.1',
  port: Number(process.env.BENCH_UPSTREAM_PORT ?? 0),
  socket: {
    open(socket) {
      socket.data = {
        headers: '',
        bodyLeft: 0,
        chunkedTail: null,
        backlog: [],
        slow: null,
        largeLeft: 0,
        session: null,
        hasTurn: false,
      }
      socket.setNoDelay(true)
    },
    data: (socket, bytes) => receive(socket, bytes),
    drain: (socket) => flush(socket),
    close: (socket) => forget(socket),
    error: () => {},
  },
})
setInterval(tick, TICK_MS)
console.log(JSON.stringify({ port: server.port }))

/** Reads one request (no pipelining): header block, then `content-length` bytes or chunks up to the last one. */
function receive(socket: Socket<Connection>, bytes: Buffer): void {
  const state = socket.data
  if (state.session) {
    state.session.push(bytes)
    return
  }
  if (state.bodyLeft > 0) {
    state.bodyLeft -= bytes.length
    if (state.bodyLeft <= 0) answer(socket, bytes.toString('latin1'))
    return
  }
  if (state.chunkedTail !== null) {
    state.chunkedTail = (state.chunkedTail + bytes.toString('latin1', Math.max(0, bytes.length - 5))).slice(-5)
    if (state.chunkedTail === '0\r\n\r\n') answer(socket, '')
    return
  }
  const end = bytes.indexOf('\r\n\r\n')
  state.headers += bytes.toString('latin1', 0, end === -1 ? bytes.length : end)
  if (end === -1) return
  const rest = bytes.subarray(end + 4)
  const length = /\r\ncontent-length: *(\d+)/i.exec(state.headers)
  if (length) {
    state.bodyLeft = Number(length[1]) - rest.length
    if (state.bodyLeft <= 0) answer(socket, rest.toString('latin1'))
  } else if (/\r\ntransfer-encoding: *chunked/i.test(state.headers)) {
    state.chunkedTail = rest.toString('latin1', Math.max(0, rest.length - 5))
    if (state.chunkedTail === '0\r\n\r\n') answer(socket, '')
  } else answer(socket, '')
}

function answer(socket: Socket<Connection>, body: string): void {
  const state = socket.data
  const { headers } = state
  const requestLine = headers.slice(0, headers.indexOf('\r\n'))
  state.headers = ''
  state.bodyLeft = 0
  state.chunkedTail = null
  const path = (requestLine.split(' ')[1] ?? '').split('?')[0] ?? ''
  if (path === RESPONSES_PATH) {
    if (!state.hasTurn) stats.turnSockets += 1
    state.hasTurn = true
    if (/\r\nupgrade: *websocket/i.test(headers)) upgrade(socket, headers)
    else answerTurn(socket)
    return
  }
  const value = answerJson(path, body)
  const text = JSON.stringify(value ?? { error: { message: `nothing here: ${requestLine}` } })
  const head = `HTTP/1.1 ${value ? '200 OK' : '404 Not Found'}\r\ncontent-type: application/json\r\netag: "bench"`
  send(socket, Buffer.from(`${head}\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`))
}

function upgrade(socket: Socket<Connection>, headers: string): void {
  send(socket, acceptance(headers, rateHeaders()))
  const wire = {
    send: (bytes: Uint8Array) => send(socket, bytes),
    drop: () => socket.terminate(),
    end: () => socket.end(),
  }
  const onTurn = () => {
    stats.requests += 1
  }
  stats.openSessions += 1
  socket.data.session = openSession(wire, () => mode, onTurn)
}

function answerJson(path: string, body: string): unknown {
  if (path === '/backend-api/codex/models') return { models: [model] }
  if (path === '/backend-api/wham/usage') return usage()
  if (path === '/oauth/token') return tokens()
  if (path === '/bench/stats') return { ...stats, tickLagMs: takeTickLag() }
  if (path === '/bench/mode') return setMode(JSON.parse(body) as UpstreamMode) // only the benchmark's own runner calls this
  return null
}

function answerTurn(socket: Socket<Connection>): void {
  stats.requests += 1
  if (mode.kind === 'burst') {
    writeBurst(socket, 0)
    return
  }
  stats.openStreams += 1
  if (mode.kind === 'large') {
    stats.largeBytesWritten = 0
    socket.data.largeLeft = mode.bytes
    send(socket, Buffer.concat([streamHead, ...eventChunks.slice(0, 10)]))
    flush(socket)
    return
  }
  socket.data.slow = { next: 3, last: mode.kind === 'slow' ? mode.events : 0 }
  send(socket, Buffer.concat([streamHead, ...eventChunks.slice(0, 4)]))
  const bucket = wheel[stats.requests % wheel.length]
  bucket?.add(socket)
}

/**
 * Writes part `n` now and the next in the following loop iteration, so that the proxy has several reads per response.
 */
function writeBurst(socket: Socket<Connection>, n: number): void {
  const part = burst[n]
  if (!part) return
  send(socket, part)
  if (n + 1 < burst.length) setImmediate(writeBurst, socket, n + 1)
}

function burstParts(groups: number): Uint8Array[] {
  const size = Math.ceil(eventChunks.length / groups)
  const parts = Array.from({ length: groups }, (_, n) => eventChunks.slice(n * size, (n + 1) * size))
  return parts.map((chunks, n) => {
    const last = n === groups - 1 ? [endOfBody] : []
    return Buffer.concat(n === 0 ? [streamHead, ...chunks, ...last] : [...chunks, ...last])
  })
}

/** Sends the next event of the slow streams that are due. Streams are spread evenly over the interval. */
function tick(): void {
  const now = performance.now()
  stats.tickLagMs = Math.max(stats.tickLagMs, now - lastTick - TICK_MS)
  lastTick = now
  slot = (slot + 1) % Math.max(1, wheel.length)
  for (const socket of wheel[slot] ?? []) {
    const slow = socket.data.slow
    if (!slow) continue
    slow.next += 1
    const isLast = slow.last > 0 && slow.next >= slow.last
    send(socket, isLast ? tail : delta)
    if (isLast) endStream(socket)
  }
}

function send(socket: Socket<Connection>, bytes: Uint8Array): void {
  const { backlog } = socket.data
  if (backlog.length > 0) {
    backlog.push(bytes)
    return
  }
  const written = Math.max(0, socket.write(bytes))
  if (written < bytes.length) backlog.push(bytes.subarray(written))
}

/**
 * Continues after a full socket buffer. A large response creates its next block only after the previous one was sent.
 */
function flush(socket: Socket<Connection>): void {
  const state = socket.data
  for (;;) {
    const next = state.backlog[0]
    if (next) {
      const written = Math.max(0, socket.write(next))
      if (written < next.length) {
        state.backlog[0] = next.subarray(written)
        return
      }
      state.backlog.shift()
    } else if (state.largeLeft > 0) {
      state.largeLeft -= largeBlock.length
      stats.largeBytesWritten += largeBlock.length
      state.backlog.push(largeBlock)
      if (state.largeLeft > 0) continue
      state.backlog.push(tail)
      stats.openStreams -= 1
    } else return
  }
}

function endStream(socket: Socket<Connection>): void {
  for (const bucket of wheel) bucket.delete(socket)
  socket.data.slow = null
  stats.openStreams -= 1
}

function forget(socket: Socket<Connection>): void {
  if (socket.data.hasTurn) stats.turnSockets -= 1
  if (socket.data.session) {
    socket.data.session.closed()
    stats.openSessions -= 1
  }
  if (socket.data.slow) endStream(socket)
  if (socket.data.largeLeft > 0) {
    socket.data.largeLeft = 0
    stats.openStreams -= 1
  }
}

function setMode(next: UpstreamMode): UpstreamMode {
  mode = next
  if (mode.kind === 'burst') burst = burstParts(mode.groups)
  if (mode.kind === 'slow') {
    wheel = Array.from(
      { length: Math.max(1, Math.round(mode.intervalMs / TICK_MS)) },
      () => new Set<Socket<Connection>>(),
    )
  }
  return mode
}

function takeTickLag(): number {
  const lag = stats.tickLagMs
  stats.tickLagMs = 0
  return lag
}

function httpChunk(bytes: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
}

function streamHeaders(): string {
  return [
    'HTTP/1.1 200 OK',
    'content-type: text/event-stream; charset=utf-8',
    'cache-control: no-cache',
    'transfer-encoding: chunked',
    ...rateHeaders(),
    '\r\n',
  ].join('\r\n')
}

/** Every response of ChatGPT has them, so reading them is part of the measured work. */
function rateHeaders(): string[] {
  const resetAt = Math.floor(Date.now() / 1000) + 9_000
  return [
    'x-request-id: req_bench',
    `openai-model: ${BENCH_MODEL}`,
    'x-codex-plan-type: plus',
    'x-codex-primary-used-percent: 12',
    'x-codex-primary-window-minutes: 300',
    `x-codex-primary-reset-at: ${resetAt}`,
    'x-codex-secondary-used-percent: 30',
    'x-codex-secondary-window-minutes: 10080',
    `x-codex-secondary-reset-at: ${resetAt + 400_000}`,
    'x-codex-credits-has-credits: False',
  ]
}

function usage(): unknown {
  const reset_at = Math.floor(Date.now() / 1000) + 9_000
  const window = (seconds: number) => ({
    used_percent: 12,
    limit_window_seconds: seconds,
    reset_after_seconds: 9_000,
    reset_at,
  })
  return {
    plan_type: 'plus',
    rate_limit: {
      allowed: true,
      limit_reached: false,
      primary_window: window(18_000),
      secondary_window: window(604_800),
    },
    credits: { has_credits: false, unlimited: false, balance: '0' },
  }
}

function tokens(): unknown {
  const claims = { exp: Math.floor(Date.now() / 1000) + 864_000 }
  const jwt = `${base64url({ alg: 'none' })}.${base64url(claims)}.c2ln`
  return { access_token: jwt, id_token: jwt, refresh_token: `rt_${crypto.randomUUID()}`, expires_in: 864_000 }
}

function base64url(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

const model = {
  slug: BENCH_MODEL,
  display_name: BENCH_MODEL,
  supported_reasoning_levels: [{ effort: 'medium', description: 'Balanced' }],
  shell_type: 'unified_exec',
  visibility: 'list',
  supported_in_api: true,
  priority: 1,
  support_verbosity: true,
  supports_reasoning_summaries: true,
  supports_parallel_tool_calls: true,
  truncation_policy: { mode: 'tokens', limit: 10_000 },
  experimental_supported_tools: [],
  base_instructions: 'You are a coding agent.',
  context_window: 272_000,
  max_context_window: 872_000,
}
