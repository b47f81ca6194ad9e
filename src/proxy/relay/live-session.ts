/** The WebSocket of a live call: passes frames between client and OpenAI untouched until either side closes. */
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import type { SocketPeer } from '../../http/websocket.ts'
import type { Peer } from '../../lib/tcp-info.ts'
import type { LiveFrame, LiveSocket } from '../../upstream/live-socket.ts'
import { Outbox } from '../downstream/outbox.ts'
import type { Watcher } from '../downstream/stream-timer.ts'
import type { Arrivals } from '../ingress/arriving-frames.ts'
import type { Lease } from '../pool/live-account.ts'
import type { FlowEnd, FlowListener } from '../turn/open-answer.ts'
import type { Turn } from '../turn/turn.ts'
import { NOTHING_USED } from './relay.ts'

/** Assumed: OpenAI sends no larger frame, and takes none. */
export const MAX_LIVE_FRAME_BYTES = 16 * 1024 * 1024
/** Frames of the client that OpenAI has not taken yet: above the first it is not read, below the second it is again. */
const PAUSE_BYTES = 1024 * 1024
const RESUME_BYTES = 256 * 1024
/** OpenAI takes nothing for this long while frames wait. */
const STALLED_MS = 30_000

/** Close codes (RFC 6455 §7.4.1 and its registry). */
const TOO_LARGE = { code: 1009, reason: 'The frame is larger than 16 MiB' }
const FAULT = { code: 1011, reason: '' }
const SLOW = { code: 1013, reason: 'The client does not read' }
const BUSY = { code: 1013, reason: 'Too many request bodies are in memory. Try again shortly' }
const SILENT = { code: 1001, reason: 'The upload of a frame stopped' }
const STALLED = { code: 1013, reason: 'ChatGPT does not read' }
const DRAINING = { code: 1012, reason: 'The server is restarting' }
/** Codes without a close frame, and those that end a call as intended. */
const DROPPED = 1006
const NORMAL: ReadonlySet<number> = new Set([1000, 1001, 1005])

interface Close {
  code: number
  reason: string
}

interface Joined {
  env: Bindings
  turn: Turn
  lease: Lease
  upstream: LiveSocket
  /** Address and port of the client's connection; null on a Unix socket. */
  peer: Peer | null
  /** Releases the socket's place in the limits of its key and client. */
  leave: () => void
}

/** Called by `Bun.serve`; a throw there would end the process (Bun 1.4.5). */
export class LiveSession implements SocketPeer, Watcher, EventListenerObject {
  readonly #joined: Joined
  #ws: Bun.ServerWebSocket<SocketPeer> | null = null
  #outbox: Outbox | null = null
  #arrivals: Arrivals | null = null
  /** The last frames for the client that wait; null while it keeps up. */
  #lastSend: Promise<void> | null = null
  #unsentBytes = 0
  /** What OpenAI had not taken of them at the last beat. */
  #queuedBytes = 0
  /** `clock.monotonic()` when OpenAI last took something, or had nothing to take. */
  #takenAt = 0
  #isClosing = false
  #end: FlowEnd | null = null
  #listener: FlowListener | null = null

  constructor(joined: Joined) {
    this.#joined = joined
    joined.turn.signal.addEventListener('abort', this)
  }

  /** The subprotocol OpenAI chose. */
  get protocol(): string | null {
    return this.#joined.upstream.protocol
  }

  /** Called once, when the call has ended and its slot is free. */
  whenEnded(listener: FlowListener): void {
    if (this.#end) listener.ended(this.#end, NOTHING_USED)
    else this.#listener = listener
  }

  opened(ws: Bun.ServerWebSocket<SocketPeer>): void {
    const { env, peer, upstream, turn } = this.#joined
    if (this.#end) {
      ws.close(DRAINING.code, DRAINING.reason) // it ended while the client was connecting
      return
    }
    this.#ws = ws
    this.#outbox = new Outbox(ws, env.clock, () => this.#giveUp(SLOW))
    if (peer) this.#arrivals = env.arrivingFrames.watch(peer, (why) => this.#giveUp(why === 'busy' ? BUSY : SILENT))
    this.#takenAt = env.clock.monotonic()
    env.liveCalls.add(this)
    env.pulse.watch(this)
    upstream.attach({
      received: (frame) => this.#toClient(frame),
      closed: (code, reason) => this.#upstreamClosed({ code, reason }),
    })
    if (turn.signal.aborted) this.handleEvent()
  }

  received(data: string | Buffer): void {
    this.#arrivals?.delivered()
    if (this.#isClosing) return
    const bytes = Buffer.byteLength(data)
    if (bytes > MAX_LIVE_FRAME_BYTES) this.#closeBoth(TOO_LARGE, failed(new AppError('payload_too_large')))
    else this.#toUpstream(typeof data === 'string' ? data : new Uint8Array(data), bytes) // copied: the runtime owns it
  }

  drained(): void {
    this.#outbox?.drained()
  }

  pinged(payloadBytes: number): void {
    this.#arrivals?.control(payloadBytes)
  }

  ponged(payloadBytes: number): void {
    this.#arrivals?.control(payloadBytes)
  }

  /** The client closed, or answered our close. */
  closed(code: number, reason: string): void {
    this.#outbox?.end()
    const isOurs = this.#isClosing
    this.#isClosing = true
    if (!isOurs) {
      const close = passable({ code, reason })
      this.#joined.upstream.close(close.code, close.reason)
    }
    this.#finish(code === DROPPED ? CANCELLED : OK)
  }

  failed(err: unknown): void {
    this.#joined.env.log.error('a live call failed', { err })
    this.#closeBoth(FAULT, failed(AppError.from(err)))
  }

  beat(now: number): void {
    this.#outbox?.closeIfStalled(now)
    const { queuedBytes } = this.#joined.upstream
    if (this.#unsentBytes === 0 || queuedBytes < this.#queuedBytes) this.#takenAt = now
    this.#queuedBytes = queuedBytes
    if (now - this.#takenAt >= STALLED_MS) this.#giveUp(STALLED, failed(new AppError('upstream_timeout')))
  }

  /** Draining ends the call; a client that disconnected is reported by `closed`. */
  handleEvent(): void {
    const { reason } = this.#joined.turn.signal
    if (reason instanceof AppError) this.#closeBoth(DRAINING, failed(reason))
    else if (!this.#ws) this.abandon()
  }

  /** The client never got its socket. */
  abandon(): void {
    this.#joined.upstream.terminate()
    this.#finish(CANCELLED)
  }

  #toUpstream(frame: LiveFrame, bytes: number): void {
    this.#unsentBytes += bytes
    if (this.#unsentBytes > PAUSE_BYTES) this.#ws?.pause()
    this.#joined.upstream.send(frame, () => {
      this.#unsentBytes -= bytes
      this.#takenAt = this.#joined.env.clock.monotonic()
      if (this.#unsentBytes <= RESUME_BYTES) this.#ws?.resume()
    })
  }

  #toClient(frame: LiveFrame): void {
    if (this.#isClosing || !this.#outbox) return
    const sending = this.#outbox.send([frame])
    if (!sending) return
    this.#joined.upstream.pause()
    const last = sending.catch(() => {}) // the client is gone, which `closed` handles
    this.#lastSend = last
    void last.then(() => {
      if (this.#lastSend !== last) return
      this.#lastSend = null
      this.#joined.upstream.resume()
    })
  }

  /** The client gets every frame that came before the close. */
  #upstreamClosed(closed: Close): void {
    if (this.#isClosing) return
    this.#isClosing = true
    const { code, reason } = closed.code === TOO_LARGE.code ? TOO_LARGE : passable(closed)
    const end = NORMAL.has(closed.code) ? OK : failed(endedBy(closed))
    const close = () => {
      this.#finish(end) // first: the runtime calls `closed` while it closes
      this.#ws?.resume()
      this.#outbox?.close(code, reason)
    }
    if (this.#lastSend !== null) void this.#lastSend.then(close)
    else close()
  }

  #closeBoth({ code, reason }: Close, end: FlowEnd): void {
    this.#isClosing = true
    this.#finish(end) // first, as above
    this.#ws?.resume()
    this.#joined.upstream.close(code, reason)
    this.#outbox?.close(code, reason)
  }

  /** The runtime reports the end only after the client answers the close, which this client may never do. */
  #giveUp(close: Close, end: FlowEnd = CANCELLED): void {
    this.#closeBoth(close, end)
    this.#outbox?.end()
    this.#outbox?.terminate()
  }

  #finish(end: FlowEnd): void {
    if (this.#end) return
    this.#end = end
    const { env, turn, lease, leave } = this.#joined
    turn.signal.removeEventListener('abort', this)
    this.#arrivals?.stop()
    env.liveCalls.delete(this)
    env.pulse.unwatch(this)
    leave()
    lease.release()
    this.#listener?.ended(end, NOTHING_USED)
  }
}

const SWITCHED = { httpStatus: 101 }
const OK: FlowEnd = { ...SWITCHED, status: 'ok', error: null }
const CANCELLED: FlowEnd = { ...SWITCHED, status: 'cancelled', error: null }

const failed = (error: AppError): FlowEnd => ({ ...SWITCHED, status: 'error', error })

const endedBy = ({ code }: Close): AppError =>
  new AppError('stream_incomplete', {
    message:
      code === DROPPED ? 'The connection to ChatGPT was lost.' : `ChatGPT closed the live call with code ${code}.`,
  })

const MAX_REASON_BYTES = 123

/** What may be sent in a close frame; anything else becomes 1011. */
const passable = ({ code, reason }: Close): Close => {
  const isStandard = code >= 1000 && code <= 1014 && ![1004, 1005, DROPPED].includes(code)
  const isValid = (isStandard || (code >= 3000 && code <= 4999)) && Buffer.byteLength(reason) <= MAX_REASON_BYTES
  return isValid ? { code, reason } : FAULT
}
