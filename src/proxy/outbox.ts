/** The frames on their way to one downstream socket: in order, and no more of them than its client reads. */
import type { SocketPeer } from '../http/websocket.ts'
import type { Clock } from '../lib/clock.ts'
import { ClientGone } from './turn.ts'

const KEEPALIVE_MS = 8000
/** A client that reads nothing for this long while something is queued for it is closed. */
const STALLED_MS = 30_000
/** Of what is queued for a client: below it there is room for more. */
const RESUME_BYTES = 1024 * 1024

export class Outbox {
  readonly #ws: Bun.ServerWebSocket<SocketPeer>
  readonly #clock: Clock
  readonly #giveUp: () => void
  #isOpen = true
  /** While the client does not read: resolves when it does again. */
  #stalled: PromiseWithResolvers<void> | null = null
  /** `clock.monotonic()` from which on the time until a keepalive counts. */
  #quietSince = 0
  /** `clock.monotonic()` of the last sign that the client reads. */
  #readAt: number

  /** `giveUp`: the client reads nothing, or the runtime did not take a frame. */
  constructor(ws: Bun.ServerWebSocket<SocketPeer>, clock: Clock, giveUp: () => void) {
    this.#ws = ws
    this.#clock = clock
    this.#giveUp = giveUp
    this.#readAt = clock.monotonic()
  }

  /** The time until a keepalive begins anew, as it does with each turn. */
  wake(): void {
    this.#quietSince = this.#clock.monotonic()
  }

  /** Resolves when the client can take more; at once, and as undefined, when it reads along. Rejects with `ClientGone`. */
  send(texts: readonly string[]): Promise<void> | undefined {
    if (this.#stalled) return this.#sendLater(texts)
    for (let rest = texts; ; ) {
      const taken = this.#push(rest)
      if (taken === null) return Promise.reject(new ClientGone())
      const left = rest.slice(taken.count)
      if (taken.isFull) return this.#sendLater(left)
      if (left.length === 0) return undefined
      rest = left
    }
  }

  /** Sends the frame, or a ping where there is none, when nothing was sent for a while. `now`: `clock.monotonic()`. */
  keepAlive(now: number, frame: string | null): void {
    if (!this.#isOpen || this.#stalled || now - this.#quietSince < KEEPALIVE_MS) return
    this.#quietSince = now
    if (frame === null) this.#ws.ping()
    else this.send([frame])?.catch(() => {}) // who is gone needs none
  }

  ping(): void {
    if (this.#isOpen) this.#ws.ping()
  }

  /** The client has read what was queued. */
  drained(): void {
    this.#readAt = this.#clock.monotonic()
    this.#stalled?.resolve()
  }

  /**
   * To be called regularly. What is queued can also be the pongs that the runtime sends by itself, so this does not
   * depend on a send of ours waiting.
   */
  closeIfStalled(now: number): void {
    if (!this.#isOpen) return
    if (this.#ws.getBufferedAmount() === 0) this.#readAt = now
    else if (now - this.#readAt >= STALLED_MS) this.#giveUp()
  }

  /** Nothing more is sent. Of several reasons the first is told. */
  close(code: number, reason: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#ws.close(code, reason)
  }

  /** Drops the connection without waiting for the client. */
  terminate(): void {
    this.#ws.terminate()
  }

  /** The socket is gone; who waits for room is told. */
  end(): void {
    this.#isOpen = false
    this.drained()
  }

  /** How many frames were taken until the client stopped reading along; null when it is gone. */
  #push(texts: readonly string[]): { count: number; isFull: boolean } | null {
    if (!this.#isOpen) return null
    const taken = { count: 0, isFull: false }
    this.#ws.cork(() => {
      for (const text of texts) {
        const sent = this.#ws.send(text)
        if (sent === 0) return this.#giveUp() // it was not taken: a hole in the stream must not go unnoticed
        taken.count++
        taken.isFull = sent === -1
        if (taken.isFull) return
      }
    })
    if (taken.count > 0) this.wake() // of a batch that is hidden nothing is
    taken.isFull &&= this.#ws.getBufferedAmount() > 0
    return this.#isOpen ? taken : null
  }

  /** What comes while others wait is sent after them: a full queue would not take it, and the client that reads would be cut off. */
  #sendLater(texts: readonly string[]): Promise<void> {
    return this.#untilDrained().then(() => this.send(texts))
  }

  /** The runtime tells of each part that was read; of a frame larger than the queue the first leaves no room for another. */
  async #untilDrained(): Promise<void> {
    do await this.#untilRead()
    while (this.#isOpen && this.#ws.getBufferedAmount() > RESUME_BYTES)
    if (!this.#isOpen) throw new ClientGone()
  }

  async #untilRead(): Promise<void> {
    this.#stalled ??= Promise.withResolvers()
    const stalled = this.#stalled
    await stalled.promise
    if (this.#stalled === stalled) this.#stalled = null
  }
}
