/** Decides for each item of an earlier answer what the upstream takes back of it. It stores nothing, so an id alone is worth nothing there. */
import { type JsonObject, objectsOf, textOf } from '../../lib/json.ts'
import { sha256 } from '../affinity.ts'

/** Characters, of an item's id and of a call's alike. */
const MAX_ID_LENGTH = 64

/** How the upstream's own ids begin; it rejects others. Assumed, but for the first three, which public bug reports show. */
const ID_PREFIXES: Readonly<Record<string, string>> = {
  message: 'msg',
  reasoning: 'rs',
  function_call: 'fc',
  custom_tool_call: 'ctc',
  web_search_call: 'ws',
  image_generation_call: 'ig',
  compaction: 'cmp',
}

/**
 * What an item of the type consists of. Without any of it the upstream looks for a stored item (assumed for hosted calls,
 * reported for reasoning), or rejects the item. Calls that an output refers to are not listed.
 */
const SUBSTANCE: Readonly<Record<string, readonly string[]>> = {
  message: ['content'],
  reasoning: ['encrypted_content', 'summary'],
  compaction: ['encrypted_content'],
  context_compaction: ['encrypted_content'],
  web_search_call: ['action'],
  file_search_call: ['queries', 'results'],
  code_interpreter_call: ['code', 'outputs'],
  image_generation_call: ['result'],
  mcp_list_tools: ['tools'],
}

/**
 * The items as the upstream takes them; those that need no change are the client's own objects. An item without substance
 * is left out. A call and its output keep finding each other by a long id: it becomes the same short one in both, in every turn.
 */
export const takenBack = (items: JsonObject[]): JsonObject[] => items.map(fitting).filter((item) => !isHollow(item))

const fitting = (item: JsonObject): JsonObject => {
  const source = typeOf(item) === 'reasoning' ? summarised(item) : item
  const members = Object.entries(source)
  const kept = members.filter(([name]) => !isRejected(source, name))
  const fit = kept.length < members.length ? Object.fromEntries(kept) : source
  return isLong(fit.call_id) ? { ...fit, call_id: `call_${sha256(fit.call_id)}` } : fit
}

const isRejected = (item: JsonObject, name: string): boolean => {
  if (name === 'id') return !isKnownId(item)
  if (item.type !== 'reasoning') return false
  return name === 'status' || (name === 'content' && !isEmpty(item.content))
}

/** Whether the upstream takes the item's id. Ciphertext is bound to its id, so a good one stays beside it. */
export const isKnownId = (item: JsonObject): boolean => {
  const { id } = item
  if (id == null) return true
  if (isLong(id) || !textOf(id).startsWith(ID_PREFIXES[typeOf(item)] ?? '')) return false
  return item.type !== 'reasoning' || hasCiphertext(item)
}

/** The upstream takes the text of reasoning back as a summary only. */
const summarised = (item: JsonObject): JsonObject => {
  if (hasCiphertext(item) || !isEmpty(item.summary)) return item
  const texts = objectsOf(item.content)
    .map(({ text }) => textOf(text))
    .filter((text) => text !== '')
  return texts.length > 0 ? { ...item, summary: texts.map((text) => ({ type: 'summary_text', text })) } : item
}

const isHollow = (item: JsonObject): boolean => {
  const substance = SUBSTANCE[typeOf(item)]
  if (substance) return substance.every((name) => isEmpty(item[name]))
  return item.id != null && Object.entries(item).every(([name, value]) => LABELS.has(name) || isEmpty(value))
}

/** Members that only say which item it is. */
const LABELS: ReadonlySet<string> = new Set(['type', 'id', 'status'])

const typeOf = ({ type, role }: JsonObject): string => textOf(type) || (role == null ? '' : 'message')

const hasCiphertext = ({ encrypted_content }: JsonObject): boolean => !isEmpty(encrypted_content)

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (Array.isArray(value) && value.length === 0)

const isLong = (id: unknown): id is string => typeof id === 'string' && id.length > MAX_ID_LENGTH
