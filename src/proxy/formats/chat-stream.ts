/** Turns the events of a Responses stream into Chat Completions chunks in one pass. */
import { type AppError, openAiError } from '../../errors.ts'
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { chatCitations, chatUsage, finishReason, hasContent, isAnswer, isCommentary } from './chat-json.ts'
import { ChatReasoning, summaryTexts } from './chat-reasoning.ts'
import { ChatToolCalls } from './chat-tool-calls.ts'
import { dataFrame, jsonLine } from './data-frame.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'

export interface ChatStreamOptions {
  /** `chatcmpl-…`. */
  id: string
  /** Whole seconds since epoch. */
  created: number
  /** As the client wrote it. */
  model: string
  includeUsage: boolean
  /** The client parses the whole text as JSON. */
  isJson: boolean
  /** The client sends `functions` and does not know `tool_calls`. */
  isLegacy: boolean
}

type Handler = (writer: ChatStream, event: ResponsesEvent) => string

const HANDLERS: Record<string, Handler> = {
  'response.output_text.delta': (writer, event) => writer.text('content', event, getText(event.delta)),
  'response.output_text.done': (writer, event) => writer.rest('content', event, getText(event.text)),
  'response.refusal.delta': (writer, event) => writer.text('refusal', event, getText(event.delta)),
  'response.refusal.done': (writer, event) => writer.rest('refusal', event, getText(event.refusal)),
  'response.reasoning_summary_text.delta': (writer, event) => writer.thought(event, getText(event.delta)),
  'response.reasoning_summary_text.done': (writer, event) => writer.thoughtRest(event, getText(event.text)),
  'response.output_item.added': (writer, event) => writer.begun(event, getObject(event.item)),
  'response.output_item.done': (writer, event) => writer.item(event, getObject(event.item)),
  'response.function_call_arguments.delta': (writer, event) => writer.callDelta(event),
  'response.function_call_arguments.done': (writer, event) => writer.callDone(event, getText(event.arguments)),
  'response.custom_tool_call_input.delta': (writer, event) => writer.callDelta(event),
  'response.custom_tool_call_input.done': (writer, event) => writer.callDone(event, getText(event.input)),
  'response.completed': (writer, event) => writer.finish(getObject(event.response)),
  'response.incomplete': (writer, event) => writer.finish(getObject(event.response)),
  'response.failed': (writer, event) => writer.failure(upstreamFailure(event)),
  error: (writer, event) => writer.failure(upstreamFailure(event)),
}

/**
 * Chunks of one answer. A successful stream ends with a finish chunk, the usage chunk if requested, and `[DONE]`; a
 * failed one with a single `{"error":…}` and no `[DONE]` (decisions §3).
 */
export class ChatStream {
  readonly #head: string
  readonly #tail: string
  readonly #includeUsage: boolean
  readonly #isJson: boolean
  readonly #isLegacy: boolean
  readonly #calls = new ChatToolCalls()
  readonly #reasoning = new ChatReasoning()
  /** Characters sent per content part, so that a final text adds only what the deltas left out. */
  readonly #sent = new Map<string, number>()
  /** The `phase` of each message, by its output index. */
  readonly #phases = new Map<unknown, unknown>()
  /** Commentary held back until we know what follows: dropped if an answer does, sent otherwise. */
  #held = ''
  #heldCitations: HeldCitation[] = []
  /** Something other than commentary was sent. */
  #hasSaidElse = false
  /** By output index; sent in one piece, because client libraries cannot merge several lists. */
  readonly #citations = new Map<unknown, JsonObject[]>()
  /** Characters of content sent so far; citation positions refer to it. */
  #contentLength = 0
  #hasRole = false
  #hasEnded = false

  constructor({ id, created, model, includeUsage, isJson, isLegacy }: ChatStreamOptions) {
    const envelope = jsonLine({ id, object: 'chat.completion.chunk', created, model })
    this.#head = `data: ${envelope.slice(0, -1)},"choices":[`
    this.#tail = `]${includeUsage ? ',"usage":null' : ''}}\n\n`
    this.#includeUsage = includeUsage
    this.#isJson = isJson
    this.#isLegacy = isLegacy
  }

  /** Whether chat uses events of this type; others need no parsing. */
  needs(type: string): boolean {
    return Object.hasOwn(HANDLERS, type)
  }

  /** The chunk with the role, sent while the model thinks as the public API does. Null when already sent. */
  begin(): Uint8Array | null {
    return this.#hasRole || this.#hasEnded ? null : encodeUtf8(this.#delta({ content: '' }))
  }

  /** Bytes of the chunks for this event, or null. A failure event ends the stream with its error. */
  push(event: ResponsesEvent): Uint8Array | null {
    if (this.#hasEnded || !this.needs(event.type)) return null
    const text = HANDLERS[event.type]!(this, event)
    return text === '' ? null : encodeUtf8(text)
  }

  /** Bytes that end the stream with `err`; empty when it has already ended. */
  fail(err: AppError): Uint8Array {
    return encodeUtf8(this.#hasEnded ? '' : this.failure(err))
  }

  text(field: 'content' | 'refusal', event: JsonObject, delta: string): string {
    if (delta === '') return ''
    const key = partKey(field, event.output_index, event.content_index)
    this.#sent.set(key, (this.#sent.get(key) ?? 0) + delta.length)
    const message = { phase: this.#phases.get(event.output_index) }
    if (isAnswer(message)) this.#forgetHeld()
    const before = isCommentary(message) ? '' : this.#releaseBefore()
    if (field === 'refusal') return before + this.#delta({ refusal: delta })
    if (!isCommentary(message)) return before + this.#content(delta)
    this.#held += delta
    return ''
  }

  rest(field: 'content' | 'refusal', event: JsonObject, full: string): string {
    const sent = this.#sent.get(partKey(field, event.output_index, event.content_index)) ?? 0
    return this.text(field, event, full.slice(sent))
  }

  thought(event: JsonObject, delta: string): string {
    return this.#think(this.#reasoning.delta(event, delta))
  }

  thoughtRest(event: JsonObject, full: string): string {
    return this.#think(this.#reasoning.rest(event, full))
  }

  begun(event: JsonObject, item: JsonObject): string {
    if (item.type !== 'message') return this.callItem(event, item)
    this.#phases.set(event.output_index, item.phase)
    return ''
  }

  item(event: JsonObject, item: JsonObject): string {
    const call = this.begun(event, item)
    if (item.type === 'reasoning') return this.#summary(event, item)
    if (item.type !== 'message') return call
    const texts = getObjects(item.content).map((part, content_index) => {
      const at = { output_index: event.output_index, content_index }
      if (part.type === 'refusal') return this.rest('refusal', at, getText(part.refusal))
      return part.type === 'output_text' ? this.rest('content', at, getText(part.text)) : ''
    })
    this.#cite(event.output_index ?? item.id ?? item, item)
    return texts.join('')
  }

  callItem(event: JsonObject, item: JsonObject): string {
    return this.#call(this.#calls.item(event, item))
  }

  callDelta(event: JsonObject): string {
    return this.#call(this.#calls.textDelta(event, getText(event.delta)))
  }

  callDone(event: JsonObject, full: string): string {
    return this.#call(this.#calls.textDone(event, full))
  }

  finish(response: JsonObject): string {
    const missed = this.#missed(getObjects(response.output)) + this.#release()
    const annotations = [...this.#citations.values()].flat()
    const cited = annotations.length > 0 ? this.#delta({ annotations }) : ''
    const role = this.#hasRole ? '' : this.#delta({ content: '' })
    this.#hasEnded = true
    const usage = this.#includeUsage ? chatUsage(response.usage) : null
    return [
      missed,
      cited,
      role,
      this.#chunk({}, finishReason(response, { hasCalled: this.#calls.count > 0, isLegacy: this.#isLegacy })),
      usage ? `${this.#head}],"usage":${jsonLine(usage)}}\n\n` : '',
      'data: [DONE]\n\n',
    ].join('')
  }

  failure(err: AppError): string {
    this.#hasEnded = true
    return dataFrame({ error: openAiError(err) })
  }

  /**
   * What is in the response but was in no event. Positions in `output` may differ from output indexes, so calls are
   * matched by id, and text counts as missed only when none was sent.
   */
  #missed(output: JsonObject[]): string {
    const hasText = this.#sent.size > 0
    const hasThoughts = !this.#reasoning.isEmpty || hasText
    return output
      .map((item, output_index) => {
        if (item.type === 'reasoning') return hasThoughts ? '' : this.#summary({ output_index }, item)
        if (item.type !== 'message') return this.callItem({}, item)
        return hasText ? '' : this.item({ output_index }, item)
      })
      .join('')
  }

  /** Call when all text of the item has been sent or held, and nothing after it. */
  #cite(key: unknown, item: JsonObject): void {
    if (this.#citations.has(key) || !hasContent(item)) return // already ended, or ended again without held text
    const length = getObjects(item.content).reduce((sum, { text }) => sum + getText(text).length, 0)
    if (!isCommentary(item)) this.#citations.set(key, chatCitations([item], this.#contentLength - length))
    else if (this.#held !== '') this.#heldCitations.push({ key, item, before: this.#held.length - length })
  }

  #summary({ output_index }: JsonObject, item: JsonObject): string {
    return summaryTexts(item)
      .map((text, summary_index) => this.thoughtRest({ output_index, summary_index }, text))
      .join('')
  }

  #think(text: string): string {
    return text === '' ? '' : this.#delta({ reasoning_content: text })
  }

  #call(delta: JsonObject | null): string {
    if (!delta) return ''
    if (!this.#isLegacy) return this.#releaseBefore() + this.#delta({ tool_calls: [delta] })
    return delta.index === 0 ? this.#releaseBefore() + this.#delta({ function_call: delta.function }) : ''
  }

  #releaseBefore(): string {
    this.#hasSaidElse = true
    return this.#release()
  }

  /** In JSON mode, commentary next to anything else would break the JSON. */
  #release(): string {
    if (this.#isJson && this.#hasSaidElse) this.#forgetHeld()
    const text = this.#held
    if (text === '') return ''
    for (const { key, item, before } of this.#heldCitations)
      this.#citations.set(key, chatCitations([item], this.#contentLength + before))
    this.#forgetHeld()
    return this.#content(text)
  }

  #forgetHeld(): void {
    this.#held = ''
    this.#heldCitations = []
  }

  #content(text: string): string {
    this.#contentLength += text.length
    return this.#delta({ content: text })
  }

  #delta(delta: JsonObject): string {
    const isFirst = !this.#hasRole
    this.#hasRole = true
    return this.#chunk(isFirst ? { role: 'assistant', content: null, ...delta } : delta)
  }

  #chunk(delta: JsonObject, finish_reason: string | null = null): string {
    return this.#head + jsonLine({ index: 0, delta, finish_reason }) + this.#tail
  }
}

interface HeldCitation {
  key: unknown
  item: JsonObject
  /** Characters held before it. */
  before: number
}

const partKey = (field: string, outputIndex: unknown, contentIndex: unknown) =>
  `${field}:${outputIndex ?? 0}:${contentIndex ?? 0}`
