/** A WebSocket to the upstream: handshake, sequential turns, back-pressure and keepalive. */
import type { Agent, IncomingMessage } from 'node:http'
import WebSocket from 'ws' // the runtime's own; its global one hides status, headers and body of a rejected handshake
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { FrameEvent } from './frame-event.ts'
import { closedWith, HandshakeRejected } from './socket-errors.ts'
import { MAX_QUEUED_BYTES, SocketStream } from './socket-stream.ts'
import { isTerminal } from './stream.ts'

const MAX_FRAME_BYTES = 128 * 1024 * 1024
const MAX_REFUSAL_BYTES = 64 * 1024
const PROXY_FAILED = 'ERR_PROXY_TUNNEL'
const PING_EVERY_MS = 30_000
/** Pings without any reply: the connection ends 60 s after the first. */
const MAX_UNANSWERED_PINGS = 2
const PEEK_EVERY_MS = 1000
const CLOSE_MS = 1000
/** Code for a close without a close frame (RFC 6455 §7.1.5). */
const DROPPED = 1006

export interface SocketRequest {
  /** ws:// or wss:// */
  url: string
  /** Complete, except for what the handshake itself adds. */
  headers: Record<string, string>
  agent: Agent | undefined
  clock: Clock
  /** For the whole handshake, including the body of a rejection. */
  timeoutMs: number
  /** Aborts the handshake, not the socket; its reason is the rejection. */
  signal: AbortSignal
  /** Offered; the upstream must choose one of them, or none if there are none. */
  protocols?: readonly string[]
  /** 128 MiB when absent. */
  maxFrameBytes?: number
}

/** The upstream chose a subprotocol that was not offered, or none of those that were. */
export class SubprotocolMismatch extends Error {
  override readonly name = 'SubprotocolMismatch'
}

/** Connects a socket for turns. Rejects as `openHandshake` does. */
export const openSocket = (request: SocketRequest): Promise<UpstreamSocket> =>
  openHandshake(request, (ws, headers) => new UpstreamSocket(ws, headers, request.clock))

/**
 * Connects; `take` gets the open socket before any of its frames, and the headers of the 101. Rejects with
 * `HandshakeRejected` (also for redirects), `SubprotocolMismatch`, `upstream_timeout`, the reason of `signal`, or the
 * runtime's error with the `code` of the failed connection (ECONNREFUSED, ENOTFOUND, ECONNRESET, EPROTO, …), or fetch's
 * ERR_PROXY_TUNNEL when the proxy behind `agent` gave no code.
 */
export const openHandshake = async <Taken>(
  request: SocketRequest,
  take: (ws: WebSocket, headers: Headers) => Taken,
): Promise<Taken> => {
  const { url, headers, agent, clock, timeoutMs, signal, protocols = [], maxFrameBytes = MAX_FRAME_BYTES } = request
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Taken>()
  const ws = new WebSocket(url, [...protocols], {
    headers,
    agent,
    perMessageDeflate: false,
    maxPayload: maxFrameBytes,
  })
  let giveUp = () => reject(new AppError('upstream_timeout'))
  ws.on('error', (err) => reject(agent ? withCode(err) : err))
  ws.once('upgrade', (response) => {
    const answered = getHeaders(response)
    const chosen = answered.get('sec-websocket-protocol')
    if (chosen === null ? protocols.length > 0 : !protocols.includes(chosen)) reject(new SubprotocolMismatch())
    ws.once('open', () => resolve(take(ws, answered)))
  })
  ws.once('unexpected-response', (_, response) => {
    giveUp = () => response.destroy() // it was rejected, however slow its body is
    void refusal(response).then(reject, reject)
  })
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort, { once: true })
  const cancelTimer = clock.after(timeoutMs, () => giveUp())
  try {
    return await promise
  } catch (err) {
    ws.terminate()
    throw err
  } finally {
    cancelTimer()
    signal.removeEventListener('abort', abort)
    // they keep the handshake in memory
    for (const name of ['upgrade', 'unexpected-response']) ws.removeAllListeners(name)
  }
}

/** Agents may throw without a code when the proxy rejects or is unreachable (Bun 1.4.5). */
const withCode = (err: Error): Error => ('code' in err && err.code ? err : Object.assign(err, { code: PROXY_FAILED }))

const refusal = async (response: IncomingMessage): Promise<HandshakeRejected> => {
  const chunks: Buffer[] = []
  let left = MAX_REFUSAL_BYTES
  try {
    // as: no encoding is set, so chunks are bytes
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, left))
      left -= chunk.length
      if (left <= 0) break
    }
  } catch {
    // the status and the part of the body received are enough
  }
  return new HandshakeRejected(response.statusCode ?? 0, getHeaders(response), Buffer.concat(chunks).toString())
}

const getHeaders = ({ rawHeaders }: IncomingMessage): Headers => {
  const headers = new Headers()
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) headers.append(rawHeaders[i] ?? '', rawHeaders[i + 1] ?? '')
  return headers
}

/** `error`: what the stream rejects with, if anything. */
type OnClosed = (isClean: boolean, error: Error | null) => void

interface RunningTurn {
  stream: SocketStream
  hasBegun: boolean
  whenOver: OnClosed | undefined
}

/** Created by `openSocket`. Runs one turn at a time; frames between turns are dropped. */
export class UpstreamSocket {
  /** Headers of the 101. */
  readonly headers: Headers
  /** Monotonic milliseconds. */
  readonly openedAt: number
  readonly #ws: WebSocket
  readonly #clock: Clock
  #turn: RunningTurn | null = null
  #hasServed = false
  #hasEnded = false
  #onClosed: (() => void) | null = null
  /** The only timer: for pings, for checks while paused, or for cutting off a slow close. */
  #cancelTimer: () => void
  #wasHeard = false
  #unansweredPings = 0

  constructor(ws: WebSocket, headers: Headers, clock: Clock) {
    this.#ws = ws
    this.headers = headers
    this.#clock = clock
    this.openedAt = clock.monotonic()
    this.#cancelTimer = clock.every(PING_EVERY_MS, () => this.#checkLife())
    const alive = () => {
      this.#unansweredPings = 0
    }
    ws.on('message', (data, isBinary) => this.#receive(data as Buffer, isBinary)) // as: guaranteed by `nodebuffer`
    ws.on('ping', alive)
    ws.on('pong', alive)
    ws.removeAllListeners('error') // those of the handshake
    ws.on('error', (err) => (isProtocolFault(err) ? this.terminate() : this.#lost()))
    ws.on('close', (code) => this.#ended(code))
  }

  /** Whether a turn can be sent; false once either side has begun to close. */
  get isOpen(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  /**
   * Sends one create frame and returns the answer up to its terminal event. Throws while another turn runs. The stream
   * rejects with `closedWith` when the upstream closes the socket, with `stream_incomplete` on a binary frame, and with
   * ECONNRESET when the connection is lost or a reused one ends before answering. `whenOver` runs once: true after the
   * terminal event, when the next turn can follow; false when the turn was cancelled or broke.
   */
  turn(frame: Uint8Array | string, whenOver?: OnClosed): SocketStream {
    if (this.#turn) throw new Error('a request is already running on this socket')
    const stream = new SocketStream({
      pause: () => this.#pause(),
      resume: () => this.#resume(),
      terminate: () => this.terminate(),
    })
    this.#turn = { stream, hasBegun: false, whenOver }
    this.send(frame)
    return stream
  }

  /** Sends an additional frame. If that fails, the socket and its turn end. */
  send(frame: Uint8Array | string): void {
    this.#ws.send(frame, { binary: false }, (err) => err && this.terminate())
  }

  /** `run` is called once when the connection has ended, immediately if it already has. A later call replaces it. */
  onClosed(run: () => void): void {
    if (this.#hasEnded) run()
    else this.#onClosed = run
  }

  /** Closes the connection; cuts it off if the peer does not answer within a second. A running turn fails. */
  close(): void {
    this.#endTurn(false)
    if (!this.isOpen) return
    this.#ws.close(1000)
    this.#cancelTimer()
    this.#cancelTimer = this.#clock.after(CLOSE_MS, () => this.terminate())
  }

  terminate(): void {
    this.#endTurn(false)
    this.#ws.terminate()
  }

  #receive(frame: Buffer, isBinary: boolean): void {
    this.#wasHeard = true
    this.#unansweredPings = 0
    if (isBinary) {
      this.#endTurn(false, new AppError('stream_incomplete'))
      this.terminate()
      return
    }
    if (!this.#turn) return
    this.#turn.hasBegun = true
    const event = new FrameEvent(frame)
    this.#turn.stream.push(event, frame.length)
    if (isTerminal(event.type)) this.#endTurn(this.isOpen)
  }

  /**
   * Called at every end, so that a socket without a turn is never paused: closing a paused one leaks its descriptor
   * (Bun 1.4.5).
   */
  #endTurn(isClean: boolean, error: Error | null = null): void {
    const turn = this.#turn
    if (!turn) return
    this.#turn = null
    this.#hasServed ||= isClean
    this.#resume()
    turn.stream.end(error)
    turn.whenOver?.(isClean, error)
  }

  /** The connection is lost, which says nothing about the account. */
  #lost(): void {
    this.#endTurn(false, connectionLost())
    this.#ws.terminate()
  }

  #ended(code: number): void {
    const isStale = this.#hasServed && !this.#turn?.hasBegun // it was already closing when the turn was sent
    this.#hasEnded = true
    this.#endTurn(false, code === DROPPED || isStale ? connectionLost() : closedWith(code))
    this.#cancelTimer()
    this.#onClosed?.()
    this.#onClosed = null
  }

  #pause(): void {
    if (this.#ws.isPaused || !this.isOpen) return
    this.#ws.pause()
    this.#cancelTimer()
    this.#cancelTimer = this.#clock.every(PEEK_EVERY_MS, () => this.#peek())
  }

  #resume(): void {
    if (!this.#ws.isPaused) return
    this.#ws.resume()
    this.#unansweredPings = 0
    this.#cancelTimer()
    this.#cancelTimer = this.#clock.every(PING_EVERY_MS, () => this.#checkLife())
  }

  /**
   * A paused socket does not notice that the upstream closed it (Bun 1.4.5), so it is resumed briefly. The next frame
   * pauses it again.
   */
  #peek(): void {
    if (this.#turn && this.#turn.stream.queuedBytes < 2 * MAX_QUEUED_BYTES) this.#resume()
  }

  #checkLife(): void {
    if (this.#unansweredPings === MAX_UNANSWERED_PINGS) this.#lost()
    else if (!this.#wasHeard) {
      this.#unansweredPings++
      this.#ws.ping()
    }
    this.#wasHeard = false
  }
}

/** True for frames that violate the protocol; a cut connection only emits a close (Bun 1.4.5). */
const isProtocolFault = (err: Error): boolean => 'code' in err && String(err.code).startsWith('WS_ERR_')

const connectionLost = (): Error => Object.assign(new Error('The connection was lost.'), { code: 'ECONNRESET' })
