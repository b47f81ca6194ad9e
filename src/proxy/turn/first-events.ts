/** Reads a new stream up to the commit point: holds back events without content and turns an early failure into a throw. */
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import type { UpstreamStream } from '../../upstream/stream.ts'
import { failureFromEvent, type UpstreamFailure } from '../exchange/classify.ts'
import { absorbRateEvent } from '../exchange/rate-headers.ts'
import { AttemptFailed } from './attempt-one.ts'
import { Flow } from './flow.ts'
import { isHeld, type Meter } from './meter.ts'
import type { Slot } from './open-answer.ts'
import type { ProxyDeps } from './proxy-deps.ts'
import { elapsedMs, releaseRequest, type Turn } from './turn.ts'

const HOLD_BYTES = 64 * 1024

export interface FreshStream {
  lease: Slot
  stream: UpstreamStream
  controller: AbortController
  /** The upstream headers the client gets. All of them would stay in memory as long as the stream. */
  headers: Readonly<Record<string, string>>
  /** The token the attempt used; null at a model source. */
  accessToken: string | null
  /** Reads the events; one for Responses events when absent. */
  meter?: Meter
}

/** Resolves at the first event that commits. Rejects with the attempt's failure. */
export const readToCommit = async (proxyDeps: ProxyDeps, turn: Turn, fresh: FreshStream): Promise<Flow> => {
  const held: SseEvent[] = []
  let heldBytes = 0
  for (;;) {
    const batch = await fresh.stream.read()
    if (batch === null) throw new AttemptFailed(endedEarly, proxyDeps.clock.now())
    for (const event of batch)
      if (event.type === 'codex.rate_limits' && fresh.lease.account)
        absorbRateEvent(proxyDeps, fresh.lease.account.id, event)
    for (const [index, event] of batch.entries()) {
      if (!isHeld(event.type) || heldBytes >= HOLD_BYTES) {
        if (isFailure(event.type)) throw failed(proxyDeps, event, fresh.accessToken)
        return commitTo(proxyDeps, turn, { fresh, first: [...held, ...batch.slice(index)] })
      }
      held.push(event)
      heldBytes += event.bytes.length
    }
  }
}

const isFailure = (type: string | null): boolean => type === 'response.failed' || type === 'error'

/** Hands the stream over to a flow that begins with `first`. */
export const commitTo = (
  proxyDeps: ProxyDeps,
  turn: Turn,
  begun: { fresh: FreshStream; first: readonly SseEvent[] },
): Flow => {
  turn.log.firstEventMs = elapsedMs(turn.arrivedAt, proxyDeps.clock.monotonic())
  turn.log.phase = 'stream'
  releaseRequest(turn)
  return new Flow(proxyDeps, turn, begun)
}

const failed = ({ clock }: ProxyDeps, event: SseEvent, accessToken: string | null): Error => {
  const at = clock.now()
  return new AttemptFailed(failureFromEvent(eventJson(event.bytes), at) ?? endedEarly, at, accessToken)
}

/** The upstream closed the stream before its terminal event. */
export const endedEarly: UpstreamFailure = Object.freeze({
  where: 'stream',
  status: null,
  code: 'stream_incomplete',
  type: null,
  message: 'The stream from ChatGPT ended before the response was complete.',
  resetsAt: null,
  retryAfterMs: null,
})
