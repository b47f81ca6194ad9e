/** The frames that answer one turn on a socket, as the stream of batches any transport gives. */
import type { FrameEvent } from './frame-event.ts'
import type { Batch, UpstreamStream } from './stream.ts'

/** What the stream asks of its socket. */
interface FrameSource {
  pause(): void
  resume(): void
  terminate(): void
}

/** More than this waiting to be read pauses the socket; what it has read by then still comes (measured: up to 0.5 MB). */
export const MAX_QUEUED_BYTES = 1024 * 1024
/** What a waiting frame costs beside its text. */
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

  /** One more frame of `length` bytes. */
  push(event: FrameEvent, length: number): void {
    this.#queue.push(event)
    this.#queuedBytes += length + FRAME_OVERHEAD_BYTES
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#source.pause()
    this.#wakeUp()
  }

  /** Nothing more comes. What waits can still be read; after it reads give null, or reject with `error`. */
  end(error: Error | null): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#error = error
    this.#wakeUp()
  }

  /** Everything that waits, as one batch: so the queue is empty after each read. One read at a time. */
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
   * What was asked cannot be taken back, and the rest of its answer must not meet the next turn: the socket goes. Reads
   * reject with `reason`, or give null without one. After the terminal event only what waits is dropped.
   */
  cancel(reason: Error | null = null): void {
    if (!this.#isOver) {
      this.end(reason)
      this.#source.terminate()
    }
    this.#forget()
  }

  /** The socket is free since the terminal event came. */
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
