/** Frames queued for one client socket, in order and no faster than the client reads. */
import type { SocketPeer } from '../../http/websocket.ts'
import type { Clock } from '../../lib/clock.ts'
import { ClientGone } from '../turn/turn.ts'

const KEEPALIVE_MS = 8000
/** A client that reads nothing for this long while frames are queued is disconnected. */
const STALLED_MS = 30_000
/** Sending resumes when fewer bytes than this are queued. */
const RESUME_BYTES = 1024 * 1024

/** Text, or a binary frame of a live call. */
type OutgoingFrame = string | Uint8Array<ArrayBuffer>

export class Outbox {
  readonly #ws: Bun.ServerWebSocket<SocketPeer>
  readonly #clock: Clock
  readonly #giveUp: () => void
  #isOpen = true
  /** Set while the client is not reading; resolves when it reads again. */
  #stalled: PromiseWithResolvers<void> | null = null
  /** `clock.monotonic()` at which the keepalive interval started. */
  #quietSince = 0
  /** `clock.monotonic()` when the client was last seen reading. */
  #readAt: number

  /** `giveUp`: called when the client stops reading or the runtime drops a frame. */
  constructor(ws: Bun.ServerWebSocket<SocketPeer>, clock: Clock, giveUp: () => void) {
    this.#ws = ws
    this.#clock = clock
    this.#giveUp = giveUp
    this.#readAt = clock.monotonic()
  }

  /** Restarts the keepalive interval, as each turn does. */
  wake(): void {
    this.#quietSince = this.#clock.monotonic()
  }

  /** Undefined when the client keeps up; otherwise resolves when it can take more. Rejects with `ClientGone`. */
  send(texts: readonly OutgoingFrame[]): Promise<void> | undefined {
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

  /** Sends the frame, or a ping for null, when nothing has been sent for a while. `now`: `clock.monotonic()`. */
  keepAlive(now: number, frame: string | null): void {
    if (!this.#isOpen || this.#stalled || now - this.#quietSince < KEEPALIVE_MS) return
    this.#quietSince = now
    if (frame === null) this.#ws.ping()
    else this.send([frame])?.catch(() => {}) // no keepalive for a disconnected client
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
   * Call regularly. The queue may also hold pongs that the runtime sends itself, so this does not depend on our own
   * sends.
   */
  closeIfStalled(now: number): void {
    if (!this.#isOpen) return
    if (this.#ws.getBufferedAmount() === 0) this.#readAt = now
    else if (now - this.#readAt >= STALLED_MS) this.#giveUp()
  }

  /** Sends nothing more. Only the first call's code and reason are used. */
  close(code: number, reason: string): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#ws.close(code, reason)
  }

  /** Drops the connection without waiting for the client. */
  terminate(): void {
    this.#ws.terminate()
  }

  /** The socket is closed; pending sends are rejected. */
  end(): void {
    this.#isOpen = false
    this.drained()
  }

  /** Number of frames accepted until the queue was full; null when the client is gone. */
  #push(texts: readonly OutgoingFrame[]): { count: number; isFull: boolean } | null {
    if (!this.#isOpen) return null
    const taken = { count: 0, isFull: false }
    this.#ws.cork(() => {
      for (const text of texts) {
        const sent = this.#ws.send(text)
        if (sent === 0) return this.#giveUp() // a dropped frame must not leave a silent gap in the stream
        taken.count++
        taken.isFull = sent === -1
        if (taken.isFull) return
      }
    })
    if (taken.count > 0) this.wake() // a batch hidden from this client sends nothing
    taken.isFull &&= this.#ws.getBufferedAmount() > 0
    return this.#isOpen ? taken : null
  }

  /** Keeps order: sends that arrive while others wait go after them, because a full queue would drop them. */
  #sendLater(texts: readonly OutgoingFrame[]): Promise<void> {
    return this.#untilDrained().then(() => this.send(texts))
  }

  /** The runtime reports each part that was read; after the first part of a large frame the queue may still be full. */
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
