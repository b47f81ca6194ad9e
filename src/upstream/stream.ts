/** A model stream from the upstream as batches of whole events, whatever the transport that carries it. */
import type { Clock } from '../lib/clock.ts'
import { type SseEvent, SseScanner } from '../lib/sse.ts'
import { wholeText } from './bounded-body.ts'
import { FrameEvent } from './frame-event.ts'

/** Events that arrived together; never empty. */
export type Batch = readonly SseEvent[]

export interface UpstreamStream {
  /** The next events, or null once the upstream has ended the stream. Rejects when the transport breaks. */
  read(): Promise<Batch | null>
  /** Ends it; nothing more is read. */
  cancel(): void
  /** Lets the transport finish by itself after the terminal event, so that its connection can be used again. */
  drain(): void
}

/** As much as one event may have. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024

/** An answer that is one JSON document, seen as a stream of its terminal event alone. */
export class DocumentStream implements UpstreamStream {
  readonly #response: Response
  #isRead = false

  constructor(response: Response) {
    this.#response = response
  }

  async read(): Promise<Batch | null> {
    if (this.#isRead) return null
    this.#isRead = true
    const response: unknown = JSON.parse(await wholeText(this.#response, MAX_DOCUMENT_BYTES))
    const event = { type: 'response.completed', response }
    return [new FrameEvent(JSON.stringify(event))]
  }

  cancel(): void {
    if (!this.#isRead) void this.#response.body?.cancel().catch(() => {}) // it may be gone already
  }

  drain(): void {}
}

type Chunk = { done: false; value: Uint8Array } | { done: true; value?: undefined }

/** Splits the body of an SSE response. An unfinished last event is not an event (client protocol §3.6). */
export class SseStream implements UpstreamStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #scanner: SseScanner

  readonly #clock: Clock

  /** `inRuns`: as `SseScanner` has it. */
  constructor(body: ReadableStream<Uint8Array>, clock: Clock, inRuns = false) {
    this.#scanner = new SseScanner({ inRuns })
    this.#clock = clock
    this.#reader = body.getReader()
  }

  /** No async function: it runs for every chunk of every stream, and its frame would cost more than its work. */
  read(): Promise<Batch | null> {
    return this.#reader.read().then(this.#onChunk)
  }

  readonly #onChunk = ({ done, value }: Chunk): Batch | null | Promise<Batch | null> => {
    if (done) return null
    const events = this.#scanner.push(value)
    return events.length > 0 ? events : this.read()
  }

  cancel(): void {
    void this.#reader.cancel().catch(() => {}) // the connection may be gone already, which is what is wanted
  }

  /**
   * The end usually follows at once, and is told without a read, whose buffer costs a twentieth of a turn (measured). What
   * comes instead is read; an upstream that goes on talking, or stays silent, is cut off.
   */
  drain(): void {
    if (Bun.peek.status(this.#reader.closed) === 'fulfilled') return // it came whole
    const stopWaiting = this.#clock.after(SOON_MS, () => this.#readOn())
    void this.#reader.closed
      .catch(() => {}) // as in cancel
      .finally(stopWaiting)
  }

  #readOn(): void {
    const cutOff = this.#clock.after(DRAIN_MS, () => this.cancel())
    void this.#readToEnd()
      .catch(() => {}) // as in cancel
      .finally(cutOff)
  }

  async #readToEnd(): Promise<void> {
    for (let reads = 0; reads < 4; reads++) if ((await this.#reader.read()).done) return
    await this.#reader.cancel()
  }
}

const SOON_MS = 50
const DRAIN_MS = 1000
