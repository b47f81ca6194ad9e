/**
 * Decides which parts of earlier answers the upstream accepts as input. It stores nothing, so an id alone means nothing
 * to it.
 */
import { getObjects, getText, type JsonObject } from '../../lib/json.ts'
import { sha256 } from '../pool/affinity.ts'

/** In characters, for item ids and call ids. */
const MAX_ID_LENGTH = 64

/**
 * Prefixes of the upstream's own ids; it rejects others. The first three are from public bug reports, the rest is
 * assumed.
 */
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
 * The content of an item by type. Without any, the upstream looks for a stored item (assumed for hosted calls, reported
 * for reasoning) or rejects the item. Calls that an output refers to are not listed.
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
 * The items as the upstream accepts them; unchanged ones are the client's own objects. Items without content are left
 * out. Long call ids become the same short id in a call and its output, in every turn.
 */
export const acceptedItems = (items: JsonObject[]): JsonObject[] => items.map(fitting).filter((item) => !isHollow(item))

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

/** Whether the upstream accepts the item's id. Ciphertext is bound to its id, so a valid id is kept. */
export const isKnownId = (item: JsonObject): boolean => {
  const { id } = item
  if (id == null) return true
  if (isLong(id) || !getText(id).startsWith(ID_PREFIXES[typeOf(item)] ?? '')) return false
  return item.type !== 'reasoning' || hasCiphertext(item)
}

/** The upstream accepts reasoning text only as a summary. */
const summarised = (item: JsonObject): JsonObject => {
  if (hasCiphertext(item) || !isEmpty(item.summary)) return item
  const texts = getObjects(item.content)
    .map(({ text }) => getText(text))
    .filter((text) => text !== '')
  return texts.length > 0 ? { ...item, summary: texts.map((text) => ({ type: 'summary_text', text })) } : item
}

const isHollow = (item: JsonObject): boolean => {
  const substance = SUBSTANCE[typeOf(item)]
  if (substance) return substance.every((name) => isEmpty(item[name]))
  return item.id != null && Object.entries(item).every(([name, value]) => LABELS.has(name) || isEmpty(value))
}

/** Members that identify an item but are not content. */
const LABELS: ReadonlySet<string> = new Set(['type', 'id', 'status'])

const typeOf = ({ type, role }: JsonObject): string => getText(type) || (role == null ? '' : 'message')

const hasCiphertext = ({ encrypted_content }: JsonObject): boolean => !isEmpty(encrypted_content)

const isEmpty = (value: unknown): boolean =>
  value == null || value === '' || (Array.isArray(value) && value.length === 0)

const isLong = (id: unknown): id is string => typeof id === 'string' && id.length > MAX_ID_LENGTH
