/**
 * Counts the frames that are still arriving on downstream sockets in the budget of all bodies. The runtime reports a frame only
 * when it is complete, and keeps what has arrived of it in memory; so the system is asked how much each connection has received.
 */
import type { Clock } from '../lib/clock.ts'
import type { Peer, TcpInfo } from '../lib/tcp-info.ts'
import type { BodyBudget, BodyHold } from './raw-body.ts'

/** Over loopback a gigabyte arrives in a second. */
const LOOK_MS = 50
/** Sockets on which nothing large was arriving are looked at only every so many times: a look costs about 2 µs. */
const LOOKS_PER_ROUND = 2
/** Less than this is not counted: small frames, and what the system still holds of the next one. */
const MIN_BYTES = 256 * 1024

/** A client that sends nothing for this long in the middle of a frame has stopped. */
const SILENT_MS = 30_000

/** Of a ping or pong of a client: two bytes of header and the mask (RFC 6455 §5.2; its payload is at most 125 bytes). */
const CONTROL_HEADER_BYTES = 6

/** Cuts the socket off: `busy` when its frame exceeds what is left of the budget, `silent` when no more of it arrives. */
export type End = (why: 'busy' | 'silent') => void

export interface Arrivals {
  /** A frame has been delivered: what arrives from now on belongs to the next one. */
  delivered(): void
  /** A ping or pong with this payload has been delivered, perhaps between the fragments of a message. */
  control(payloadBytes: number): void
  stop(): void
}

interface Watched {
  peer: Peer
  descriptor: number | null
  /** What had been received when the last frame was delivered, since the connection was opened; null while that is unknown. */
  deliveredBytes: number | null
  receivedBytes: number
  /** When `receivedBytes` last changed. */
  heardAt: number
  hold: BodyHold
  end: End
}

export class ArrivingFrames {
  readonly #clock: Clock
  readonly #bodies: BodyBudget
  readonly #open: () => TcpInfo | null
  readonly #watched = new Set<Watched>()
  /** null until the first socket is watched, and where the system cannot be asked. */
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
    // A connection that a proxy reuses has carried other requests before the upgrade.
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
    if (this.#tcp && this.#watched.size > 0) this.#stopLooking ??= this.#clock.every(LOOK_MS, () => this.#look())
  }

  #look(): void {
    const isRound = this.#looks++ % LOOKS_PER_ROUND === 0
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
