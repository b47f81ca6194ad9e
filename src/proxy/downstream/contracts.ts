/**
 * What each kind of client receives of a turn: the native client everything unchanged, the public API its own subset,
 * chat its own format.
 */
import type { Client } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import type { AppError } from '../../errors.ts'
import { getObject, getObjects, isObject, type JsonObject } from '../../lib/json.ts'
import type { Random } from '../../lib/random.ts'
import { getPieces, type SseEvent } from '../../lib/sse.ts'
import { FrameEvent } from '../../upstream/frame-event.ts'
import { mentionsAccountFacts, withoutAccountFacts } from '../formats/account-facts.ts'
import { ChatEventReader } from '../formats/chat-events.ts'
import { ChatStream, type ChatStreamOptions } from '../formats/chat-stream.ts'
import { keepaliveComment, keepaliveEvent, responseFailedEvent } from '../formats/failed-event.ts'
import { MessagesStream, type MessagesStreamOptions, ping } from '../formats/messages-stream.ts'
import { PublicEvents, parsed } from '../formats/public-events.ts'
import { type ResponsesEvent, upstreamFailure } from '../formats/responses-event.ts'
import { rateEventsFor } from '../pool/client-limits.ts'
import type { ResponseEcho } from '../responses-store/response-echo.ts'
import type { Recording } from '../responses-store/stored-response.ts'
import type { Meter } from '../turn/meter.ts'

/** Writes one stream. Methods are called in order, `fail` at most once and last. */
export interface Contract {
  /** Bytes for events that arrived together, in pieces; empty when none is for this client. */
  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[]
  /** Bytes that end a stream that broke off. */
  fail(err: AppError, meter: Meter | null): Uint8Array
  /** Sent when nothing else has been sent for a while. */
  readonly keepalive: Uint8Array
  /** Sent after this many ms of silence. Default: the usual time. */
  readonly keepaliveMs?: number
  /** Headers are sent after this many ms, although nothing is known yet. Default: the usual time. */
  readonly earlyHeadersMs?: number
  /** Settles when a successful answer has been written to its end; rejects if that failed. Default: it cannot fail. */
  readonly whenWritten?: () => Promise<void>
}

/** `unchanged`, or the event for the client in their place; its null leaves them out. */
export type RateEvents = 'unchanged' | (() => JsonObject | null)

export interface ContractOptions {
  /** The model of the request. */
  model: string | null
  /** Whole seconds since epoch. */
  createdAt: number
  /** What becomes of the upstream's rate limit events. */
  rateEvents: RateEvents
  random: Random
}

export const contractOptions = (
  { clock, settings, random, clientLimits }: Bindings,
  { key }: Client,
  model: string | null,
): ContractOptions => ({
  model,
  createdAt: Math.floor(clock.now() / 1000),
  rateEvents: rateEventsFor(clientLimits, { key, mode: settings.current().clientRateLimits }),
  random,
})

/** The native client ignores an `error` event and would keep waiting for a terminal one (Codex CLI 0.169). */
export class NativeContract implements Contract {
  readonly #options: ContractOptions

  constructor(options: ContractOptions) {
    this.#options = options
  }

  get keepalive(): Uint8Array {
    return keepaliveEvent
  }

  write(events: readonly SseEvent[], meter: Meter): readonly Uint8Array[] {
    const shown = withRateEvents(events, this.#options.rateEvents)
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

interface Stateful {
  echo: ResponseEcho
  recording: Recording | null
}

export const publicContract = (options: ContractOptions & Partial<Stateful>): Contract => {
  const answer = new PublicEvents({ ...options, announcesErrors: true })
  return {
    write: (events, meter) => joined(events.flatMap((event) => answer.of(event, meter))),
    fail: (err, meter) => Buffer.concat(answer.failed(err, meter)),
    keepalive: keepaliveComment,
  }
}

export const chatContract = (options: ChatStreamOptions, recording: Recording | null): Contract => {
  const chat = new ChatStream(options)
  const done: JsonObject[] = []
  return {
    write: (events) => {
      const out: Uint8Array[] = []
      for (const { type, bytes } of events) {
        if (type === null || !chat.needs(type)) continue
        const event = parsed(bytes, type)
        if (recording) record(recording, event, done)
        const chunk = chat.push(event)
        if (chunk) out.push(chunk)
      }
      return joined(out.length === 0 ? [chat.begin() ?? []].flat() : out)
    },
    fail: (err) => chat.fail(err),
    keepalive: keepaliveComment,
  }
}

/**
 * Claude Code compacts a full conversation only if the error comes before the headers, for which it waits 360 s. Reverse
 * proxies usually wait 60 s.
 */
const HEADERS_MS = 55_000

/** Claude Code ends a stream after about 30 pings without content (2.1.332), so pings are rare. */
const PING_MS = 30_000

export const messagesContract = (options: MessagesStreamOptions, dialect: 'responses' | 'chat'): Contract => {
  const stream = new MessagesStream(options)
  const chat = dialect === 'chat' ? new ChatEventReader() : null
  const read = ({ type, bytes, data }: SseEvent): ResponsesEvent[] => {
    if (chat) return data === null ? [] : chat.read(data).filter((event) => stream.needs(event.type))
    return type !== null && stream.needs(type) ? [parsed(bytes, type)] : []
  }
  const written = Promise.withResolvers<void>()
  written.promise.catch(() => {}) // nothing waits for it if the upstream fails as well
  return {
    write: (events, meter) => {
      const out = stream.begin()
      for (const event of events) for (const one of read(event)) out.push(...stream.push(one))
      if (stream.failure) written.reject(stream.failure)
      else if (meter.terminal !== null) written.resolve()
      return joined(out)
    },
    fail: (err) => {
      written.reject(err)
      return stream.fail(err)
    },
    whenWritten: () => written.promise,
    keepalive: ping,
    keepaliveMs: PING_MS,
    earlyHeadersMs: HEADERS_MS,
  }
}

/** The last event may lack the items. If it has any, it has all of them. */
const record = (recording: Recording, { type, item, response }: ResponsesEvent, done: JsonObject[]): void => {
  if (type === 'response.output_item.done' && isObject(item)) done.push(item)
  if (type !== 'response.completed' && type !== 'response.incomplete') return
  const { id, output } = getObject(response)
  const whole = getObjects(output)
  recording.finishChat({ id, output: whole.length > 0 ? whole : done })
}

/** The events with the client's own limits in place of the account's. Almost no batch has any. */
export const withRateEvents = (events: readonly SseEvent[], rateEvents: RateEvents): readonly SseEvent[] => {
  if (rateEvents === 'unchanged' || !events.some(isRateEvent)) return events
  return events.flatMap((event) => (isRateEvent(event) ? (ownRateEvent(rateEvents) ?? []) : [event]))
}

/** The client's own limits as an event; null when it is shown none. */
export const ownRateEvent = (rateEvents: RateEvents): FrameEvent | null => {
  const event = rateEvents === 'unchanged' ? null : rateEvents()
  return event && new FrameEvent(JSON.stringify(event))
}

export const isRateEvent = ({ type }: SseEvent): boolean => type === 'codex.rate_limits'

/** Searches the pieces as they are sent, because almost no event contains account facts. */
const relayed = (events: readonly SseEvent[]): readonly Uint8Array[] => {
  const pieces = getPieces(events)
  if (pieces.some(mentionsAccountFacts)) return joined(events.map((event) => withoutAccountFacts(event).bytes))
  return pieces.length <= FEW_PIECES ? pieces : joined(pieces)
}

/** An event split over two chunks, and its surroundings. */
const FEW_PIECES = 3

/** One write is cheaper than many. */
const joined = (pieces: readonly Uint8Array[]): readonly Uint8Array[] =>
  pieces.length <= 1 ? pieces : [Buffer.concat(pieces)]
