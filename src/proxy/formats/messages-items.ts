/**
 * Converts the messages of a Messages request to Responses items. Equal content gives equal items, however the client
 * wrote it and wherever it put `cache_control`, so that the upstream's prompt cache matches from request to request.
 */
import { getObject, getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { acceptedItems } from './accepted-items.ts'
import { invalid } from './invalid-request.ts'
import { fromSignature } from './messages-signature.ts'
import { shortToolName } from './messages-tools.ts'

export interface MessagesInput {
  items: JsonObject[]
  /** Names of tools that tool results in the conversation refer to, in order. */
  found: ReadonlySet<string>
  /** Paths of what was left out. */
  dropped: string[]
}

/** Collected while messages are converted. */
interface Notes {
  found: Set<string>
  /** Types of blocks that cannot be converted. */
  unknown: Set<string>
}

/**
 * The billing line of Claude Code (2.1.332). It is left out, because it differs between conversations and comes first
 * in the prompt, so the prompt cache would never match.
 */
const BILLING = 'x-anthropic-billing-header:'

/** Throws `invalid_request_error` with the path of a part that cannot be converted. */
export const messagesInput = (system: unknown, messages: readonly unknown[]): MessagesInput => {
  const notes: Notes = { found: new Set(), unknown: new Set() }
  const items = [
    ...developerItem(system),
    ...messages.flatMap((message, index) => messageItems(message, `messages[${index}]`, notes)),
  ]
  return {
    items: acceptedItems(items),
    found: notes.found,
    dropped: [...notes.unknown].map((type) => `messages.${type}`),
  }
}

/** A system message may be in the middle of the conversation; the upstream accepts only developer messages there. */
const developerItem = (content: unknown): JsonObject[] => {
  const texts = blocksOf(content)
    .map(({ text }) => getText(text))
    .filter((text) => text !== '' && !text.startsWith(BILLING))
  if (texts.length === 0) return []
  const parts = texts.map((text) => ({ type: 'input_text', text }))
  return [{ type: 'message', role: 'developer', content: parts }]
}

const messageItems = (message: unknown, at: string, notes: Notes): JsonObject[] => {
  if (!isObject(message)) throw invalid(at, 'A message must be an object.')
  const { role, content } = message
  if (role === 'system' || role === 'developer') return developerItem(content)
  if (role !== 'user' && role !== 'assistant')
    throw invalid(`${at}.role`, "The role must be 'user', 'assistant' or 'system'.")
  if (typeof content !== 'string' && !Array.isArray(content))
    throw invalid(`${at}.content`, 'The content must be text or a list of blocks.')
  const writer = new ItemWriter(role, notes)
  for (const [index, block] of blocksOf(content).entries()) writer.add(block, `${at}.content[${index}]`)
  return writer.end()
}

const blocksOf = (content: unknown): JsonObject[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : getObjects(content)

/** Keeps the order of blocks. Text before and after a tool result or call becomes two messages. */
class ItemWriter {
  readonly #role: 'user' | 'assistant'
  readonly #notes: Notes
  readonly #items: JsonObject[] = []
  #parts: JsonObject[] = []

  constructor(role: 'user' | 'assistant', notes: Notes) {
    this.#role = role
    this.#notes = notes
  }

  add(block: JsonObject, at: string): void {
    if (this.#role === 'assistant') this.#addOfAssistant(block)
    else if (block.type === 'tool_result') this.#item(toolOutput(block, at, this.#notes))
    else this.#parts.push(...contentParts(block, at, this.#notes))
  }

  end(): JsonObject[] {
    this.#flush()
    return this.#items
  }

  #addOfAssistant(block: JsonObject): void {
    if (block.type === 'text' && getText(block.text) !== '')
      this.#parts.push({ type: 'output_text', text: getText(block.text) })
    else if (block.type === 'tool_use') this.#item(toolCall(block))
    else if (block.type === 'thinking') for (const item of reasoning(block)) this.#item(item)
    else if (!LEFT_OUT.has(block.type)) this.#notes.unknown.add(getText(block.type))
  }

  #item(item: JsonObject): void {
    this.#flush()
    this.#items.push(item)
  }

  #flush(): void {
    if (this.#parts.length === 0) return
    this.#items.push({ type: 'message', role: this.#role, content: this.#parts })
    this.#parts = []
  }
}

/** Blocks of assistants that the upstream has no use for. Empty text is one of them. */
const LEFT_OUT: ReadonlySet<unknown> = new Set([
  'text',
  'redacted_thinking',
  'server_tool_use',
  'web_search_tool_result',
])

const toolCall = ({ id, name, input }: JsonObject): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: shortToolName(getText(name)),
  arguments: JSON.stringify(input ?? {}),
})

/** Leaves out thinking of other providers, which the upstream cannot read. */
const reasoning = ({ thinking, signature }: JsonObject): JsonObject[] => {
  const own = fromSignature(getText(signature))
  if (own === null) return []
  const text = getText(thinking)
  return [{ type: 'reasoning', summary: text === '' ? [] : [{ type: 'summary_text', text }], ...own }]
}

const toolOutput = (block: JsonObject, at: string, notes: Notes): JsonObject => {
  const parts = blocksOf(block.content).flatMap((part, index) => {
    if (part.type !== 'tool_reference') return contentParts(part, `${at}.content[${index}]`, notes)
    const name = getText(part.tool_name)
    notes.found.add(name)
    return [{ type: 'input_text', text: `The tool ${shortToolName(name)} can be used now.` }]
  })
  if (block.is_error === true) parts.unshift({ type: 'input_text', text: 'Error:' })
  const isText = parts.every(({ type }) => type === 'input_text')
  const output = isText ? parts.map(({ text }) => text).join('\n') : parts
  return { type: 'function_call_output', call_id: block.tool_use_id, output }
}

/** The converted content. Empty for types that the upstream does not support. */
const contentParts = (block: JsonObject, at: string, notes: Notes): JsonObject[] => {
  const { type, title, source, content } = block
  if (type === 'text') return textParts(block.text)
  if (type === 'image') return [{ type: 'input_image', image_url: sourceUrl(block, at) }]
  if (type === 'document') return documentParts(block, at, notes)
  if (type === 'search_result') {
    const heading = [title, source].map(getText).filter(Boolean).join('\n')
    return textParts(`${heading}\n\n${textOf(content)}`)
  }
  notes.unknown.add(getText(type))
  return []
}

const textParts = (text: unknown): JsonObject[] => (getText(text) === '' ? [] : [{ type: 'input_text', text }])

const textOf = (content: unknown): string =>
  blocksOf(content)
    .map(({ text }) => getText(text))
    .join('\n')

/** Empty without content. */
const documentParts = (block: JsonObject, at: string, notes: Notes): JsonObject[] => {
  const { type, data, content } = getObject(block.source)
  const title = getText(block.title)
  if (type === 'text')
    return getText(data) === '' ? [] : textParts(title === '' ? data : `${title}\n\n${getText(data)}`)
  if (type === 'content') {
    const parts = blocksOf(content).flatMap((part, index) =>
      contentParts(part, `${at}.source.content[${index}]`, notes),
    )
    return parts.length === 0 ? [] : [...textParts(title), ...parts]
  }
  const url = sourceUrl(block, at)
  return type === 'url'
    ? [{ type: 'input_file', file_url: url }]
    : [{ type: 'input_file', filename: title || 'document.pdf', file_data: url }]
}

const sourceUrl = ({ source }: JsonObject, at: string): string => {
  const { type, media_type, data, url } = getObject(source)
  if (type === 'base64') return `data:${getText(media_type)};base64,${getText(data)}`
  if (type === 'url' && getText(url) !== '') return getText(url)
  throw invalid(`${at}.source`, "The source must be of type 'base64' or 'url'.")
}
