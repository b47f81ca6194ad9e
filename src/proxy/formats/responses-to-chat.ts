/**
 * Converts a Responses request to a chat request, for model sources without the Responses API. Only for requests that
 * were translated from another dialect, so only what `messages-request.ts` writes can occur.
 */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'

export const responsesToChat = (body: JsonObject): JsonObject => {
  const { model, stream, instructions, input, reasoning, text, service_tier, parallel_tool_calls } = body
  const tools = getObjects(body.tools).flatMap(chatTool)
  const { effort } = getObject(reasoning)
  const { format } = getObject(text)
  return {
    model,
    messages: [
      ...(typeof instructions === 'string' ? [{ role: 'system', content: instructions }] : []),
      ...chatMessages(getObjects(input)),
    ],
    ...(tools.length > 0 && {
      tools,
      ...(body.tool_choice !== undefined && { tool_choice: choice(body.tool_choice) }),
    }),
    ...(tools.length > 0 && parallel_tool_calls !== undefined && { parallel_tool_calls }),
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(isObject(format) && { response_format: responseFormat(format) }),
    ...(service_tier !== undefined && { service_tier }),
    stream,
  }
}

/** Empty for tools that OpenAI runs itself. */
const chatTool = ({ type, ...tool }: JsonObject): JsonObject[] =>
  type === 'function' ? [{ type, function: tool }] : []

const choice = (value: unknown): unknown => {
  if (!isObject(value)) return value
  return value.type === 'function' ? { type: 'function', function: { name: value.name } } : 'auto'
}

const responseFormat = ({ type, ...schema }: JsonObject): JsonObject => ({ type, json_schema: schema })

const chatMessages = (items: readonly JsonObject[]): JsonObject[] => {
  const writer = new MessageWriter()
  for (const item of items) writer.add(item)
  return writer.end()
}

/** A turn of the assistant, with the messages that follow it. */
interface Turn {
  texts: string[]
  calls: JsonObject[]
  /** Ids of the calls without a result so far. */
  unanswered: unknown[]
  results: JsonObject[]
  /** Tool results may contain only text, so their images and files follow in a user message. */
  attached: JsonObject[]
  /** Messages of others. They follow the results, because servers reject a call whose results do not follow directly. */
  others: JsonObject[]
}

const newTurn = (): Turn => ({ texts: [], calls: [], unanswered: [], results: [], attached: [], others: [] })

/** Writes each turn of the assistant as one message, with the results of its calls directly after it. */
class MessageWriter {
  readonly #messages: JsonObject[] = []
  #turn = newTurn()

  add(item: JsonObject): void {
    if (item.type === 'function_call_output') this.#result(item)
    else if (item.type === 'function_call') this.#call(item)
    else if (item.type === 'message') this.#message(message(item))
  }

  end(): JsonObject[] {
    const { texts, calls, unanswered, results, attached, others } = this.#turn
    const content = texts.length > 0 ? texts.join('\n\n') : null
    if (calls.length > 0) this.#messages.push({ role: 'assistant', content, tool_calls: calls })
    else if (content !== null) this.#messages.push({ role: 'assistant', content })
    this.#messages.push(...results, ...unanswered.map((id) => toolMessage(id, 'This call has no result.')))
    if (attached.length > 0) this.#messages.push({ role: 'user', content: attached.map(chatPart) })
    this.#messages.push(...others)
    this.#turn = newTurn()
    return this.#messages
  }

  #call({ call_id: id, name, arguments: text }: JsonObject): void {
    const turn = this.#assistantTurn()
    turn.calls.push({ id, type: 'function', function: { name, arguments: text } })
    turn.unanswered.push(id)
  }

  #message(written: JsonObject): void {
    if (written.role === 'assistant') this.#assistantTurn().texts.push(getText(written.content))
    else this.#turn.others.push(written)
  }

  /** A new turn if something followed the current one. */
  #assistantTurn(): Turn {
    if (this.#turn.results.length > 0 || this.#turn.others.length > 0) this.end()
    return this.#turn
  }

  /** The result of an unknown call becomes a user message, because servers reject it. */
  #result({ call_id, output }: JsonObject): void {
    const { unanswered, results, attached, others } = this.#turn
    const parts = typeof output === 'string' ? [{ type: 'input_text', text: output }] : getObjects(output)
    const index = unanswered.indexOf(call_id)
    if (index === -1) {
      others.push(message({ role: 'user', content: parts }))
      return
    }
    unanswered.splice(index, 1)
    const texts = parts.flatMap(({ text }) => getText(text) || [])
    attached.push(...parts.filter(({ type }) => type !== 'input_text'))
    results.push(toolMessage(call_id, texts.join('\n')))
  }
}

const toolMessage = (tool_call_id: unknown, content: string): JsonObject => ({ role: 'tool', tool_call_id, content })

const ROLES: Readonly<Record<string, string>> = { developer: 'system' }

/** Text alone is a string, which every server understands. */
const message = ({ role, content }: JsonObject): JsonObject => {
  const parts = getObjects(content)
  const isText = parts.every(({ type }) => type === 'input_text' || type === 'output_text')
  return {
    role: ROLES[getText(role)] ?? role,
    content: isText ? parts.map(({ text }) => getText(text)).join('\n\n') : parts.map(chatPart),
  }
}

const chatPart = ({ type, text, image_url: url, ...file }: JsonObject): JsonObject => {
  if (type === 'input_image') return { type: 'image_url', image_url: { url } }
  if (type === 'input_file' && file.file_data !== undefined) return { type: 'file', file }
  return { type: 'text', text: getText(text) || getText(file.file_url) }
}
