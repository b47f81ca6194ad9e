/** Applies a fault to the events of a response; the resulting steps are the same for SSE and for WebSocket frames. */
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

/** The input of a plan. */
export type Planned =
  | { kind: 'event'; event: StreamEvent }
  /** Something that is not an event. */
  | { kind: 'garbage'; text: string }
  | { kind: 'wait'; ms: number }
  /** Nothing more, and no end. */
  | { kind: 'hang' }
  /** The connection breaks. */
  | { kind: 'sever' }
  /** A body ends early but cleanly; a socket closes with this code. */
  | { kind: 'close'; code: number; reason: string }
  /** A binary frame; a body has none. */
  | { kind: 'binary' }

export type Step =
  | Planned
  /** Events encoded beforehand. */
  | { kind: 'bytes'; bytes: Uint8Array; events: number; isLast: boolean }

const HELD_CHECK_MS = 50

const CLEAN_END: Planned = { kind: 'close', code: 1000, reason: '' }
const GARBAGE = 'event: response.output_text.delta\ndata: {"type":"respon\u0000\ufffd\n\n'

/** The steps of one response, created one by one as they are pulled. */
export function* planStream(frame: ResponseFrame, answer: Answer, fault: Fault | null): Generator<Planned> {
  const events = numbered(faultedEvents(frame, answer, fault))
  if (fault?.delayFirstEventMs) yield { kind: 'wait', ms: fault.delayFirstEventMs }
  const dripMs = fault?.dripMs ?? answer.dripMs ?? 0
  let sent = 0
  for (const event of events) {
    if (fault?.malformedChunk?.afterEvents === sent)
      yield { kind: 'garbage', text: fault.malformedChunk.text ?? GARBAGE }
    if (fault?.binaryFrame?.afterEvents === sent) yield { kind: 'binary' }
    if (fault && (yield* stopHere(fault, sent))) return
    if (fault?.omitTerminal && isTerminal(event)) return yield CLEAN_END
    if (dripMs > 0 && sent > 0) yield { kind: 'wait', ms: dripMs }
    while (answer.isHeld && isTerminal(event)) yield { kind: 'wait', ms: HELD_CHECK_MS }
    yield { kind: 'event', event }
    sent += 1
  }
  if (fault) yield* stopHere(fault, sent)
}

/** Ends or stalls the stream when its time has come; returns whether it did. */
function* stopHere(fault: Fault, sent: number): Generator<Planned, boolean> {
  if (fault.silence?.afterEvents === sent) yield { kind: 'hang' }
  const end = endAt(fault, sent)
  if (end) yield end
  return end !== null
}

function endAt({ close, terminate, dropAfter }: Fault, sent: number): Planned | null {
  if (close?.afterEvents === sent) return { kind: 'close', code: close.code, reason: close.reason ?? '' }
  if (terminate?.afterEvents === sent) return { kind: 'sever' }
  if (dropAfter?.events !== sent) return null
  return dropAfter.how === 'reset' ? { kind: 'sever' } : CLEAN_END
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
