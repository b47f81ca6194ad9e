/** The frames that answer one turn on a socket, as an `UpstreamStream`. */
import type { FrameEvent } from './frame-event.ts'
import type { Batch, UpstreamStream } from './stream.ts'

/** The part of the socket that the stream uses. */
interface FrameSource {
  pause(): void
  resume(): void
  terminate(): void
}

/**
 * The socket is paused when more than this is queued; what it has already read still arrives (Bun 1.4.5: up to 0.5 MB).
 */
export const MAX_QUEUED_BYTES = 1024 * 1024
/** Memory per queued frame in addition to its text. */
const FRAME_OVERHEAD_BYTES = 128

export class SocketStream implements UpstreamStream {
  readonly #source: FrameSource
  #queue: FrameEvent[] = []
  #queuedBytes = 0
  #isOver = false
  #error: Error | null = null
  #wake: (() => void) | null = null

  constructor(source: FrameSource) {
    this.#source = source
  }

  get queuedBytes(): number {
    return this.#queuedBytes
  }

  push(event: FrameEvent, length: number): void {
    this.#queue.push(event)
    this.#queuedBytes += length + FRAME_OVERHEAD_BYTES
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#source.pause()
    this.#wakeUp()
  }

  /** Ends the stream. Queued frames can still be read; then reads return null or reject with `error`. */
  end(error: Error | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#wakeUp()
  }

  /** Returns everything queued as one batch. One read at a time. */
  async read(): Promise<Batch | null> {
    while (this.#queue.length === 0) {
      if (this.#error) throw this.#error
      if (this.#isOver) return null
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    const events = this.#queue
    this.#forget()
    if (!this.#isOver) this.#source.resume()
    return events
  }

  /**
   * Closes the socket, because the request cannot be withdrawn and the rest of its answer must not mix with the next
   * turn. Reads reject with `reason`, or return null. After the terminal event, only drops the queue.
   */
  cancel(reason: Error | null = null): void {
    if (!this.#isOver) {
      this.end(reason)
      this.#source.terminate()
    }
    this.#forget()
  }

  /** The terminal event has already freed the socket. */
  drain(): void {}

  #forget(): void {
    this.#queue = []
    this.#queuedBytes = 0
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = null
  }
}
