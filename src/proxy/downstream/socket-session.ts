/**
 * One client socket: its turns, one running and one waiting, its upstream socket, keepalives and end. Turns run and
 * settle as over HTTP.
 */
import { authenticateClient, type Client, type ClientAuthRequest } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import type { SocketPeer } from '../../http/websocket.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Peer } from '../../lib/tcp-info.ts'
import { UpstreamSession } from '../exchange/upstream-session.ts'
import type { Arrivals } from '../ingress/arriving-frames.ts'
import { collectAfter, requireFewValues } from '../ingress/raw-body.ts'
import { type Create, type CreateFrame, type Earlier, parseFrame } from '../ingress/socket-create.ts'
import { ClientGone } from '../turn/turn.ts'
import { errorFrame, type FrameContract } from './frame-contract.ts'
import { Outbox } from './outbox.ts'
import { SocketTurn } from './socket-turn.ts'

/** For a socket between turns (decisions §3 "Time limits"). */
const IDLE_MS = HOUR_MS
/** The runtime keeps a buffer for the largest frame until the connection ends (Bun 1.4.5), which no budget counts. */
const LARGE_FRAME_BYTES = 4 * 1024 * 1024
const IDLE_AFTER_LARGE_MS = 2 * MINUTE_MS
/** Longer than any frame that requests no turn. */
const SMALL_FRAME_CHARS = 64 * 1024

/** A client whose frames are rejected this many times in a row will not recover. */
const MAX_REJECTED_IN_A_ROW = 20
/**
 * Pings, pongs and frames without a turn, per beat (half a second). Clients send a few a minute; the runtime delivers
 * everything it has read in one go, so a flood would block other clients.
 */
const MAX_NOTICES_PER_BEAT = 50

/** Close codes (RFC 6455 §7.4.1 and its registry). 1009 is sent by the runtime. */
const CLOSE = {
  idle: { code: 1001, reason: 'Idle' },
  slow: { code: 1013, reason: 'The client does not read' },
  fault: { code: 1011, reason: 'Internal error' },
  rejected: { code: 1008, reason: 'Too many rejected frames' },
  flood: { code: 1008, reason: 'Too many frames' },
  busy: { code: 1013, reason: 'Too many request bodies are in memory. Try again shortly' },
  silent: { code: 1001, reason: 'The upload of a frame stopped' },
  draining: { code: 1012, reason: 'The server is restarting' },
} as const

/** Fixed from the handshake on. */
export interface Handshake {
  env: Bindings
  headers: Headers
  route: string
  isNative: boolean
  /** The handshake requested the restricted pool; applies to the whole socket. */
  isRestricted: boolean
  /** To check at each turn whether the client is still admitted. */
  authRequest: Omit<ClientAuthRequest, 'keyAuthEnabled' | 'now'>
  contract: (client: Client, model: string | null) => FrameContract
  /** Address and port of the connection; null on a Unix socket. */
  peer: Peer | null
  /** Releases the socket's place in the limits of its key and client; safe to call repeatedly. */
  leave: () => void
}

/** Called by `Bun.serve`; a throw there would end the process (Bun 1.4.5). */
export class SocketSession implements SocketPeer {
  readonly handshake: Handshake
  readonly upstream = new UpstreamSession()
  /** Aborts when the client is gone. */
  readonly #gone = new AbortController()
  /** Set from opening to closing. */
  #outbox: Outbox | null = null
  #turn: SocketTurn | null = null
  #waiting: Create | null = null
  /** Since the handshake, or since a turn requested it. */
  isRestricted: boolean
  /** Kept for the next turn. */
  earlier: Earlier | null = null
  #arrivals: Arrivals | null = null
  #idleSince = 0
  #idleMs = IDLE_MS
  /** The idle limit has passed and a ping was sent: a frame already on its way arrives before the pong. */
  #isAsked = false
  #rejectedInARow = 0
  #notices = 0

  constructor(handshake: Handshake) {
    this.handshake = handshake
    this.isRestricted = handshake.isRestricted
  }

  get gone(): AbortSignal {
    return this.#gone.signal
  }

  get #isLeaving(): boolean {
    const { draining, handedOver } = this.handshake.env.lifecycle
    return draining || handedOver
  }

  opened(ws: Bun.ServerWebSocket<SocketPeer>): void {
    const { env, peer } = this.handshake
    this.#outbox = new Outbox(ws, env.clock, () => this.#giveUp('slow'))
    this.#idleSince = env.clock.monotonic()
    if (peer) this.#arrivals = env.arrivingFrames.watch(peer, (why) => this.#giveUp(why))
    env.sockets.add(this)
    env.pulse.watch(this)
    if (this.#isLeaving) this.drain()
  }

  closed(): void {
    const { env } = this.handshake
    env.sockets.delete(this)
    this.#arrivals?.stop()
    this.handshake.leave()
    env.pulse.unwatch(this)
    this.#dropWaiting()
    this.#gone.abort(new ClientGone())
    this.upstream.end()
    this.#outbox?.end()
  }

  drained(): void {
    this.#outbox?.drained()
  }

  pinged(payloadBytes: number): void {
    this.#arrivals?.control(payloadBytes)
    this.#countNotice()
  }

  ponged(payloadBytes: number): void {
    this.#arrivals?.control(payloadBytes)
    this.#countNotice()
    if (this.#isAsked) this.#close('idle')
  }

  received(data: string | Buffer): void {
    this.#isAsked = false
    this.#arrivals?.delivered()
    try {
      const bytes = Buffer.byteLength(data)
      if (bytes > LARGE_FRAME_BYTES) this.#noteLarge(bytes)
      if (typeof data !== 'string') throw new AppError('invalid_request_error', { message: 'Frames must be text.' })
      this.#read(data)
      this.#rejectedInARow = 0
    } catch (err) {
      this.#reject(err)
    }
  }

  failed(err: unknown): void {
    this.handshake.env.log.error('a socket failed', { err })
    this.#close('fault')
  }

  #noteLarge(bytes: number): void {
    this.handshake.env.clock.after(0, () => collectAfter(bytes)) // the runtime holds the text until we return
    this.#idleMs = IDLE_AFTER_LARGE_MS
    this.#idleSince = this.handshake.env.clock.monotonic() // a rejected client may try again
  }

  /**
   * Without room, large frames are not even parsed; small ones may be cancellations. Throws `busy`, and what
   * `requireFewValues` and `parseFrame` do.
   */
  #read(data: string): void {
    const { bodies } = this.handshake.env
    if (data.length > SMALL_FRAME_CHARS) bodies.open(data.length)
    const bytes = Buffer.from(data)
    requireFewValues(bytes)
    const frame = parseFrame(data)
    if (frame.type === 'response.interrupt') this.#turn?.interrupt()
    if (frame.type === 'response.create') this.#take(frame, bytes)
    else this.#countNotice()
  }

  #take(frame: CreateFrame, bytes: Create['bytes']): void {
    const { bodies } = this.handshake.env
    const hold = bodies.open(bytes.length)
    try {
      bodies.grow(hold, bytes.length)
      this.#accept({ frame, bytes, hold })
    } catch (err) {
      hold.release()
      throw err
    }
  }

  #accept(create: Create): void {
    if (!this.#turn) this.#start(create)
    else if (!this.#waiting) this.#waiting = create
    else throw new AppError('turn_in_progress')
  }

  #start(create: Create): void {
    const turn = new SocketTurn(this, create)
    this.#turn = turn
    this.#outbox?.wake()
    turn.run().then(
      () => this.#next(),
      (err: unknown) => {
        this.handshake.env.log.error('a request on a socket failed', { err })
        this.#close('fault')
      },
    )
  }

  #next(): void {
    this.#turn = null
    this.#idleSince = this.handshake.env.clock.monotonic()
    const waiting = this.#waiting
    this.#waiting = null
    if (waiting) this.#start(waiting)
    else if (this.#isLeaving) this.#close('draining')
  }

  /** Starts no new turn: closes an idle socket now, a busy one after its turn. */
  drain(): void {
    if (!this.#turn) this.#close('draining')
  }

  /**
   * Authenticates the client again: its key may have been revoked since the handshake. Requests for the restricted pool
   * (`isAsking`) always need a key. Throws as the handshake does.
   */
  client({ isAsking }: { isAsking: boolean }): Client {
    const { env, authRequest } = this.handshake
    if (!env.firewall.allows(authRequest.ip)) throw new AppError('ip_forbidden', { rejection: { reason: 'firewall' } })
    return authenticateClient({
      ...authRequest,
      need: this.isRestricted || isAsking ? 'always' : authRequest.need,
      keyAuthEnabled: env.settings.current().apiKeyAuthEnabled,
      now: env.clock.now(),
    })
  }

  /** Logs a client that was admitted at the handshake and is now rejected. */
  noteRejection(err: unknown): void {
    const { env, authRequest, route, headers } = this.handshake
    if (err instanceof AppError && err.extra.rejection)
      env.ledger.reject({ ...err.extra.rejection, ip: authRequest.ip, route, userAgent: headers.get('user-agent') })
  }

  /** See `Outbox.send`. */
  send(texts: readonly string[]): Promise<void> | undefined {
    return this.#outbox ? this.#outbox.send(texts) : Promise.reject(new ClientGone())
  }

  /** The runtime reports the end only after the client answers the close, which this client may never do. */
  #giveUp(why: 'slow' | 'busy' | 'silent'): void {
    this.#close(why)
    this.closed()
    this.#outbox?.terminate()
  }

  #reject(err: unknown): void {
    this.send([errorFrame(AppError.from(err))])?.catch(() => {}) // the client has disconnected
    if (++this.#rejectedInARow >= MAX_REJECTED_IN_A_ROW) this.#close('rejected')
    else this.#countNotice()
  }

  /** The runtime delivers nothing after a close, not even frames it has already read (Bun 1.4.5). */
  #countNotice(): void {
    if (++this.#notices > MAX_NOTICES_PER_BEAT) this.#close('flood')
  }

  beat(now: number): void {
    this.#notices = 0
    this.#outbox?.closeIfStalled(now)
    if (this.#turn) this.#outbox?.keepAlive(now, this.#turn.keepalive)
    else if (now - this.#idleSince >= this.#idleMs) this.#askWhetherIdle()
  }

  #askWhetherIdle(): void {
    if (this.#isAsked) return
    this.#isAsked = true
    this.#outbox?.ping()
  }

  #dropWaiting(): void {
    this.#waiting?.hold.release()
    this.#waiting = null
  }

  #close(why: keyof typeof CLOSE): void {
    this.#dropWaiting()
    this.#outbox?.close(CLOSE[why].code, CLOSE[why].reason)
  }
}
