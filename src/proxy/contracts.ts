/**
 * What each kind of client receives of a turn: the native client everything unchanged, the public API its own subset,
 * chat its own format.
 */
import type { AppError } from '../errors.ts'
import type { Random } from '../lib/random.ts'
import { piecesOf, type SseEvent } from '../lib/sse.ts'
import { mentionsAccountFacts, withoutAccountFacts } from './formats/account-facts.ts'
import { ChatStream, type ChatStreamOptions } from './formats/chat-stream.ts'
import { keepaliveComment, keepaliveEvent, responseFailedEvent } from './formats/failed-event.ts'
import { PublicEvents, parsed } from './formats/public-events.ts'
import { upstreamFailure } from './formats/responses-event.ts'
import type { Meter } from './meter.ts'

/** Writes one stream. Methods are called in order, `fail` at most once and last. */
export interface Contract {
  /** Bytes for events that arrived together, in pieces; empty when none is for this client. */
  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[]
  /** Bytes that end a stream that broke off. */
  fail(err: AppError, meter: Meter | null): Uint8Array
  /** Sent when nothing else has been sent for a while. */
  readonly keepalive: Uint8Array
}

export interface ContractOptions {
  /** The model of the request. */
  model: string | null
  /** Whole seconds since epoch. */
  createdAt: number
  /** Hides the pool's own quota from this client. */
  hidesQuota: boolean
  random: Random
}

/** The native client ignores an `error` event and would keep waiting for a terminal one (client protocol §1). */
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

/** Searches the pieces as they are sent, because almost no event contains account facts. */
const relayed = (events: readonly SseEvent[]): readonly Uint8Array[] => {
  const pieces = piecesOf(events)
  if (pieces.some(mentionsAccountFacts)) return joined(events.map((event) => withoutAccountFacts(event).bytes))
  return pieces.length <= FEW_PIECES ? pieces : joined(pieces)
}

/** An event split over two chunks, and its surroundings. */
const FEW_PIECES = 3

/** One write is cheaper than many. */
const joined = (pieces: readonly Uint8Array[]): readonly Uint8Array[] =>
  pieces.length <= 1 ? pieces : [Buffer.concat(pieces)]
