/** What each kind of client is sent of a turn: the native one everything as it came, the public API its own subset, chat its own dialect. */
import type { AppError } from '../errors.ts'
import type { Random } from '../lib/random.ts'
import { piecesOf, type SseEvent } from '../lib/sse.ts'
import { mentionsAccountFacts, withoutAccountFacts } from './formats/account-facts.ts'
import { ChatStream, type ChatStreamOptions } from './formats/chat-stream.ts'
import { keepaliveComment, keepaliveEvent, responseFailedEvent } from './formats/failed-event.ts'
import { PublicEvents, parsed } from './formats/public-events.ts'
import { upstreamFailure } from './formats/responses-event.ts'
import type { Meter } from './meter.ts'

/** Writes one stream. Its methods are called in order, `fail` at most once and last. */
export interface Contract {
  /** Bytes for events that arrived together, in pieces; none when no event of them is for this client. */
  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[]
  /** Bytes of what ends a stream that could not be finished. */
  fail(err: AppError, meter: Meter | null): Uint8Array
  /** Sent when nothing else was for a while. */
  readonly keepalive: Uint8Array
}

export interface ContractOptions {
  /** Of the request. */
  model: string | null
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
    const { hidesQuota } = this.#options
    const shown = hidesQuota ? events.filter(({ type }) => type !== 'codex.rate_limits') : events
    if (meter.terminal !== 'error') return relayed(shown)
    return joined(
      shown.map((event) =>
        event.type === 'error'
          ? this.#failed(upstreamFailure(parsed(event.bytes, event.type)), meter, meter.events - 1)
          : withoutAccountFacts(event).bytes,
      ),
    )
  }

  fail(err: AppError, meter: Meter | null): Uint8Array {
    return this.#failed(err, meter, meter?.events ?? 0)
  }

  #failed(err: AppError, meter: Meter | null, sequenceNumber: number): Uint8Array {
    const { model, createdAt } = this.#options
    return responseFailedEvent(err, { id: meter?.responseId ?? undefined, model, createdAt, sequenceNumber })
  }
}

export const publicContract = (options: ContractOptions): Contract => {
  const answer = new PublicEvents({ ...options, announcesErrors: true })
  return {
    write: (events, meter) => joined(events.flatMap((event) => answer.of(event, meter))),
    fail: (err, meter) => Buffer.concat(answer.failed(err, meter)),
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
