/** Drives a WebSocket like the native client, for tests; every call fails with a message after 5 s. */
import WebSocket from 'ws'
import { PATIENCE_MS } from './until.ts'

/** An upstream event; `type` is `(binary)` or `(not JSON)` for a frame that is not an event. */
export type SocketEvent = { type: string; [field: string]: unknown }
type Frame = Record<string, unknown> | string | Uint8Array
export type Closed = { code: number; reason: string }

type SocketOptions = {
  headers?: Record<string, string>
  protocols?: string[]
  /** For the handshake, and for every wait afterwards. */
  timeoutMs?: number
}

export type TestSocket = {
  /** The headers of the 101; names are lower case. */
  readonly opened: { headers: Record<string, string> }
  /** Everything that has arrived so far. */
  readonly events: readonly SocketEvent[]
  readonly isOpen: boolean
  /** Sent, and not taken by the system yet. */
  readonly bufferedBytes: number
  send: (frame: Frame) => void
  /** The next unread event that matches; those before it count as read. */
  next: (fits?: (event: SocketEvent) => boolean) => Promise<SocketEvent>
  /** Sends the frame and gives the events up to and with the one that ends the turn: a terminal one or an error. */
  turn: (frame: Frame) => Promise<SocketEvent[]>
  /** How the connection ended. */
  readonly closed: Promise<Closed>
  /** Resolves when the peer has answered a ping. */
  ping: () => Promise<void>
  /** Sends a pong that answers no ping. */
  pong: () => void
  close: (code?: number, reason?: string) => void
  /** Drops the connection without a close frame, as the native client always does. */
  terminate: () => void
  /** Stops reading; `close` and `terminate` read again first, since the runtime would leak the descriptor. */
  pause: () => void
  resume: () => void
}

/** The handshake was answered with an ordinary response. */
export class SocketRefused extends Error {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string

  constructor(status: number, headers: Record<string, string>, body: string) {
    super(`The handshake was refused with ${status}: ${body.slice(0, 500)}`)
    this.status = status
    this.headers = headers
    this.body = body
  }
}

const ENDS = new Set(['response.completed', 'response.failed', 'response.incomplete', 'error'])

export function endsTurn(event: SocketEvent): boolean {
  return ENDS.has(event.type)
}

/**
 * Opens a socket to an `http:` or `ws:` address. Rejects with `SocketRefused`, or with the error of the runtime when
 * the connection broke.
 */
export async function connectSocket(url: string, options: SocketOptions = {}): Promise<TestSocket> {
  const { headers = {}, protocols = [], timeoutMs = PATIENCE_MS } = options
  const ws = new WebSocket(url.replace(/^http/, 'ws'), protocols, { headers, perMessageDeflate: false })
  const inbox = watch(ws)
  try {
    const opened = await within(timeoutMs, handshake(ws), () => `The handshake with ${url} was not answered`)
    return testSocket(ws, inbox, opened, timeoutMs)
  } catch (error) {
    ws.terminate()
    throw error
  }
}

function handshake(ws: WebSocket): Promise<{ headers: Record<string, string> }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ headers: Record<string, string> }>()
  let headers: Record<string, string> = {}
  ws.on('upgrade', (response) => {
    headers = flat(response.headers)
  })
  ws.on('open', () => resolve({ headers }))
  ws.on('error', reject)
  ws.on('unexpected-response', (_request, response) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => {
      const body = Buffer.concat(chunks).toString()
      reject(new SocketRefused(response.statusCode ?? 0, flat(response.headers), body))
    })
  })
  return promise
}

type Inbox = { events: SocketEvent[]; taken: number; closed: Closed | null; changed: PromiseWithResolvers<void> }

/** Collects frames from the start, so that none that comes with the 101 is lost. */
function watch(ws: WebSocket): Inbox {
  const inbox: Inbox = { events: [], taken: 0, closed: null, changed: Promise.withResolvers() }
  const change = () => {
    inbox.changed.resolve()
    inbox.changed = Promise.withResolvers()
  }
  ws.on('message', (data: Buffer, isBinary: boolean) => {
    inbox.events.push(isBinary ? { type: '(binary)', bytes: data } : eventIn(data.toString()))
    change()
  })
  ws.on('close', (code, reason) => {
    inbox.closed = { code, reason: reason.toString() }
    change()
  })
  return inbox
}

function testSocket(ws: WebSocket, inbox: Inbox, opened: TestSocket['opened'], timeoutMs: number): TestSocket {
  const send = (frame: Frame) =>
    ws.send(typeof frame === 'string' || frame instanceof Uint8Array ? frame : JSON.stringify(frame))
  const next: TestSocket['next'] = (fits = () => true) =>
    within(timeoutMs, take(inbox, fits), () => `No such event came${arrived(inbox)}`)
  return {
    opened,
    events: inbox.events,
    get isOpen() {
      return inbox.closed === null && ws.readyState === WebSocket.OPEN
    },
    get bufferedBytes() {
      return ws.bufferedAmount
    },
    send,
    next,
    async turn(frame) {
      send(frame)
      const events = [await next()]
      for (let last = events[0]; last && !endsTurn(last); last = events.at(-1)) events.push(await next())
      return events
    },
    get closed() {
      return within(timeoutMs, end(inbox), () => `The connection was not closed${arrived(inbox)}`)
    },
    pong: () => ws.pong(),
    ping() {
      const pong = Promise.withResolvers<void>()
      ws.once('pong', () => pong.resolve())
      ws.ping()
      return within(timeoutMs, pong.promise, () => 'The ping was not answered')
    },
    close(code, reason) {
      ws.resume()
      ws.close(code, reason)
    },
    terminate() {
      ws.resume()
      ws.terminate()
    },
    pause: () => ws.pause(),
    resume: () => ws.resume(),
  }
}

async function take(inbox: Inbox, fits: (event: SocketEvent) => boolean): Promise<SocketEvent> {
  for (;;) {
    while (inbox.taken < inbox.events.length) {
      const event = inbox.events[inbox.taken++]
      if (event && fits(event)) return event
    }
    if (inbox.closed) throw new Error(`The connection closed with ${inbox.closed.code}${arrived(inbox)}`)
    await inbox.changed.promise
  }
}

async function end(inbox: Inbox): Promise<Closed> {
  while (!inbox.closed) await inbox.changed.promise
  return inbox.closed
}

/** The part of an error that lists earlier events. */
function arrived({ events }: Inbox): string {
  const last = events.at(-1)
  return last
    ? `; ${events.length} had arrived, the last ${JSON.stringify(last).slice(0, 500)}`
    : '; nothing had arrived'
}

async function within<Value>(ms: number, promise: Promise<Value>, sentence: () => string): Promise<Value> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error(`${sentence()} within ${ms} ms.`)), ms)
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

function eventIn(text: string): SocketEvent {
  try {
    return JSON.parse(text)
  } catch {
    return { type: '(not JSON)', text }
  }
}

function flat(headers: NodeJS.Dict<string | string[]>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
