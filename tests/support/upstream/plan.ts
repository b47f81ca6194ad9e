/** Applies a fault to the events of an answer; the resulting steps are the same for SSE and for WebSocket frames. */
import {
  answerEvents,
  failedEvent,
  incompleteEvent,
  isTerminal,
  numbered,
  type ResponseFrame,
  type StreamEvent,
} from './events.ts'
import type { Fault } from './faults.ts'
import { type Answer, answers } from './script.ts'
import { rateLimitsEvent } from './usage.ts'

export type Step =
  | { kind: 'event'; event: StreamEvent }
  /** Something that is not an event. */
  | { kind: 'garbage'; text: string }
  /** Events encoded beforehand. */
  | { kind: 'bytes'; bytes: Uint8Array; events: number; isLast: boolean }
  | { kind: 'wait'; ms: number }
  /** Nothing more, and no end. */
  | { kind: 'hang' }
  /** The connection breaks. */
  | { kind: 'sever' }

const GARBAGE = 'event: response.output_text.delta\ndata: {"type":"respon\u0000\ufffd\n\n'

/** The steps of one response, made one by one as they are asked for. */
export function* planStream(frame: ResponseFrame, answer: Answer, fault: Fault | null): Generator<Step> {
  const events = numbered(faultedEvents(frame, answer, fault))
  if (fault?.delayFirstEventMs) yield { kind: 'wait', ms: fault.delayFirstEventMs }
  const dripMs = fault?.dripMs ?? answer.dripMs ?? 0
  let sent = 0
  for (const event of events) {
    if (fault?.malformedChunk?.afterEvents === sent)
      yield { kind: 'garbage', text: fault.malformedChunk.text ?? GARBAGE }
    if (fault && (yield* stopHere(fault, sent))) return
    if (fault?.omitTerminal && isTerminal(event)) return
    if (dripMs > 0 && sent > 0) yield { kind: 'wait', ms: dripMs }
    yield { kind: 'event', event }
    sent += 1
  }
  if (fault) yield* stopHere(fault, sent)
}

/** Ends or stalls the stream when its time has come; returns whether it did. */
function* stopHere(fault: Fault, sent: number): Generator<Step, boolean> {
  if (fault.silence?.afterEvents === sent) yield { kind: 'hang' }
  if (fault.dropAfter?.events !== sent) return false
  if (fault.dropAfter.how === 'reset') yield { kind: 'sever' }
  return true
}

function* faultedEvents(frame: ResponseFrame, answer: Answer, fault: Fault | null): Generator<StreamEvent> {
  if (fault?.rateLimitsEvent) yield rateLimitsEvent(frame.turn.account)
  const { manyEvents, failAfterCreated, errorEvent, incomplete } = fault ?? {}
  const played = manyEvents ? answers.bulk(manyEvents.count, manyEvents.bytes) : answer
  const events = answerEvents(frame, played)
  if (failAfterCreated) {
    const { afterEvents = 1, ...error } = failAfterCreated
    yield* first(events, afterEvents)
    yield failedEvent(frame, error)
  } else if (errorEvent) {
    const { afterEvents = 1, ...error } = errorEvent
    yield* first(events, afterEvents)
    yield { type: 'error', ...error }
  } else if (incomplete) {
    for (const event of events) yield isTerminal(event) ? incompleteEvent(frame, event, incomplete.reason) : event
  } else yield* events
}

function* first(events: Iterable<StreamEvent>, count: number): Generator<StreamEvent> {
  let left = count
  if (left === 0) return
  for (const event of events) {
    yield event
    left -= 1
    if (left === 0) return
  }
}
