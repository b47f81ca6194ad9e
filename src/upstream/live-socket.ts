/** The WebSocket of a live call: frames of any kind in both directions, back-pressure, keepalive, and how it closed. */
import type WebSocket from 'ws'
import type { Clock } from '../lib/clock.ts'
import { openHandshake, type SocketRequest } from './socket.ts'

const PING_EVERY_MS = 30_000
/** Pings without any reply: the connection is lost. */
const MAX_UNANSWERED_PINGS = 2
const CLOSE_MS = 5000
const TOO_LARGE = 1009
/** Code for a close without a close frame (RFC 6455 §7.1.5). */
const DROPPED = 1006

export type LiveFrame = string | Uint8Array<ArrayBuffer>

interface LiveSocketListener {
  received(frame: LiveFrame): void
  /** Called once. */
  closed(code: number, reason: string): void
}

/** Rejects as `openHandshake` does. */
export const openLiveSocket = (request: SocketRequest): Promise<LiveSocket> =>
  openHandshake(request, (ws, headers) => new LiveSocket(ws, headers, request))

export class LiveSocket {
  /** The chosen subprotocol. */
  readonly protocol: string | null
  readonly #ws: WebSocket
  readonly #clock: Clock
  #listener: LiveSocketListener | null = null
  /** Frames that came before anyone listened. */
  #early: LiveFrame[] = []
  #closed: { code: number; reason: string } | null = null
  /** For pings, or for cutting off a slow close. */
  #cancelTimer: () => void
  #unansweredPings = 0

  constructor(ws: WebSocket, headers: Headers, { clock }: Pick<SocketRequest, 'clock'>) {
    this.#ws = ws
    this.#clock = clock
    this.protocol = headers.get('sec-websocket-protocol')
    this.#cancelTimer = clock.every(PING_EVERY_MS, () => this.#checkLife())
    const alive = () => {
      this.#unansweredPings = 0
    }
    ws.on('message', (data, isBinary) => {
      alive()
      const bytes = data as Buffer<ArrayBuffer> // as: guaranteed by `nodebuffer`
      this.#receive(isBinary ? bytes : bytes.toString())
    })
    ws.on('ping', alive)
    ws.on('pong', alive)
    ws.removeAllListeners('error') // those of the handshake
    ws.on('error', (err) => this.#broke('code' in err ? String(err.code) : ''))
    ws.on('close', (code, reason) => this.#ended(code, reason.toString()))
  }

  /** Delivers what has already come, then everything else. */
  attach(listener: LiveSocketListener): void {
    this.#listener = listener
    for (const frame of this.#early) listener.received(frame)
    this.#early = []
    if (this.#closed) listener.closed(this.#closed.code, this.#closed.reason)
  }

  /** Bytes of frames that the system has not taken yet. */
  get queuedBytes(): number {
    return this.#ws.bufferedAmount
  }

  /** `sent` is called when the frame has been handed to the system, or the connection ended. */
  send(frame: LiveFrame, sent: () => void): void {
    this.#ws.send(frame, { binary: typeof frame !== 'string' }, () => sent())
  }

  pause(): void {
    if (this.#ws.readyState === this.#ws.OPEN) this.#ws.pause()
  }

  resume(): void {
    if (!this.#ws.isPaused) return
    this.#ws.resume()
    this.#unansweredPings = 0
  }

  /** Cut off if the peer does not answer in time. Closing a paused socket would leak its descriptor (Bun 1.4.5). */
  close(code: number, reason: string): void {
    if (this.#closed) return
    this.resume()
    this.#ws.close(code, reason)
    this.#cancelTimer()
    this.#cancelTimer = this.#clock.after(CLOSE_MS, () => this.terminate())
  }

  terminate(): void {
    this.resume()
    this.#ws.terminate()
  }

  #receive(frame: LiveFrame): void {
    if (this.#listener) this.#listener.received(frame)
    else this.#early.push(frame)
  }

  /** The runtime has told the peer 1009, but reports the end as a lost connection (Bun 1.4.5). */
  #broke(code: string): void {
    const isTooLarge = code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH'
    this.#ended(isTooLarge ? TOO_LARGE : DROPPED, '')
    if (!isTooLarge) this.terminate()
  }

  #ended(code: number, reason: string): void {
    if (this.#closed) return
    this.#closed = { code, reason }
    this.#cancelTimer()
    this.#listener?.closed(code, reason)
  }

  /** A paused socket reads no pongs, and a ping sent now would wait behind queued frames. */
  #checkLife(): void {
    if (this.#ws.isPaused || this.queuedBytes > 0) return
    if (this.#unansweredPings === MAX_UNANSWERED_PINGS) {
      this.#broke('')
      return
    }
    this.#unansweredPings++
    this.#ws.ping()
  }
}
