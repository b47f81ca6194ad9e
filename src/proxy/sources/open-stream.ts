/** Opens a streamed answer of a model source up to its commit point; from there it is a turn's stream like any other. */
import { AppError } from '../../errors.ts'
import { parseJson } from '../../lib/json.ts'
import { SseStream } from '../../upstream/stream.ts'
import { endedEarly, failureFromThrown } from '../exchange/classify.ts'
import { AttemptFailed, readToCommit } from '../turn/attempt-one.ts'
import { CapturedStream } from '../turn/capture.ts'
import { commitTo, type Flow } from '../turn/flow.ts'
import type { ProxyDeps } from '../turn/proxy-deps.ts'
import type { Turn } from '../turn/turn.ts'
import { AudioMeter } from './audio-answer.ts'
import { attemptFailed, callSource, errorIn, type SourceRequest } from './call.ts'
import { ChatEvents, ChatMeter } from './chat-answer.ts'
import { notJson, sourceFailure, sourceTimeoutError } from './source-errors.ts'
import type { SourceSlot } from './source-slot.ts'

type Dialect = 'chat' | 'responses' | 'audio' | 'embeddings'

export interface StreamRequest {
  seat: SourceSlot
  request: SourceRequest
  dialect: Dialect
}

/** Rejects with the error for the client, or the turn's abort reason; the seat is free then. */
export const openStream = async (
  proxyDeps: ProxyDeps,
  turn: Turn,
  { seat, request, dialect }: StreamRequest,
): Promise<Flow> => {
  const { source } = seat
  const controller = new AbortController()
  const onAbort = () => controller.abort(turn.signal.reason)
  turn.signal.addEventListener('abort', onAbort)
  if (turn.signal.aborted) onAbort()
  const cancelLimit = proxyDeps.clock.after(source.timeoutMs, () => controller.abort(sourceTimeoutError(source)))
  try {
    const { response, blot } = await callSource(proxyDeps, turn, { source, request, signal: controller.signal })
    const { body, headers } = response
    if (!body || !isEventStream(headers)) {
      void body?.cancel().catch(() => {}) // an unread body keeps its connection
      const contentType = blot.text(headers.get('content-type') ?? 'no content type')
      throw notJson(source, `${contentType} in place of an event stream`)
    }
    turn.log.phase = 'first_event'
    const events = new SseStream(blot.stream(body), proxyDeps.clock, dialect === 'responses' && turn.passesDeltas)
    controller.signal.addEventListener('abort', () => events.cancel())
    const stream = turn.capture ? new CapturedStream(events, turn.capture) : events
    const fresh = { lease: { account: null, release: seat.release }, controller, headers: {}, accessToken: null }
    if (dialect === 'chat') return await chatToCommit(proxyDeps, turn, { ...fresh, stream })
    return await readToCommit(proxyDeps, turn, {
      ...fresh,
      stream,
      ...(dialect === 'audio' && { meter: new AudioMeter() }),
    })
  } catch (cause) {
    seat.release()
    if (turn.signal.aborted) throw turn.signal.reason
    const reason: unknown = controller.signal.reason ?? cause
    controller.abort()
    const failure = reason instanceof AttemptFailed ? reason.failure : failureFromThrown(reason, 'stream')
    throw attemptFailed(turn, reason instanceof AppError ? reason : sourceFailure(source, failure))
  } finally {
    cancelLimit()
    turn.signal.removeEventListener('abort', onAbort) // the flow adds its own listener
  }
}

const isEventStream = (headers: Headers): boolean =>
  headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') ?? false

type Fresh = Parameters<typeof readToCommit>[2]

/** The first event commits, unless it is an error. */
const chatToCommit = async (proxyDeps: ProxyDeps, turn: Turn, fresh: Fresh): Promise<Flow> => {
  const stream = new ChatEvents(fresh.stream)
  const first = await stream.read()
  if (first === null) throw new AttemptFailed(endedEarly, proxyDeps.clock.now())
  for (const { data } of first) {
    if (data === null) continue
    const error = errorIn(parseJson(data))
    if (error) throw new AppError('model_source_error', { message: error.message, upstream: error })
    break
  }
  return commitTo(proxyDeps, turn, { fresh: { ...fresh, stream, meter: new ChatMeter() }, first })
}
