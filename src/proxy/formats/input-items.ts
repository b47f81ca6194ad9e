/** Turns the `input` of a `/v1` request, in any form clients use, into items the upstream accepts. */

import { AppError } from '../../errors.ts'
import { getObjects, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { acceptedItems } from './accepted-items.ts'
import { withOutputKinds } from './call-kinds.ts'
import { withToolCalls } from './chat-functions.ts'
import { messageItems } from './chat-messages.ts'
import type { Conversation } from './instructions.ts'
import { invalid } from './invalid-request.ts'

export interface InputItems extends Conversation {
  /** A cache hint that the upstream rejects was removed from a content part. */
  hadCacheBreakpoint: boolean
}

/**
 * Items in the client's order; unchanged ones are the client's own objects. `history` comes before them and stays
 * unchanged. Throws `invalid_request_error` or `unsupported_parameter` naming the item.
 */
export function inputItems(body: JsonObject, history: readonly JsonObject[] = []): InputItems {
  const result: InputItems = { items: [], system: new Set(), hadCacheBreakpoint: false }
  const source = sourceOf(body)
  for (const [index, item] of withToolCalls(clientItems(body), source).entries()) {
    const at = `${source}[${index}]`
    if (!isObject(item)) throw invalid(at, 'Every input item must be an object.')
    const isChat = source === 'messages' ? item.role !== 'system' : isChatMessage(item)
    if (isChat) result.items.push(...messageItems(item, at))
    else addItem(result, item, at)
  }
  return { ...result, items: acceptedItems(withOutputKinds(result.items, history)) }
}

/** The client's list: `input` as text or list, or `messages` instead. */
export function clientItems(body: JsonObject): unknown[] {
  if (body.input != null && body.messages != null) throw invalid('messages', "Send either 'input' or 'messages'.")
  const source = sourceOf(body)
  const list = body[source]
  if (typeof list === 'string') return [{ role: 'user', content: [{ type: 'input_text', text: list }] }]
  if (!Array.isArray(list)) throw invalid(source, `'${source}' must be text or a list of items.`)
  return list
}

/** A message with its content as a list of parts. */
export function withParts(item: JsonObject): JsonObject {
  const type = item.role === 'assistant' ? 'output_text' : 'input_text'
  if (typeof item.content === 'string') return { ...item, content: [{ type, text: item.content }] }
  if (!Array.isArray(item.content) || !item.content.some((part) => needsPartType(part, type))) return item
  return { ...item, content: item.content.map((part) => (needsPartType(part, type) ? { ...part, type } : part)) }
}

const sourceOf = (body: JsonObject) => (body.input == null && body.messages != null ? 'messages' : 'input')

const isMessage = (item: JsonObject) => typeof item.role === 'string' && (item.type == null || item.type === 'message')

function addItem(result: InputItems, item: JsonObject, at: string): void {
  if (isReference(item)) throw unstored(at)
  if (isMessage(item)) addMessage(result, withoutBreakpoints(result, checked(withParts(item), at)), at)
  else result.items.push(item)
}

function addMessage(result: InputItems, message: JsonObject, at: string): void {
  if (message.role === 'system') addSystem(result, message, at)
  else result.items.push(message)
}

/** References may omit the type, and only they have neither type nor role. */
export const isReference = ({ type, role, id }: JsonObject) =>
  type === 'item_reference' || (type == null && role == null && id != null)

/** `POST /v1/responses` replaces references first (`responses-store/recall.ts`); nothing is stored for other routes. */
const unstored = (param: string): AppError =>
  new AppError('unsupported_parameter', {
    param,
    message:
      "'item_reference' is only supported by POST /v1/responses. Send the item itself; SDKs do that with store: false.",
  })

/** Replayed chat history, with chat's own form of tool calls and results, and vendor extras. */
const CHAT_ONLY = ['tool_calls', 'reasoning_content', 'reasoning_details', 'function_call', 'refusal'] as const
const CHAT_PARTS: ReadonlySet<unknown> = new Set(['image_url', 'file', 'input_audio'])

const isChatMessage = (item: JsonObject) =>
  item.type == null &&
  (item.role === 'tool' ||
    CHAT_ONLY.some((key) => key in item) ||
    getObjects(item.content).some((part) => CHAT_PARTS.has(part.type)))

/**
 * Only text can be an instruction; other parts stay as a user message. Anything that is not a part is an error, because
 * it would be lost silently.
 */
function addSystem({ items, system }: InputItems, item: JsonObject, at: string): void {
  const parts = getObjects(item.content)
  if (!Array.isArray(item.content) || parts.length < item.content.length)
    throw invalid(`${at}.content`, 'The content of a system message must be text or a list of parts.')
  const isText = (part: JsonObject) => typeof part.text === 'string'
  const texts = parts.filter((part) => getText(part.text) !== '').map(({ text }) => ({ type: 'input_text', text }))
  const rest = parts.filter((part) => !isText(part))
  const instruction = { role: 'developer', content: texts }
  if (texts.length > 0) {
    items.push(instruction)
    system.add(instruction)
  }
  if (rest.length > 0) items.push({ role: 'user', content: rest })
}

/** Uploaded files live at OpenAI's public API, so an image id cannot be resolved here. */
function checked(item: JsonObject, at: string): JsonObject {
  getObjects(item.content).forEach((part, index) => {
    const isForeign = part.file_id != null || getText(part.image_url).startsWith('sediment://')
    if (part.type === 'input_image' && isForeign) {
      throw invalid(`${at}.content[${index}]`, 'Images must be sent as a URL or a data URL, not by file id.')
    }
  })
  return item
}

function withoutBreakpoints(result: InputItems, item: JsonObject): JsonObject {
  if (!Array.isArray(item.content) || !item.content.some(hasBreakpoint)) return item
  result.hadCacheBreakpoint = true
  return { ...item, content: item.content.map((part) => (hasBreakpoint(part) ? withoutBreakpoint(part) : part)) }
}

const hasBreakpoint = (part: unknown): part is JsonObject => isObject(part) && 'prompt_cache_breakpoint' in part

const withoutBreakpoint = ({ prompt_cache_breakpoint: _, ...part }: JsonObject): JsonObject => part

const needsPartType = (part: unknown, type: string): part is JsonObject =>
  isObject(part) && (part.type === 'text' || (type === 'output_text' && part.type === 'input_text'))
