/** Turns the events of a Responses stream into those of a Messages stream in one pass. */
import { AppError } from '../../errors.ts'
import { getObject, getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { ChatReasoning, summaryTexts } from './chat-reasoning.ts'
import { toSignature } from './messages-signature.ts'
import type { ToolNames } from './messages-tools.ts'
import { messagesUsage, NO_USAGE, stopReason } from './messages-usage.ts'
import type { ResponsesEvent } from './responses-event.ts'
import { StopSequences } from './stop-sequences.ts'

export interface MessagesEventsOptions {
  /** `msg_…`. */
  id: string
  /** As the client wrote it. */
  model: string
  /** Tool names that were shortened for the upstream. */
  names: ToolNames
  showsThinking: boolean
  stopSequences: readonly string[]
  /** Text beyond it is cut off. Null: unlimited. */
  maxTextChars: number | null
  /** Receives the actual input tokens, cached ones included, at the end. */
  onInputTokens?: (tokens: number) => void
}

export type MessagesEvent = { type: string } & JsonObject

/** An item of the answer; at most one content block, or two for a web search. */
interface Item {
  item: JsonObject
  isOpen: boolean
  /** Characters sent per part. */
  sent: Map<string, number>
  /** The arguments of a call that were sent. */
  input: string
  reasoning: ChatReasoning
}

type Handler = (writer: MessagesEvents, state: Item, event: ResponsesEvent) => void

const HANDLERS: Record<string, Handler> = {
  'response.output_item.added': (_writer, state, { item }) => {
    state.item = getObject(item)
  },
  'response.output_text.delta': (writer, state, event) => writer.text(state, partKey(event), getText(event.delta)),
  'response.output_text.done': (writer, state, event) => writer.rest(state, partKey(event), getText(event.text)),
  'response.refusal.delta': (writer, state, event) => writer.text(state, partKey(event), getText(event.delta)),
  'response.refusal.done': (writer, state, event) => writer.rest(state, partKey(event), getText(event.refusal)),
  'response.reasoning_summary_text.delta': (writer, state, event) =>
    writer.think(state, state.reasoning.delta(summaryPart(event), getText(event.delta))),
  'response.reasoning_summary_text.done': (writer, state, event) =>
    writer.think(state, state.reasoning.rest(summaryPart(event), getText(event.text))),
  'response.function_call_arguments.delta': (writer, state, event) => writer.input(state, getText(event.delta)),
  'response.function_call_arguments.done': (writer, state, event) =>
    writer.restOfInput(state, getText(event.arguments)),
  'response.output_item.done': (writer, state, { item }) => writer.whole(state, getObject(item)),
}

const ENDS: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete'])

/** Blocks are written one after another: events of a later item wait until the earlier one is complete. */
export class MessagesEvents {
  readonly #options: MessagesEventsOptions
  readonly #stops: StopSequences
  /** Items that are not complete, in the order they began; the first is being written. */
  readonly #items = new Map<unknown, { state: Item; held: ResponsesEvent[] }>()
  readonly #done = new Set<unknown>()
  /** Item id → its key. */
  readonly #keys = new Map<string, unknown>()
  #out: MessagesEvent[] = []
  #index = 0
  #searches = 0
  /** Characters of text that can still be sent. */
  #room: number
  #isCutOff = false
  /** `call_id` of the calls that were sent. */
  readonly #calls = new Set<unknown>()
  #hasCalled = false
  /** The tool that was called with arguments that do not parse. */
  #badCall: string | null = null
  #hasItems = false
  #hasText = false
  /** Why the answer cannot be completed. */
  failure: AppError | null = null
  #hasBegun = false
  #hasEnded = false

  constructor(options: MessagesEventsOptions) {
    this.#options = options
    this.#stops = new StopSequences(options.stopSequences)
    this.#room = options.maxTextChars ?? Number.POSITIVE_INFINITY
  }

  /** Whether events of this type matter; others need no parsing. */
  needs(type: string): boolean {
    return Object.hasOwn(HANDLERS, type) || ENDS.has(type)
  }

  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** `message_start` unless it was sent. Token counts are not known before the end. */
  begin(): MessagesEvent[] {
    if (this.#hasBegun) return []
    this.#hasBegun = true
    const { id, model } = this.#options
    const message = {
      id,
      type: 'message',
      role: 'assistant',
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: NO_USAGE,
    }
    return [{ type: 'message_start', message }]
  }

  push(event: ResponsesEvent): MessagesEvent[] {
    if (this.#hasEnded) return []
    this.#out = this.begin()
    if (ENDS.has(event.type)) this.#finish(getObject(event.response))
    else this.#route(event)
    return this.#out
  }

  /** Nothing more is written. */
  end(): void {
    this.#hasEnded = true
  }

  text(state: Item, key: string, delta: string): void {
    if (delta === '') return
    state.sent.set(key, (state.sent.get(key) ?? 0) + delta.length)
    this.#show(state, this.#stops.push(delta))
  }

  rest(state: Item, key: string, full: string): void {
    this.text(state, key, full.slice(state.sent.get(key) ?? 0))
  }

  think(state: Item, thinking: string): void {
    if (thinking === '' || this.#isSilent()) return
    this.#openThinking(state)
    this.#delta({ type: 'thinking_delta', thinking })
  }

  /** Nothing is sent before the name of the tool is known. */
  input(state: Item, partial_json: string): void {
    const { item } = state
    if (partial_json === '' || this.#isOver || item.name == null) return
    this.#openCall(state)
    state.input += partial_json
    this.#delta({ type: 'input_json_delta', partial_json })
  }

  restOfInput(state: Item, full: string): void {
    this.input(state, full.slice(state.input.length))
  }

  /** The complete item; it may lack what its deltas had. */
  whole(state: Item, item: JsonObject): void {
    this.#hasItems = true
    state.item = { ...state.item, ...item }
    if (state.item.type === 'message') this.#message(state)
    else if (state.item.type === 'reasoning') this.#reasoning(state)
    else if (state.item.type === 'function_call') this.#call(state)
    else if (state.item.type === 'web_search_call') this.#search(state.item)
    this.#close(state)
  }

  #route(event: ResponsesEvent): void {
    const key = this.#keyOf(event)
    if (this.#done.has(key)) return
    const isFirst = this.#items.size === 0 || this.#items.keys().next().value === key
    const entry = this.#items.getOrInsertComputed(key, () => ({ state: newItem(), held: [] }))
    if (!isFirst) entry.held.push(event)
    else if (this.#apply(key, entry.state, event)) this.#releaseNext()
  }

  /** True when the item is complete. */
  #apply(key: unknown, state: Item, event: ResponsesEvent): boolean {
    HANDLERS[event.type]!(this, state, event)
    if (event.type !== 'response.output_item.done') return false
    this.#items.delete(key)
    this.#done.add(key)
    return true
  }

  #releaseNext(): void {
    for (const [key, { state, held }] of this.#items) {
      const isComplete = held.splice(0).some((event) => this.#apply(key, state, event))
      if (!isComplete) return
    }
  }

  #keyOf({ output_index, item_id, item }: ResponsesEvent): unknown {
    const id = getText(item_id) || getText(getObject(item).id)
    const key = output_index ?? this.#keys.get(id) ?? (id || 0)
    if (id !== '') this.#keys.set(id, key)
    return key
  }

  #finish(response: JsonObject): void {
    const output = getObjects(response.output)
    while (this.#items.size > 0) {
      const [key, { state, held }] = this.#items.entries().next().value!
      if (held.splice(0).some((event) => this.#apply(key, state, event))) continue
      this.whole(state, output.find(({ id }) => id != null && id === state.item.id) ?? {})
      this.#items.delete(key)
      if (typeof state.item.id === 'string') this.#keys.set(state.item.id, key)
    }
    for (const item of output) if (this.#isMissing(item)) this.whole(newItem(), item)
    this.failure = this.#failureOf(response)
    if (this.failure) return
    this.#hasEnded = true
    const stop_sequence = this.#stops.matched
    const stop_reason = this.#isCutOff
      ? 'max_tokens'
      : stop_sequence === null
        ? stopReason(response, this.#hasCalled)
        : 'stop_sequence'
    const usage = messagesUsage(response.usage, this.#searches)
    const tokens = getObject(response.usage).input_tokens
    if (typeof tokens === 'number') this.#options.onInputTokens?.(tokens)
    this.#out.push({ type: 'message_delta', delta: { stop_reason, stop_sequence }, usage }, { type: 'message_stop' })
  }

  /** A response that was cut may be empty, or end inside a call. One with tokens has at least thinking that is not shown. */
  #failureOf({ status, usage }: JsonObject): AppError | null {
    if (this.#isOver || status === 'incomplete') return null
    if (this.#badCall !== null)
      return failed(`The model called the tool “${this.#badCall}” with arguments that are not a JSON object.`)
    return this.#hasItems || getObject(usage).output_tokens ? null : failed('The model returned no answer.')
  }

  /** In the response but in no event. Text counts as missing only when there was none. */
  #isMissing({ type, id, call_id }: JsonObject): boolean {
    if (typeof id === 'string' && this.#keys.has(id)) return false
    if (type === 'function_call' && this.#calls.has(call_id)) return false // an item without an id
    if (type === 'message') return !this.#hasText || this.#done.size === 0
    return type === 'reasoning' ? this.#done.size === 0 : true
  }

  #message(state: Item): void {
    for (const [index, part] of getObjects(state.item.content).entries())
      this.rest(state, String(index), getText(part.text) || getText(part.refusal))
    this.#show(state, this.#stops.end())
    if (state.isOpen && !this.#isOver) for (const citation of citationsOf(state.item)) this.#delta(citation)
  }

  #show(state: Item, text: string): void {
    if (text === '' || this.#isCutOff) return
    this.#isCutOff = text.length > this.#room
    const shown = this.#isCutOff ? text.slice(0, this.#room).replace(HALF_CHARACTER, '') : text
    this.#room -= shown.length
    this.#hasText = true
    if (shown === '') return
    this.#open(state, { type: 'text', text: '' })
    this.#delta({ type: 'text_delta', text: shown })
  }

  /** The client wants nothing more, so the rest of the answer is not sent. */
  get #isOver(): boolean {
    return this.#isCutOff || this.#stops.matched !== null
  }

  #reasoning(state: Item): void {
    for (const [summary_index, text] of summaryTexts(state.item).entries())
      this.think(state, state.reasoning.rest({ summary_index }, text))
    const signature = toSignature(state.item)
    if (signature === null || this.#isSilent()) return
    this.#openThinking(state)
    this.#delta({ type: 'signature_delta', signature })
  }

  #call(state: Item): void {
    if (this.#isOver) return
    const text = getText(state.item.arguments)
    if (!isInput(text || state.input)) {
      this.#badCall = this.#toolName(state.item)
      if (!state.isOpen) return
    }
    this.restOfInput(state, text)
    this.#openCall(state)
  }

  #search({ id, action }: JsonObject): void {
    const { query, sources } = getObject(action)
    if (this.#isOver || (getText(query) === '' && getObjects(sources).length === 0)) return // it opened a page
    const toolId = `srvtoolu_${getText(id)}`
    this.#searches += 1
    this.#block({ type: 'server_tool_use', id: toolId, name: 'web_search', input: {} }, [
      { type: 'input_json_delta', partial_json: JSON.stringify({ query: getText(query) }) },
    ])
    const content = getObjects(sources).map(({ url, title }) => ({
      type: 'web_search_result',
      url: getText(url),
      title: getText(title) || getText(url),
      encrypted_content: '',
      page_age: null,
    }))
    this.#block({ type: 'web_search_tool_result', tool_use_id: toolId, content }, [])
  }

  #isSilent(): boolean {
    return !this.#options.showsThinking || this.#isOver
  }

  #openThinking(state: Item): void {
    this.#open(state, { type: 'thinking', thinking: '', signature: '' })
  }

  #openCall(state: Item): void {
    const { call_id, id } = state.item
    this.#hasCalled = true
    this.#calls.add(call_id)
    this.#open(state, { type: 'tool_use', id: call_id ?? id, name: this.#toolName(state.item), input: {} })
  }

  /** As the client calls it. */
  #toolName({ name }: JsonObject): string {
    const short = getText(name)
    return this.#options.names.get(short) ?? short
  }

  #open(state: Item, content_block: JsonObject): void {
    if (state.isOpen) return
    state.isOpen = true
    this.#out.push({ type: 'content_block_start', index: this.#index, content_block })
  }

  #delta(delta: JsonObject): void {
    this.#out.push({ type: 'content_block_delta', index: this.#index, delta })
  }

  #close(state: Item): void {
    if (!state.isOpen) return
    state.isOpen = false
    this.#out.push({ type: 'content_block_stop', index: this.#index })
    this.#index += 1
  }

  #block(content_block: JsonObject, deltas: JsonObject[]): void {
    const state = newItem()
    this.#open(state, content_block)
    for (const delta of deltas) this.#delta(delta)
    this.#close(state)
  }
}

const failed = (message: string): AppError => new AppError('upstream_error', { message })

const isInput = (text: string): boolean => text.trim() === '' || isObject(parseJson(text))

/** Half of a surrogate pair at the cut. */
const HALF_CHARACTER = /[\uD800-\uDBFF]$/

/** The pages that the text cites, as deltas of its block. */
const citationsOf = (item: JsonObject): JsonObject[] =>
  getObjects(item.content).flatMap(({ text, annotations }) =>
    getObjects(annotations)
      .filter(({ type }) => type === 'url_citation')
      .map(({ url, title, start_index: start, end_index: end }) => ({
        type: 'citations_delta',
        citation: {
          type: 'web_search_result_location',
          url: getText(url),
          title: getText(title) || null,
          cited_text: typeof start === 'number' && typeof end === 'number' ? getText(text).slice(start, end) : '',
          encrypted_index: '',
        },
      })),
  )

const newItem = (): Item => ({ item: {}, isOpen: false, sent: new Map(), input: '', reasoning: new ChatReasoning() })

const partKey = ({ content_index }: JsonObject): string => String(content_index ?? 0)

/** Each item has its own summaries. */
const summaryPart = ({ summary_index }: JsonObject): JsonObject => ({ summary_index: summary_index ?? 0 })
