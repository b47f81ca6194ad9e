/** A Messages response as server-sent events, and as one document made from the same events. */
import { type AppError, anthropicError } from '../../errors.ts'
import { getObject, getObjects, getText, type JsonObject, parseJson } from '../../lib/json.ts'
import { frame } from '../../lib/sse-payload.ts'
import type { MessagesErrors } from './messages-errors.ts'
import { type MessagesEvent, MessagesEvents, type MessagesEventsOptions } from './messages-events.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'

const FAILURES: ReadonlySet<string> = new Set(['response.failed', 'error'])

export interface MessagesStreamOptions extends MessagesEventsOptions {
  requestId: string
  errors: MessagesErrors
}

/** A successful stream ends with `message_stop`, a failed one with a single `error` event. */
export class MessagesStream {
  readonly #options: MessagesStreamOptions
  readonly #events: MessagesEvents

  constructor(options: MessagesStreamOptions) {
    this.#options = options
    this.#events = new MessagesEvents(options)
  }

  /** Why an answer that the upstream completed cannot be passed on. */
  get failure(): AppError | null {
    return this.#events.failure
  }

  needs(type: string): boolean {
    return FAILURES.has(type) || this.#events.needs(type)
  }

  begin(): Uint8Array[] {
    return this.#events.begin().map(frame)
  }

  push(event: ResponsesEvent): Uint8Array[] {
    if (FAILURES.has(event.type)) return [this.fail(upstreamFailure(event))]
    const written = this.#events.push(event).map(frame)
    return this.failure ? [...written, this.fail(this.failure)] : written
  }

  /** The error event. Empty if the stream has already ended. */
  fail(err: AppError): Uint8Array {
    if (this.#events.hasEnded) return new Uint8Array()
    this.#events.end()
    return frame(anthropicError(this.#options.errors(err), this.#options.requestId))
  }
}

/** The SSE bytes of a `ping`. */
export const ping: Uint8Array = frame({ type: 'ping' })

/**
 * The document with the same content as the stream, without a call that was cut off. Throws `upstream_error` if the
 * response failed, has no output, or calls a tool with invalid arguments.
 */
export const messageFromResponse = (response: JsonObject, options: MessagesEventsOptions): JsonObject => {
  if (response.status === 'failed') throw upstreamFailure(response)
  const events = new MessagesEvents(options)
  const written = events.push({ type: 'response.completed', response })
  if (events.failure) throw events.failure
  return folded(written)
}

const folded = (events: readonly MessagesEvent[]): JsonObject => {
  let message: JsonObject = {}
  const content: JsonObject[] = []
  let input = ''
  for (const { type, ...event } of events) {
    if (type === 'message_start') message = getObject(event.message)
    else if (type === 'message_delta') message = { ...message, ...getObject(event.delta), usage: event.usage }
    else if (type === 'content_block_start') {
      content.push({ ...getObject(event.content_block) })
      input = ''
    } else if (type === 'content_block_delta') input += addDelta(content.at(-1)!, getObject(event.delta))
    else if (type === 'content_block_stop' && input !== '') content.at(-1)!.input = getObject(parseJson(input))
  }
  return { ...message, content }
}

/** Adds a delta to the block. JSON text is returned instead. */
const addDelta = (block: JsonObject, delta: JsonObject): string => {
  if (delta.type === 'input_json_delta') return getText(delta.partial_json)
  if (delta.type === 'citations_delta') {
    block.citations = [...getObjects(block.citations), getObject(delta.citation)]
    return ''
  }
  const name = getText(delta.type).replace(/_delta$/, '')
  block[name] = getText(block[name]) + getText(delta[name])
  return ''
}
