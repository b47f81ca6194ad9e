/** Assembles a complete response object from a stream's events, for clients that want one JSON answer. */
import { AppError } from '../../errors.ts'
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'
import { isTerminal } from '../../upstream/stream.ts'
import { callKind } from './call-kinds.ts'
import { hasContent } from './chat-json.ts'
import { type ResponsesEvent, upstreamFailure } from './responses-event.ts'

interface PartialItem {
  /** From `output_item.added`; deltas are added to it. */
  item: JsonObject
  /** Complete, from `output_item.done`: the deltas are ignored. */
  isDone: boolean
  texts: Map<string, Text>
}

interface Text {
  kind: TextKind
  pieces: string[]
}

type TextKind = 'output_text' | 'refusal' | 'arguments' | 'input' | 'summary_text' | 'reasoning_text'

/** Event name stem → what its `.delta` and `.done` carry, and which member of `.done` has the full text. */
const TEXT_EVENTS: ReadonlyMap<string, { kind: TextKind; full: string }> = new Map([
  ['response.output_text', { kind: 'output_text', full: 'text' }],
  ['response.refusal', { kind: 'refusal', full: 'refusal' }],
  ['response.function_call_arguments', { kind: 'arguments', full: 'arguments' }],
  ['response.custom_tool_call_input', { kind: 'input', full: 'input' }],
  ['response.reasoning_summary_text', { kind: 'summary_text', full: 'text' }],
  ['response.reasoning_text', { kind: 'reasoning_text', full: 'text' }],
])

const ITEM: ReadonlySet<string> = new Set(['response.output_item.added', 'response.output_item.done'])

/** Keeps everything pushed until `result`; the caller limits memory. */
export class ResponseCollector {
  readonly #items = new Map<unknown, PartialItem>()
  #terminal: ResponsesEvent | null = null

  /** Whether events of this type matter; others need no parsing. */
  needs(type: string): boolean {
    return isTerminal(type) || ITEM.has(type) || textEvent(type) !== undefined
  }

  push(event: ResponsesEvent): void {
    if (isTerminal(event.type)) this.#terminal = event
    else if (ITEM.has(event.type)) this.#item(event, event.type.endsWith('.done'))
    else this.#text(event)
  }

  /**
   * The response of the terminal event. Its `output` is rebuilt when the upstream left it empty. Throws
   * `upstream_error` after a failure event, `stream_incomplete` without a terminal event.
   */
  result(): JsonObject {
    if (!this.#terminal) throw new AppError('stream_incomplete')
    if (this.#terminal.type === 'error' || this.#terminal.type === 'response.failed') {
      throw upstreamFailure(this.#terminal)
    }
    const response = getObject(this.#terminal.response)
    if (getObjects(response.output).length > 0) return response
    return { ...response, output: this.#output() }
  }

  /** Sorted by output index; items without one go last, in order of arrival. */
  #output(): JsonObject[] {
    const place = (key: unknown) => (typeof key === 'number' ? key : Number.MAX_SAFE_INTEGER)
    return [...this.#items]
      .sort(([a], [b]) => place(a) - place(b))
      .map(([, partial]) => (partial.isDone ? partial.item : assembled(partial)))
  }

  #item(event: ResponsesEvent, isDone: boolean): void {
    const item = getObject(event.item)
    const partial = this.#partial(event.output_index ?? item.id ?? this.#items.size + 0.5)
    const isWhole = isDone && !isHollow(item)
    if (partial.isDone && !isWhole) return
    partial.item = item
    partial.isDone = isWhole
    if (isWhole) partial.texts.clear()
  }

  #text(event: ResponsesEvent): void {
    const { kind, full } = textEvent(event.type)!
    const partial = this.#partial(event.output_index ?? event.item_id ?? 0)
    const index = event.content_index ?? event.summary_index ?? 0
    const text = partial.texts.getOrInsertComputed(`${kind}:${index}`, () => ({ kind, pieces: [] }))
    if (event.type.endsWith('.done')) text.pieces = [getText(event[full])]
    else text.pieces.push(getText(event.delta))
  }

  #partial(key: unknown): PartialItem {
    return this.#items.getOrInsertComputed(key, () => ({ item: {}, isDone: false, texts: new Map() }))
  }
}

/** A `done` event may lack the text of its deltas, or repeat an item without it. */
const isHollow = (item: JsonObject): boolean => {
  const kind = callKind(item)
  if (kind) return getText(item[kind.text]) === ''
  if (item.type === 'message') return !hasContent(item)
  return item.type === 'reasoning' && THOUGHTS.every((member) => isEmpty(item[member]))
}

const THOUGHTS = ['summary', 'content', 'encrypted_content']

const isEmpty = (value: unknown): boolean => getText(value) === '' && getObjects(value).length === 0

const textEvent = (type: string) => TEXT_EVENTS.get(type.replace(/\.(delta|done)$/, ''))

/** An item without a `done` event, built from its deltas. */
function assembled({ item, texts }: PartialItem): JsonObject {
  const said = (...kinds: TextKind[]) => [...texts.values()].filter(({ kind }) => kinds.includes(kind))
  const call = said('arguments', 'input')[0]
  if (call) return { ...item, [call.kind]: call.pieces.join('') }
  const content = said('output_text', 'refusal', 'reasoning_text').map(contentPart)
  const summary = said('summary_text').map(({ pieces }) => ({ type: 'summary_text', text: pieces.join('') }))
  const isReasoning = said('summary_text', 'reasoning_text').length > 0
  const unannounced = isReasoning ? { type: 'reasoning' } : { type: 'message', role: 'assistant' }
  return {
    ...(item.type == null && unannounced),
    ...item,
    ...(content.length > 0 && { content }),
    ...(summary.length > 0 && { summary }),
  }
}

function contentPart({ kind, pieces }: Text): JsonObject {
  const text = pieces.join('')
  if (kind === 'refusal') return { type: kind, refusal: text }
  return kind === 'output_text' ? { type: kind, text, annotations: [] } : { type: kind, text }
}
