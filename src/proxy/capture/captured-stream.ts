/** An upstream stream whose events are also recorded for a capture. Reading does not wait for that. */
import type { CaptureRecorder } from '../../model/captures/recorder.ts'
import type { Batch, UpstreamStream } from '../../upstream/stream.ts'

export class CapturedStream implements UpstreamStream {
  readonly #stream: UpstreamStream
  readonly #capture: CaptureRecorder

  constructor(stream: UpstreamStream, capture: CaptureRecorder) {
    this.#stream = stream
    this.#capture = capture
  }

  read(): Promise<Batch | null> {
    return this.#stream.read().then(this.#onBatch)
  }

  readonly #onBatch = (batch: Batch | null): Batch | null => {
    if (batch) this.#capture.events(batch)
    return batch
  }

  cancel(): void {
    this.#stream.cancel()
  }

  drain(): void {
    this.#stream.drain()
  }
}
