/**
 * Keeps the client's own text of values that parsing and writing again would change: names that are numbers move to the
 * front of an object, and long numbers lose digits. A model orders what it writes by its schema, and prompt caches go by bytes.
 */
import { elementsOf, topMembers } from '../lib/json-members.ts'
import { decodeUtf8 } from '../lib/utf8.ts'

const OPENING = 0x7b

/** Value of a parsed body → its text. */
export type OwnTexts = ReadonlyMap<unknown, string>

/**
 * The texts of all lists and objects inside `json`, which was parsed from `bytes`, that hold such a value. Empty for nearly
 * every body: then it costs one walk through the parsed values and none through the text.
 */
export const ownTexts = (bytes: Uint8Array, json: object): OwnTexts => {
  const changed = new Set<unknown>()
  const texts = new Map<unknown, string>()
  if (markChanged(json, changed)) collect({ bytes, changed, texts }, json, bytes.indexOf(OPENING))
  return texts
}

/** As `JSON.stringify`, but with these texts in place of the values they belong to. */
export const writeJson = (value: unknown, own: OwnTexts): string => {
  if (own.size === 0 || typeof value !== 'object' || value === null) return JSON.stringify(value)
  const text = own.get(value)
  if (text !== undefined) return text
  if (Array.isArray(value)) return `[${value.map((element) => writeJson(element ?? null, own)).join(',')}]`
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${writeJson(member, own)}`).join(',')}}`
}

const NUMERIC = /^(0|[1-9]\d*)$/
/** A double holds 15 digits of any number, and more of some. */
const SAFE_NUMBER_CHARS = 16

/** Adds every list and object that holds a value which writing it again would change. Returns whether `value` is or holds one. */
const markChanged = (value: unknown, changed: Set<unknown>): boolean => {
  if (typeof value === 'number') return isInexact(value)
  if (typeof value !== 'object' || value === null) return false
  let isChanged = false
  if (Array.isArray(value)) for (const element of value) isChanged = markChanged(element, changed) || isChanged
  else {
    const names = Object.keys(value)
    isChanged = names[0] !== undefined && NUMERIC.test(names[0]) // such names come first in every object
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

/** Goes down only where something would change. Of a member written twice the last counts, as in `JSON.parse`. */
const collect = (into: Collected, value: unknown, at: number): void => {
  const { bytes, changed, texts } = into
  const take = (child: unknown, start: number, end: number): void => {
    if (!changed.has(child)) return
    texts.set(child, decodeUtf8(bytes.subarray(start, end)))
    collect(into, child, start)
  }
  if (Array.isArray(value))
    for (const [index, { value: start, end }] of elementsOf(bytes, at).entries()) take(value[index], start, end)
  else
    for (const member of topMembers(bytes, at))
      take((value as Record<string, unknown>)[member.name], member.value, member.end) // as: an object, or nothing in it is marked
}
