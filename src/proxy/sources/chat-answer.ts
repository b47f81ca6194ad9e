/** A streamed chat completion of a model source: its usage, its end, and what the client gets of it. */
import type { AppError } from '../../errors.ts'
import { openAiError } from '../../errors.ts'
import { getObject, getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import type { TokenUsage } from '../../model/catalog/pricing.ts'
import { FrameEvent } from '../../upstream/frame-event.ts'
import type { Batch, UpstreamStream } from '../../upstream/stream.ts'
import type { Contract } from '../downstream/contracts.ts'
import { dataFrame } from '../formats/data-frame.ts'
import { keepaliveComment } from '../formats/failed-event.ts'
import { cutMembers } from '../ingress/splice.ts'
import { getCount, Meter } from '../turn/meter.ts'
import { toErrorEvent } from './call.ts'

const DONE = '[DONE]'

/** Token counts under the names of the Responses dialect, or under those of chat and embeddings; else of the total alone. */
export const getTokens = (usage: JsonObject): TokenUsage => {
  const outputTokens = getCount(usage.output_tokens ?? usage.completion_tokens)
  const rest = Math.max(0, getCount(usage.total_tokens) - outputTokens)
  return {
    inputTokens: getCount(usage.input_tokens ?? usage.prompt_tokens ?? rest),
    cachedInputTokens: getCount(getObject(usage.input_tokens_details ?? usage.prompt_tokens_details).cached_tokens),
    outputTokens,
    reasoningTokens: getCount(
      getObject(usage.output_tokens_details ?? usage.completion_tokens_details).reasoning_tokens,
    ),
  }
}

/** Whether the counts of tokens are there at all. */
export const isUsage = (usage: unknown): usage is JsonObject =>
  isObject(usage) &&
  [usage.input_tokens, usage.prompt_tokens, usage.total_tokens].some((count) => typeof count === 'number')

export class ChatMeter extends Meter {
  override see(event: SseEvent): void {
    const { data } = event
    if (data === null) return
    this.events++
    if (data === DONE) {
      this.terminal = 'response.completed'
      return
    }
    const chunk = getObject(parseJson(data))
    this.responseId ??= getText(chunk.id) || null
    if (isUsage(chunk.usage)) this.usage = getTokens(chunk.usage)
    const choices = getObjects(chunk.choices)
    if (choices.length > 0) this.deltas++
    if (chunk.error === undefined || chunk.error === null) return
    this.terminal = 'error'
    this.terminalEvent = toErrorEvent(chunk)
  }
}

/** Ends with `[DONE]` also where the source only closes the stream after the last chunk. */
export class ChatEvents implements UpstreamStream {
  readonly #stream: UpstreamStream
  /** Whether a choice has reported why it ended, and whether the stream has ended since. */
  #state: 'running' | 'finished' | 'done' = 'running'

  constructor(stream: UpstreamStream) {
    this.#stream = stream
  }

  async read(): Promise<Batch | null> {
    const batch = await this.#stream.read()
    for (const { data } of batch ?? [])
      if (data === DONE) this.#state = 'done'
      else if (data !== null && this.#state === 'running' && FINISHED.test(data)) this.#state = 'finished'
    if (batch !== null || this.#state !== 'finished') return batch
    this.#state = 'done'
    return [new FrameEvent(DONE)]
  }

  cancel(): void {
    this.#stream.cancel()
  }

  drain(): void {
    this.#stream.drain()
  }
}

/** Copies the events. Without `includeUsage`, leaves out the usage, which only Sluice requested. */
export const chatCopy = ({ includeUsage }: { includeUsage: boolean }): Contract => ({
  write: (events) => {
    const pieces = events.flatMap((event) => (includeUsage ? event.bytes : (withoutUsage(event) ?? [])))
    return pieces.length <= 1 ? pieces : [Buffer.concat(pieces)]
  },
  fail: (err: AppError) => encodeUtf8(dataFrame({ error: openAiError(err) })),
  keepalive: keepaliveComment,
})

/** Null for the chunk that is there for the usage alone. */
const withoutUsage = (event: SseEvent): Uint8Array | null => {
  const { data } = event
  if (data === null || !data.includes('"usage"')) return event.bytes
  const chunk = getObject(parseJson(data))
  if (!('usage' in chunk)) return event.bytes
  if (getObjects(chunk.choices).length === 0 && isObject(chunk.usage)) return null
  return Buffer.concat([DATA, cutMembers(encodeUtf8(data), ['usage']), END])
}

/** In texts of the model these quotes are escaped. */
const FINISHED = /"finish_reason"\s*:\s*"/

const DATA = encodeUtf8('data: ')
const END = encodeUtf8('\n\n')
