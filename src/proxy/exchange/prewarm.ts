/** A prewarm without an upstream socket: answered here, and its input is put before that of the next turn (decisions §3). */
import { FrameEvent } from '../../upstream/frame-event.ts'
import type { Batch, UpstreamStream } from '../../upstream/stream.ts'

/** Limit on the body including earlier prewarms. A longer one is not kept, so the client must resend everything. */
export const MAX_PREWARM_BYTES = 1024 * 1024

/** The two events of a response that generated nothing. */
export class PrewarmStream implements UpstreamStream {
  #events: readonly FrameEvent[]

  /** `createdAt` in whole seconds since epoch. */
  constructor({ id, createdAt, model }: { id: string; createdAt: number; model: string | null }) {
    const response = { id, object: 'response', created_at: createdAt, model, output: [] }
    const usage = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
    this.#events = [
      { type: 'response.created', sequence_number: 0, response: { ...response, status: 'in_progress' } },
      { type: 'response.completed', sequence_number: 1, response: { ...response, status: 'completed', usage } },
    ].map((event) => new FrameEvent(JSON.stringify(event)))
  }

  async read(): Promise<Batch | null> {
    const events = this.#events
    this.#events = []
    return events.length === 0 ? null : events
  }

  cancel(): void {}

  drain(): void {}
}
