/** Turns a chat answer of a model source into Responses events, and a chat document into a response. */
import { getObject, getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import type { ResponsesEvent } from './responses-event.ts'

const DONE = '[DONE]'

interface Item {
  output_index: number
  item: JsonObject
}

interface Call {
  /** The source's, which may be missing or not unique. */
  sourceId: string
  item: JsonObject & { call_id: string }
}

/** Clients match results to calls by id in the whole conversation, so each call needs an id of its own. */
class CallIds {
  readonly #used = new Set<string>()

  /** `answerId` keeps a new id apart from those in other answers. */
  next(sourceId: string, answerId: string): string {
    const suffix = answerId && `_${answerId}`
    let id = sourceId
    for (let n = 0; id === '' || this.#used.has(id); n++) id = `call_${n}${suffix}`
    this.#used.add(id)
    return id
  }
}

export class ChatEventReader {
  /** Those that are open. */
  readonly #items = new Map<string, Item>()
  #begun = 0
  /** Index → the call that is running there. Some servers number every call 0, but give each an id. */
  readonly #calls = new Map<unknown, Call>()
  readonly #ids = new CallIds()
  #answerId = ''
  #reason: string | null = null
  #usage: unknown = null

  /** The events for the data of one server-sent event. */
  read(data: string): ResponsesEvent[] {
    if (data === DONE) return [...this.#closeAll(), toEnd({ reason: this.#reason, usage: this.#usage })]
    const { id, choices, usage, error } = getObject(parseJson(data))
    if (isObject(error) || typeof error === 'string') return [{ type: 'error', error: toError(error) }]
    this.#answerId ||= getText(id)
    if (isObject(usage)) this.#usage = usage
    const [choice = {}] = getObjects(choices)
    this.#reason ??= getText(choice.finish_reason) || null
    return this.#readDelta(getObject(choice.delta))
  }

  /** Thinking ends when text or a call begins, and text when thinking or a call begins. */
  #readDelta(delta: JsonObject): ResponsesEvent[] {
    const thinking = thinkingIn(delta)
    const text = textIn(delta)
    const events: ResponsesEvent[] = []
    if (thinking !== '')
      events.push(
        ...this.#close('message'),
        ...this.#within('reasoning', { type: 'reasoning' }, { type: THINKING, delta: thinking }),
      )
    if (text !== '')
      events.push(
        ...this.#close('reasoning'),
        ...this.#within('message', { type: 'message' }, { type: TEXT, delta: text }),
      )
    for (const call of getObjects(delta.tool_calls))
      events.push(...this.#close('reasoning'), ...this.#close('message'), ...this.#callDelta(call))
    return events
  }

  #callDelta({ index, id, function: called }: JsonObject): ResponsesEvent[] {
    const { name, arguments: input } = getObject(called)
    const sourceId = getText(id)
    const running = this.#calls.get(index)
    const continues = index !== undefined || getText(name) === ''
    const isSame = sourceId === '' ? continues : sourceId === running?.sourceId
    const call = running && isSame ? running : this.#newCall(sourceId, name)
    this.#calls.set(index, call)
    const delta = inputText(input)
    const key = `call ${call.item.call_id}`
    if (getText(call.item.name) !== '' && call.item.arguments === undefined)
      return this.#within(key, call.item, { type: INPUT, delta })
    // Without its name, a call cannot be written yet. The complete item has all of its arguments.
    call.item.name = getText(call.item.name) || name
    call.item.arguments = getText(call.item.arguments) + delta
    return this.#within(key, call.item)
  }

  #newCall(sourceId: string, name: unknown): Call {
    return { sourceId, item: { type: 'function_call', call_id: this.#ids.next(sourceId, this.#answerId), name } }
  }

  /** The event, after the one that begins its item. */
  #within(key: string, item: JsonObject, event?: ResponsesEvent): ResponsesEvent[] {
    const known = this.#items.get(key)
    const output_index = known?.output_index ?? this.#begun++
    if (!known) this.#items.set(key, { output_index, item })
    const begin = known ? [] : [{ type: 'response.output_item.added', output_index, item }]
    return event ? [...begin, { ...event, output_index, content_index: 0, summary_index: 0 }] : begin
  }

  /** Empty if the item is not open. */
  #close(key: string): ResponsesEvent[] {
    const known = this.#items.get(key)
    if (!known) return []
    const { output_index, item } = known
    this.#items.delete(key)
    return [{ type: 'response.output_item.done', output_index, item }]
  }

  #closeAll(): ResponsesEvent[] {
    return [...this.#items.keys()].flatMap((key) => this.#close(key))
  }
}

const TEXT = 'response.output_text.delta'
const THINKING = 'response.reasoning_summary_text.delta'
const INPUT = 'response.function_call_arguments.delta'

/** The response with the same content as the chat document. */
export const responseFromChat = (document: JsonObject): JsonObject => {
  const [choice = {}] = getObjects(document.choices)
  const message = getObject(choice.message)
  const thinking = thinkingIn(message)
  const text = textIn(message)
  const ids = new CallIds()
  const output: JsonObject[] = getObjects(message.tool_calls).map(({ id, function: called }) => ({
    type: 'function_call',
    call_id: ids.next(getText(id), getText(document.id)),
    name: getObject(called).name,
    arguments: inputText(getObject(called).arguments),
  }))
  if (text !== '') output.unshift({ type: 'message', content: [{ type: 'output_text', text }] })
  if (thinking !== '') output.unshift({ type: 'reasoning', summary: [{ type: 'summary_text', text: thinking }] })
  const reason = getText(choice.finish_reason) || null
  return { ...getObject(toEnd({ reason, usage: document.usage }).response), output }
}

/** Servers use `reasoning_content` or `reasoning`. Mistral has thinking among the parts of the content. */
const thinkingIn = ({ reasoning_content, reasoning, content }: JsonObject): string =>
  getText(reasoning_content) ||
  getText(reasoning) ||
  getObjects(content)
    .map((part) => joined(part.thinking))
    .join('')

/** A refusal is text for the user as well. */
const textIn = ({ content, refusal }: JsonObject): string => joined(content) + getText(refusal)

/** Text, or the text of a list of parts. */
const joined = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part) => getText(part) || getText(getObject(part).text)).join('')
    : getText(content)

/** Arguments are text, but some servers write the object itself. */
const inputText = (input: unknown): string => (isObject(input) ? JSON.stringify(input) : getText(input))

const REASONS: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

const toEnd = ({ reason, usage }: { reason: string | null; usage: unknown }): ResponsesEvent => {
  const cut = REASONS[reason ?? '']
  const response = {
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: cut } : null,
    usage: toUsage(usage),
    output: [],
  }
  return { type: cut ? 'response.incomplete' : 'response.completed', response }
}

const toUsage = (usage: unknown): JsonObject | null =>
  isObject(usage)
    ? {
        input_tokens: usage.prompt_tokens,
        input_tokens_details: usage.prompt_tokens_details,
        output_tokens: usage.completion_tokens,
        output_tokens_details: usage.completion_tokens_details,
      }
    : null

const toError = (error: JsonObject | string): JsonObject => (typeof error === 'string' ? { message: error } : error)
