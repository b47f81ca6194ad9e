/** What a capture records of a request that it wants: the request when it is admitted, and the events as they are read. */
import type { CaptureRecorder } from '../../model/captures/recorder.ts'
import type { Batch, UpstreamStream } from '../../upstream/stream.ts'
import type { Admission } from './admit.ts'
import type { Arrival } from './turn.ts'

/**
 * Live calls are not captured: what they send describes connections between the client and ChatGPT, and is never stored.
 */
export const captureOf = (
  { env, headers, client }: Arrival,
  { route, path, kind, relay, body, transport = 'http' }: Admission,
  { id, model }: { id: string; model: string | null },
): CaptureRecorder | null => {
  if (relay?.surface === 'live') return null
  const query = relay ? (/\?.*$/s.exec(path)?.[0] ?? '') : ''
  return env.captures.record({
    id,
    method: transport === 'websocket' ? 'WebSocket' : (relay?.plan.method ?? 'POST'),
    target: route + query,
    transport,
    requestKind: kind,
    model,
    keyId: client.key?.id ?? null,
    headers,
    body: body.hold.received ?? body.bytes,
  })
}

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
