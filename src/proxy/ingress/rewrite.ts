/**
 * Serialises the body of a translated request, keeping the client's text of values that parse-and-serialise would
 * change: numeric names move to the front of an object, long numbers lose digits. A model writes members in schema
 * order, and prompt caches compare bytes.
 */
import type { JsonObject } from '../../lib/json.ts'
import { getElements, topMembers } from '../../lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../../lib/utf8.ts'
import type { TurnBody } from '../turn/turn.ts'
import { requireShallow } from './raw-body.ts'

/**
 * `json` as the new body, with the budget adjusted to its size. Lists and objects of the client keep their original
 * text where that matters. Items of `input` that have a text in `texts` are written with it; the text of every other
 * item is added to `texts`. Throws `invalid_request_error`.
 */
export const rewriteBody = (asked: TurnBody, json: JsonObject, texts?: Map<unknown, string>): TurnBody => {
  if (texts) return rewrittenWithInput(asked, json, texts).body
  return written(asked, json, writeJson(json, getOwnTexts(asked)))
}

/** The same, and the text of `input`. Without `texts` the list is written in one go where that gives the same. */
export const rewrittenWithInput = (
  asked: TurnBody,
  json: JsonObject,
  texts: Map<unknown, string> | null,
): { body: TurnBody; input: string } => {
  const own = getOwnTexts(asked)
  const { input: list } = json
  const byItem = texts ?? (own.size > 0 ? new Map<unknown, string>() : null)
  const input = byItem && Array.isArray(list) ? writeItems(list, own, byItem) : writeJson(list, own)
  let text = ''
  for (const name in json) {
    if (json[name] === undefined) continue
    text += `${text === '' ? '{' : ','}${JSON.stringify(name)}:${name === 'input' ? input : writeJson(json[name], own)}`
  }
  return { body: written(asked, json, `${text}}`), input }
}

/** Item by item: an item has the same text in whichever list it is. */
const writeItems = (list: readonly unknown[], own: ClientTexts, texts: Map<unknown, string>): string =>
  `[${list.map((item) => texts.getOrInsertComputed(item, () => writeJson(item, own))).join(',')}]`

const getOwnTexts = ({ bytes, json }: TurnBody): ClientTexts => {
  requireShallow(bytes)
  return getClientTexts(bytes, json)
}

const written = ({ hold }: TurnBody, json: JsonObject, text: string): TurnBody => {
  const bytes = encodeUtf8(text)
  hold.resize(bytes.length)
  return { bytes, json, hold }
}

const OPENING = 0x7b

/** Value of a parsed body → its text. */
export type ClientTexts = ReadonlyMap<unknown, string>

/**
 * Texts of the lists and objects inside `json`, parsed from `bytes`, that contain such values. Empty for almost every
 * body: then it costs one walk over the values and none over the text.
 */
export const getClientTexts = (bytes: Uint8Array, json: object): ClientTexts => {
  const changed = new Set<unknown>()
  const texts = new Map<unknown, string>()
  if (markChanged(json, changed)) collect({ bytes, changed, texts }, json, bytes.indexOf(OPENING))
  return texts
}

/** Like `JSON.stringify`, but uses these texts for their values. */
export const writeJson = (value: unknown, own: ClientTexts): string => {
  if (own.size === 0 || typeof value !== 'object' || value === null) return JSON.stringify(value)
  const text = own.get(value)
  if (text !== undefined) return text
  if (Array.isArray(value)) return `[${value.map((element) => writeJson(element ?? null, own)).join(',')}]`
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member, own)}`).join(',')}}`
}

const NUMERIC = /^(0|[1-9]\d*)$/
/** A double keeps 15 digits of any number, and more of some. */
const SAFE_NUMBER_CHARS = 16

/** Marks every list and object that serialising would change. Returns whether `value` is or contains one. */
const markChanged = (value: unknown, changed: Set<unknown>): boolean => {
  if (typeof value === 'number') return isInexact(value)
  if (typeof value !== 'object' || value === null) return false
  let isChanged = false
  if (Array.isArray(value)) for (const element of value) isChanged = markChanged(element, changed) || isChanged
  else {
    const names = Object.keys(value)
    isChanged = names[0] !== undefined && NUMERIC.test(names[0]) // numeric names come first in every object
    for (const member of Object.values(value)) isChanged = markChanged(member, changed) || isChanged
  }
  if (isChanged) changed.add(value)
  return isChanged
}

const isInexact = (value: number): boolean =>
  Number.isInteger(value)
    ? !Number.isSafeInteger(value)
    : !Number.isFinite(value) || String(value).length >= SAFE_NUMBER_CHARS

interface Collected {
  bytes: Uint8Array
  changed: ReadonlySet<unknown>
  texts: Map<unknown, string>
}

/** Descends only where something would change. For duplicate members the last one counts, as in `JSON.parse`. */
const collect = (into: Collected, value: unknown, at: number): void => {
  const { bytes, changed, texts } = into
  const take = (child: unknown, start: number, end: number): void => {
    if (!changed.has(child)) return
    texts.set(child, decodeUtf8(bytes.subarray(start, end)))
    collect(into, child, start)
  }
  if (Array.isArray(value))
    for (const [index, { value: start, end }] of getElements(bytes, at).entries()) take(value[index], start, end)
  else
    for (const member of topMembers(bytes, at))
      take((value as Record<string, unknown>)[member.name], member.value, member.end) // as: an object, or nothing in it is marked
}
