/**
 * Counts frames still arriving on client sockets against the budget of all bodies. The runtime buffers a frame and
 * reports it only when complete, so the byte counts come from the operating system.
 */
import type { Clock } from '../../lib/clock.ts'
import type { Peer, TcpInfo } from '../../lib/tcp-info.ts'
import type { BodyBudget, BodyHold } from './raw-body.ts'

/** A gigabyte takes about a second over loopback. */
const CHECK_MS = 50
/** Sockets without a large frame are checked only every so many rounds: each check costs about 2 µs. */
const CHECKS_PER_ROUND = 2
/** Smaller frames are not counted: this also covers what the system already holds of the next frame. */
const MIN_BYTES = 256 * 1024

/** A client silent for this long in the middle of a frame is considered stalled. */
const SILENT_MS = 30_000

/** A client's ping or pong: two header bytes and the mask (RFC 6455 §5.2; the payload is at most 125 bytes). */
const CONTROL_HEADER_BYTES = 6

/** Closes the socket: `busy` when its frame exceeds the remaining budget, `silent` when the frame stalls. */
export type End = (why: 'busy' | 'silent') => void

export interface Arrivals {
  /** A frame has been delivered: bytes from now on belong to the next one. */
  delivered(): void
  /** A ping or pong with this payload has been delivered, possibly between the fragments of a message. */
  control(payloadBytes: number): void
  stop(): void
}

interface Watched {
  peer: Peer
  descriptor: number | null
  /** Bytes received on the connection when the last frame was delivered; null while unknown. */
  deliveredBytes: number | null
  receivedBytes: number
  /** When `receivedBytes` last changed, monotonic ms. */
  heardAt: number
  hold: BodyHold
  end: End
}

export class ArrivingFrames {
  readonly #clock: Clock
  readonly #bodies: BodyBudget
  readonly #open: () => TcpInfo | null
  readonly #watched = new Set<Watched>()
  /** Null until the first socket is watched, and where the system offers no TCP info. */
  #tcp: TcpInfo | null = null
  #isOpened = false
  #stopLooking: (() => void) | null = null
  #looks = 0

  constructor({ clock, bodies, open }: { clock: Clock; bodies: BodyBudget; open: () => TcpInfo | null }) {
    this.#clock = clock
    this.#bodies = bodies
    this.#open = open
  }

  watch(peer: Peer, end: End): Arrivals {
    const hold = this.#bodies.open(0)
    const watched: Watched = { peer, descriptor: null, deliveredBytes: null, receivedBytes: 0, heardAt: 0, hold, end }
    this.#watched.add(watched)
    this.#start()
    this.#find([watched])
    // A connection reused by a proxy has carried other requests before the upgrade.
    watched.deliveredBytes = this.#received(watched)
    return {
      delivered: () => {
        watched.hold.release()
        watched.deliveredBytes = this.#received(watched)
      },
      control: (payloadBytes) => {
        if (watched.deliveredBytes !== null) watched.deliveredBytes += CONTROL_HEADER_BYTES + payloadBytes
      },
      stop: () => {
        watched.hold.release()
        this.#watched.delete(watched)
        if (this.#watched.size > 0) return
        this.#stopLooking?.()
        this.#stopLooking = null
      },
    }
  }

  #start(): void {
    if (!this.#isOpened) {
      this.#isOpened = true
      this.#tcp = this.#open()
    }
    if (this.#tcp && this.#watched.size > 0) this.#stopLooking ??= this.#clock.every(CHECK_MS, () => this.#look())
  }

  #look(): void {
    const isRound = this.#looks++ % CHECKS_PER_ROUND === 0
    if (isRound) this.#findDescriptors()
    for (const watched of this.#watched) if (isRound || watched.hold.bytes > 0) this.#count(watched)
  }

  #findDescriptors(): void {
    const missing = [...this.#watched].filter(({ descriptor }) => descriptor === null)
    if (missing.length > 0) this.#find(missing)
  }

  #find(missing: readonly Watched[]): void {
    const found = this.#tcp?.find(missing.map(({ peer }) => peer)) ?? []
    for (const [n, watched] of missing.entries()) watched.descriptor = found[n] ?? null
  }

  #count(watched: Watched): void {
    const received = this.#received(watched)
    if (received === null) return
    watched.deliveredBytes ??= received
    const now = this.#clock.monotonic()
    if (received !== watched.receivedBytes) Object.assign(watched, { receivedBytes: received, heardAt: now })
    const bytes = received - watched.deliveredBytes
    try {
      this.#bodies.grow(watched.hold, bytes < MIN_BYTES ? 0 : bytes)
      if (watched.hold.bytes > 0 && now - watched.heardAt >= SILENT_MS) watched.end('silent')
    } catch {
      watched.end('busy')
    }
  }

  #received({ descriptor }: Watched): number | null {
    return descriptor === null ? null : (this.#tcp?.received(descriptor) ?? null)
  }
}
