/** Converts an upstream stream for `/v1` clients; native clients get it unchanged. */
import type { AppError } from '../../errors.ts'
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import type { Random } from '../../lib/random.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson, frame } from '../../lib/sse-payload.ts'
import { decodeUtf8 } from '../../lib/utf8.ts'
import { echoed, echoedEvent, type ResponseEcho } from '../responses-store/response-echo.ts'
import type { Recording } from '../responses-store/stored-response.ts'
import type { Meter } from '../turn/meter.ts'
import { withoutAccountFacts } from './account-facts.ts'
import { errorEvent, responseCreatedEvent, responseFailedEvent } from './failed-event.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'
import { StreamedItems } from './streamed-items.ts'

export interface PublicOptions {
  model: string | null
  /** Whole seconds since epoch. */
  createdAt: number
  random: Random
  /**
   * Whether a failure begins with an `error` event, as OpenAI's own streams do: many SDK helpers treat a lone
   * `response.failed` as a finished answer. On a socket, `error` would end the turn and `response.failed` would then
   * count for the next one.
   */
  announcesErrors: boolean
  /** What every response object says of its storing; as the upstream has it when absent. */
  echo?: ResponseEcho
  /** Gets the finished response, before the client does and can refer to it. */
  recording?: Recording | null
}

/** The events of one answer, in order; `failed` at most once and last. */
export class PublicEvents {
  readonly #options: PublicOptions
  readonly #said = new StreamedItems()
  #isBegun = false

  constructor(options: PublicOptions) {
    this.#options = options
  }

  /** What to send for one upstream event. Nothing for `codex.*`, comments and `[DONE]`, after which SDKs stop reading. */
  of(source: SseEvent, meter: Meter): Uint8Array[] {
    const { type } = source
    if (type === null || type.startsWith('codex.')) return []
    this.#isBegun = true
    const event = withoutAccountFacts(source)
    if (this.#said.needs(type)) this.#said.push(parsed(event.bytes, type))
    if (type === 'error' || type === 'response.failed') return this.#failedUpstream(parsed(event.bytes, type), meter)
    if (ENDINGS.has(type)) return [this.#ended(event.bytes, type, meter)]
    return [BEGINNINGS.has(type) ? this.#echoedEvent(event.bytes, type) : event.bytes]
  }

  /** The end of a stream that broke off. SDK helpers ignore events before `response.created`. */
  failed(err: AppError, meter: Meter | null): Uint8Array[] {
    const { model, createdAt, random } = this.#options
    const id = meter?.responseId ?? random.id('resp')
    if (this.#isBegun) return this.#failure(err, { id, number: meter?.events ?? 0 })
    const created = responseCreatedEvent({ id, model, createdAt, response: this.#echoed({}) })
    return [created, ...this.#failure(err, { id, number: 1 })]
  }

  #failure(err: AppError, { id, number, response = {} }: FailureAt): Uint8Array[] {
    const { model, createdAt, announcesErrors } = this.#options
    const sequenceNumber = announcesErrors ? number + 1 : number
    const failed = responseFailedEvent(err, { id, model, createdAt, sequenceNumber, response: this.#echoed(response) })
    return announcesErrors ? [errorEvent(err, number), failed] : [failed]
  }

  /** The upstream's own failures lack members, or consist of an `error` event alone. */
  #failedUpstream(event: ResponsesEvent, meter: Meter): Uint8Array[] {
    const id = meter.responseId ?? this.#options.random.id('resp')
    const response = event.type === 'error' ? {} : getObject(event.response)
    return this.#failure(upstreamFailure(event), { id, number: getNumber(event, meter), response })
  }

  /** SDKs read the final answer from the last event, where the upstream leaves `output` empty, null or out. */
  #ended(bytes: Uint8Array, type: string, meter: Meter): Uint8Array {
    const event = parsed(bytes, type)
    const number = getNumber(event, meter)
    const { response } = event
    const { recording } = this.#options
    const isFilled = !isObject(response) || !isHollow(response) || this.#isSilent(response)
    const finished = isFilled ? response : this.#said.getResponse(event)
    const sent =
      isFilled && event.sequence_number === number
        ? this.#echoedEvent(bytes, type)
        : frame({ ...event, sequence_number: number, ...this.#responseMember(finished) })
    if (recording && isObject(finished)) recording.finish(finished, decodeUtf8(sent))
    return sent
  }

  #responseMember(response: unknown): JsonObject {
    if (response === undefined) return {}
    return { response: isObject(response) ? this.#echoed(response) : response }
  }

  #echoedEvent(bytes: Uint8Array, type: string): Uint8Array {
    const { echo } = this.#options
    return echo ? echoedEvent(bytes, type, echo) : bytes
  }

  #echoed(response: JsonObject): JsonObject {
    const { echo } = this.#options
    return echo ? echoed(response, echo) : response
  }

  /** The answer is really empty. */
  #isSilent({ output }: JsonObject): boolean {
    return Array.isArray(output) && this.#said.isEmpty
  }
}

interface FailureAt {
  id: string
  /** The first event's sequence number. */
  number: number
  /** Known members of the response. */
  response?: JsonObject
}

const BEGINNINGS: ReadonlySet<string> = new Set(['response.created', 'response.in_progress', 'response.queued'])
const ENDINGS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])

const isHollow = ({ output }: JsonObject): boolean => !Array.isArray(output) || output.length === 0

/** The event's own number, or its position: SDKs drop events without one. The event is the last one metered. */
const getNumber = ({ sequence_number: stated }: JsonObject, { events }: Meter): number =>
  Number.isSafeInteger(stated) ? Number(stated) : Math.max(0, events - 1)

export const parsed = (bytes: Uint8Array, type: string): ResponsesEvent => ({ ...getObject(eventJson(bytes)), type })
