/** An upstream model stream as batches of whole events, independent of the transport. */
import type { Clock } from '../lib/clock.ts'
import { type SseEvent, SseScanner } from '../lib/sse.ts'
import { wholeText } from './bounded-body.ts'
import { FrameEvent } from './frame-event.ts'

/** Events that arrived together; never empty. */
export type Batch = readonly SseEvent[]

export type Terminal = 'response.completed' | 'response.incomplete' | 'response.failed' | 'error'

export const isTerminal = (type: string | null): type is Terminal => type !== null && TERMINALS.has(type)

const TERMINALS: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'response.failed',
  'error',
] satisfies Terminal[])

export interface UpstreamStream {
  /** The next events, or null after the upstream ended the stream. Rejects when the transport breaks. */
  read(): Promise<Batch | null>
  /** Ends the stream. */
  cancel(): void
  /** Lets the transport finish after the terminal event, so that its connection can be reused. */
  drain(): void
}

/** The size limit of a single event. */
const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024

/** A single JSON document as a stream with only a terminal event. */
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
    if (!this.#isRead) void this.#response.body?.cancel().catch(() => {}) // it may be closed already
  }

  drain(): void {}
}

type Chunk = { done: false; value: Uint8Array } | { done: true; value?: undefined }

/** Splits the body of an SSE response. An incomplete last event is ignored (Codex CLI 0.169). */
export class SseStream implements UpstreamStream {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #scanner: SseScanner

  readonly #clock: Clock

  /** `inRuns`: see `SseScanner`. */
  constructor(body: ReadableStream<Uint8Array>, clock: Clock, inRuns = false) {
    this.#scanner = new SseScanner({ inRuns })
    this.#clock = clock
    this.#reader = body.getReader()
  }

  /** Not async: it runs for every chunk, and an async frame would cost more than the work. */
  read(): Promise<Batch | null> {
    return this.#reader.read().then(this.#onChunk)
  }

  readonly #onChunk = ({ done, value }: Chunk): Batch | null | Promise<Batch | null> => {
    if (done) return null
    const events = this.#scanner.push(value)
    return events.length > 0 ? events : this.read()
  }

  cancel(): void {
    void this.#reader.cancel().catch(() => {}) // the connection may already be closed, which is fine
  }

  /**
   * The end usually follows immediately and is detected without a read, whose buffer costs 5 % of a turn (Bun 1.4.5).
   * Further data is read; an upstream that keeps sending, or stays silent, is cut off.
   */
  drain(): void {
    if (Bun.peek.status(this.#reader.closed) === 'fulfilled') return // it is complete
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
