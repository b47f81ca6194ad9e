/** What each kind of client is sent of a turn: the native one everything as it came, the public API its own subset, chat its own dialect. */
import type { AppError } from '../errors.ts'
import { isObject, objectOf } from '../lib/json.ts'
import type { Random } from '../lib/random.ts'
import { piecesOf, type SseEvent } from '../lib/sse.ts'
import { eventJson, frame } from '../lib/sse-payload.ts'
import { mentionsAccountFacts, withoutAccountFacts } from './formats/account-facts.ts'
import { ChatStream, type ChatStreamOptions } from './formats/chat-stream.ts'
import { keepaliveComment, keepaliveEvent, responseCreatedEvent, responseFailedEvent } from './formats/failed-event.ts'
import { publicEvent } from './formats/public-events.ts'
import type { ResponsesEvent } from './formats/responses-event.ts'
import { SaidItems } from './formats/said-items.ts'
import type { Meter } from './meter.ts'

/** Writes one stream. Its methods are called in order, `fail` at most once and last. */
export interface Contract {
  /** Bytes for events that arrived together, in pieces; none when no event of them is for this client. */
  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[]
  /** Bytes of the one terminal event of a stream that could not be finished. */
  fail(err: AppError, meter: Meter | null): Uint8Array
  /** Sent when nothing else was for a while. */
  readonly keepalive: Uint8Array
}

export interface ContractOptions {
  /** Whole seconds since epoch. */
  createdAt: number
  /** The pool's own quota is none of this client's business. */
  hidesQuota: boolean
  random: Random
}

/** The native client ignores an `error` event, and would wait for a terminal one (client protocol §1). */
export class NativeContract implements Contract {
  readonly #options: ContractOptions

  constructor(options: ContractOptions) {
    this.#options = options
  }

  get keepalive(): Uint8Array {
    return keepaliveEvent
  }

  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[] {
    const { createdAt, hidesQuota } = this.#options
    const shown = hidesQuota ? events.filter(({ type }) => type !== 'codex.rate_limits') : events
    if (meter.terminal !== 'error') return relayed(shown)
    const told = (event: SseEvent) => (event.type === 'error' ? toPublic(event, meter, createdAt) : null)
    return joined(shown.map((event) => told(event) ?? withoutAccountFacts(event).bytes))
  }

  fail(err: AppError, meter: Meter | null): Uint8Array {
    return failedEvent(err, meter, this.#options.createdAt)
  }
}

/**
 * The helpers of SDKs take nothing before a `response.created`, and would tell of that and not of the failure; some want
 * the `model` in it.
 */
export const publicContract = ({ createdAt, random }: ContractOptions, model: string | null): Contract => {
  const said = new SaidItems()
  let isBegun = false
  return {
    write: (events, meter) => {
      const out: Uint8Array[] = []
      for (const each of events) {
        const event = withoutAccountFacts(each)
        if (said.needs(event.type)) said.push(parsed(event.bytes, event.type))
        const bytes = REFILLED.has(event.type) ? refilled(event, said) : toPublic(event, meter, createdAt)
        if (bytes) out.push(bytes)
      }
      isBegun ||= out.length > 0
      return joined(out)
    },
    fail: (err, meter) => {
      if (isBegun) return failedEvent(err, meter, createdAt)
      const responseId = meter?.responseId ?? random.id('resp')
      const failed = responseFailedEvent(err, { responseId, sequenceNumber: 1, createdAt })
      return Buffer.concat([responseCreatedEvent({ id: responseId, model, createdAt }), failed])
    },
    keepalive: keepaliveComment,
  }
}

export const chatContract = (options: ChatStreamOptions): Contract => {
  const chat = new ChatStream(options)
  return {
    write: (events) => {
      const out: Uint8Array[] = []
      for (const { type, bytes } of events) {
        if (type === null || !chat.needs(type)) continue
        const chunk = chat.push(parsed(bytes, type))
        if (chunk) out.push(chunk)
      }
      return joined(out.length === 0 ? [chat.begin() ?? []].flat() : out)
    },
    fail: (err) => chat.fail(err),
    keepalive: keepaliveComment,
  }
}

export const parsed = (bytes: Uint8Array, type: string): ResponsesEvent => ({ ...objectOf(eventJson(bytes)), type })

const toPublic = (event: SseEvent, meter: Meter, createdAt: number): Uint8Array | null =>
  publicEvent(
    { type: event.type, bytes: event.bytes, parse: () => parsed(event.bytes, event.type ?? 'error') },
    // An `error` event is the last the meter has counted, and what replaces it takes its number.
    { createdAt, responseId: meter.responseId ?? undefined, sequenceNumber: Math.max(0, meter.events - 1) },
  )

/** Of the last event, in which the upstream leaves `output` empty, null or out; SDKs read the final answer from there. */
const REFILLED: ReadonlySet<string | null> = new Set(['response.completed', 'response.incomplete'])

/** The last event, with what the items said where it leaves that out. */
const refilled = (event: SseEvent, said: SaidItems): Uint8Array => {
  const ended = objectOf(eventJson(event.bytes))
  if (!isObject(ended.response)) return event.bytes
  const { output } = ended.response
  if (Array.isArray(output) && (output.length > 0 || said.isEmpty)) return event.bytes
  const type = `${event.type}`
  return frame({ ...ended, type, response: said.responseOf({ ...ended, type }) })
}

/** Searched in the pieces they leave in: nearly no event holds account facts. */
const relayed = (events: readonly SseEvent[]): readonly Uint8Array[] => {
  const pieces = piecesOf(events)
  if (pieces.some(mentionsAccountFacts)) return joined(events.map((event) => withoutAccountFacts(event).bytes))
  return pieces.length <= FEW_PIECES ? pieces : joined(pieces)
}

/** An event that came in two chunks, and what lay around it. */
const FEW_PIECES = 3

/** One write costs less than many. */
const joined = (pieces: readonly Uint8Array[]): readonly Uint8Array[] =>
  pieces.length <= 1 ? pieces : [Buffer.concat(pieces)]

export const failedEvent = (err: AppError, meter: Meter | null, createdAt: number): Uint8Array =>
  responseFailedEvent(err, {
    responseId: meter?.responseId ?? undefined,
    sequenceNumber: meter?.events ?? 0,
    createdAt,
  })
