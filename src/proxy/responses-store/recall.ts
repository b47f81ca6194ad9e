/** Replaces references in a request: `previous_response_id` by its conversation, `item_reference` by the item. */
import { AppError } from '../../errors.ts'
import { getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'
import { acceptedItems } from '../formats/accepted-items.ts'
import { isReference } from '../formats/input-items.ts'
import { type History, NO_HISTORY } from '../formats/instructions.ts'
import { invalid } from '../formats/invalid-request.ts'
import { RESPONSES_BODY_BYTES, requireFewValues } from '../ingress/raw-body.ts'
import type { StoredItem } from './item-pool.ts'
import { listedItemPlace } from './listed-items.ts'
import type { ResponseStore } from './response-store.ts'
import { getChain, type StoredResponse } from './stored-response.ts'

/** An item → its text, which is written as it is: what went upstream once goes there in the same bytes again. */
export type ItemTexts = Map<unknown, string>

export interface Recalled {
  /** The request with items in place of references, without `previous_response_id` and `store`. */
  body: JsonObject
  previous: StoredResponse | null
  /** The conversation it continues. */
  history: History
  /** Text of every item that came from the store. */
  texts: ItemTexts
  /** Ids of the items it referred to. */
  itemIds: string[]
}

interface Recall {
  store: ResponseStore
  scope: string
  /** Called with the bytes to be added to the request before they are made. Throws when there is no room for them. */
  admit: (bytes: number) => void
}

/**
 * Throws `previous_response_not_found`, which names the parameter, `invalid_request_error` for one of the wrong type, and
 * `payload_too_large`. Nothing is stored yet.
 */
export const recall = (body: JsonObject, { store, scope, admit }: Recall): Recalled => {
  checkTypes(body)
  if (isSelfContained(body)) return { body, previous: null, history: NO_HISTORY, texts: new Map(), itemIds: [] }
  const { previous_response_id, ...named } = body
  const { store: _store, ...rest } = named // where it is honoured it is not one of the parameters that are dropped
  const previous = previous_response_id == null ? null : getPrevious(store, scope, String(previous_response_id))
  const texts: ItemTexts = new Map()
  const chain = previous ? getChain(previous) : []
  const stored = chain.flatMap(({ input, output }) => [...input, ...output])
  const historyBytes = getBytes(stored, 'previous_response_id')
  if (previous) admit(historyBytes)
  const history = previous ? getHistory(chain, getParsed(stored, texts)) : NO_HISTORY
  const { input, itemIds } = withItems(rest.input, {
    find: (id, at) => getItem(store, scope, id, at),
    parse: (items) => {
      admit(historyBytes + getBytes(items, 'input', historyBytes))
      return getParsed(items, texts)
    },
    known: new Set(history.items.map(({ id }) => id)),
    chain: new Map(chain.map((one) => [one.id, one])),
  })
  const isEmpty = previous !== null && rest.input == null && rest.messages == null
  const whole = { ...(store.isOn ? rest : named), ...(input && { input }), ...(isEmpty && { input: [] }) }
  return { body: whole, previous, history, texts, itemIds }
}

/** Most requests: nothing to replace and nothing to remove. */
const isSelfContained = ({ previous_response_id, store, input }: JsonObject): boolean =>
  previous_response_id == null && store === undefined && !hasReferences(input)

const hasReferences = (input: unknown): input is unknown[] =>
  Array.isArray(input) && input.some((item) => isObject(item) && isReference(item))

const checkTypes = ({ previous_response_id, store }: JsonObject): void => {
  if (previous_response_id != null && typeof previous_response_id !== 'string')
    throw invalid('previous_response_id', 'previous_response_id must be text.')
  if (store != null && typeof store !== 'boolean') throw invalid('store', 'store must be true or false.')
}

const getPrevious = (store: ResponseStore, scope: string, id: string): StoredResponse => {
  const previous = store.get(scope, id)
  if (previous) return previous
  throw new AppError('previous_response_not_found', {
    param: 'previous_response_id',
    message: `Previous response with id '${shown(id)}' not found. ${getAdvice(store, 'Send the full conversation.')}`,
  })
}

const getItem = (store: ResponseStore, scope: string, id: string, at: string): StoredItem => {
  const place = listedItemPlace(id)
  const item = store.item(scope, id) ?? (place && store.get(scope, place.responseId)?.input[place.index])
  if (item) return item
  throw new AppError('previous_response_not_found', {
    param: at,
    message: `Item with id '${shown(id)}' not found. ${getAdvice(store, 'Send the item itself; SDKs do that with store: false.')}`,
  })
}

const getAdvice = ({ isOn }: ResponseStore, advice: string): string =>
  `${isOn ? 'It may have expired.' : 'Responses are not stored here.'} ${advice}`

const MAX_SHOWN_CHARS = 80
const shown = (id: string): string => (id.length > MAX_SHOWN_CHARS ? `${id.slice(0, MAX_SHOWN_CHARS)}…` : id)

/** Throws when the request would be too long with these items in it. */
const getBytes = (items: readonly StoredItem[], param: string, before = 0): number => {
  const size = items.reduce((sum, { bytes }) => sum + bytes, 0)
  if (before + size > RESPONSES_BODY_BYTES)
    throw new AppError('payload_too_large', {
      param,
      message: 'The conversation has become too long. Compact it or start a new one.',
    })
  return size
}

/** Parsed in one go, within the limits of a body. */
const getParsed = (items: readonly StoredItem[], texts: ItemTexts): JsonObject[] => {
  const text = `[${items.map((item) => item.text).join(',')}]`
  requireFewValues(encodeUtf8(text))
  const parsed = getObjects(parseJson(text))
  for (const [index, item] of parsed.entries()) texts.set(item, items[index]!.text) // one each
  return parsed
}

/** The conversation as the upstream takes it. */
const getHistory = (chain: readonly StoredResponse[], parsed: readonly JsonObject[]): History => {
  const history: History = { items: [], system: new Set(), first: [] }
  let at = 0
  for (const [index, { input, instructions, output }] of chain.entries()) {
    const own = parsed.slice(at, at + input.length)
    for (const place of instructions) if (own[place]) history.system.add(own[place])
    if (index === 0) history.first = own
    history.items.push(...own, ...acceptedItems(parsed.slice(at + input.length, at + input.length + output.length)))
    at += input.length + output.length
  }
  return history
}

interface References {
  find: (id: string, at: string) => StoredItem
  parse: (items: readonly StoredItem[]) => readonly JsonObject[]
  /** Ids in the history, where a reference to one adds nothing. */
  known: ReadonlySet<unknown>
  /** The responses in the history by id: their input items can be named by place. */
  chain: ReadonlyMap<string, StoredResponse>
}

/** `input` is null where the request refers to nothing. */
const withItems = (
  input: unknown,
  { find, parse, known, chain }: References,
): { input: unknown[] | null; itemIds: string[] } => {
  if (!hasReferences(input)) return { input: null, itemIds: [] }
  const itemIds: string[] = []
  const found: StoredItem[] = []
  const items = input.flatMap((item: unknown, index): unknown[] => {
    if (!isObject(item) || !isReference(item)) return [item]
    const id = getText(item.id)
    itemIds.push(id)
    const place = listedItemPlace(id)
    if (known.has(id) || (place && chain.get(place.responseId)?.input[place.index])) return []
    found.push(find(id, `input[${index}]`))
    return [REFERENCE]
  })
  const parsed = parse(found).values()
  return { input: items.map((item) => (item === REFERENCE ? parsed.next().value : item)), itemIds }
}

const REFERENCE = Symbol('an item that is not parsed yet')
