/**
 * Finds duplicate members of a JSON object, and the position of a member, from its bytes without building a tree:
 * parsers silently keep the last duplicate.
 */
import { getPlace } from './bytes.ts'
import { endOfString, QUOTE } from './json-bounds.ts'

const COLON = 0x3a
const COMMA = 0x2c
const utf8 = new TextDecoder()
/** A unicode escape with which a name's letters or underscores could be written. */
const ESCAPES = Buffer.from('\\u00')
const SPELLING = [0x35, 0x36, 0x37]

/**
 * The first of `paths` that occurs twice, or null. A path is a member's name, or two nested names: `reasoning.effort`.
 * Names are lower case letters and underscores; `json` is a valid object. In the usual case it costs a small part of
 * parsing.
 */
export function repeatedMember(bytes: Uint8Array, paths: readonly string[]): string | null {
  const isPlain = !hasSpelledNames(bytes) && paths.every((path) => getFolderPaths(bytes, nameIn(path)).length < 2)
  return isPlain ? null : firstRepeated(bytes, new Set(paths))
}

/**
 * Where the value of the top-level member `name` begins; null when a search is inconclusive, because the name also
 * occurs elsewhere or could be escaped.
 */
export function placeOfValue(bytes: Uint8Array, name: string): number | null {
  const [at, other] = getFolderPaths(bytes, nameIn(name))
  if (at === undefined || other !== undefined || hasSpelledNames(bytes)) return null
  return afterBlanks(bytes, afterBlanks(bytes, at + nameIn(name).length) + 1)
}

/** Position of a top-level member, from its name to the end of its value. */
interface Member {
  name: string
  start: number
  value: number
  end: number
}

/**
 * Members of the object at `from`, by default the whole document, in order, including duplicates. `json` is valid. Does
 * not build a tree, which takes seconds for long text with many escapes (Bun 1.4.5).
 */
export function topMembers(json: Uint8Array, from = 0): Member[] {
  const members: Member[] = []
  let depth = 0
  for (let at = from; at < json.length; at++) {
    const byte = json[at]
    const last = members.at(-1)
    if (byte === QUOTE) {
      const start = at
      at = endOfString(json, at)
      const colon = afterBlanks(json, at + 1)
      if (depth !== 1 || json[colon] !== COLON) continue
      const name = String(JSON.parse(utf8.decode(json.subarray(start, at + 1))))
      members.push({ name, start, value: afterBlanks(json, colon + 1), end: 0 })
    } else if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    if (last && ((byte === COMMA && depth === 1) || (byte === 0x7d && depth === 0))) last.end = beforeBlanks(json, at)
    if (depth === 0 && byte === 0x7d) break
  }
  return members
}

/** Positions of the elements of the list at `from`, in order. `json` is valid. */
export function getElements(json: Uint8Array, from: number): { value: number; end: number }[] {
  const elements: { value: number; end: number }[] = []
  let depth = 0
  let value = afterBlanks(json, from + 1)
  if (json[value] === 0x5d) return elements
  for (let at = from; at < json.length; at++) {
    const byte = json[at]
    if (byte === QUOTE) at = endOfString(json, at)
    else if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    const isLast = byte === 0x5d && depth === 0
    if (!isLast && (byte !== COMMA || depth !== 1)) continue
    elements.push({ value, end: beforeBlanks(json, at) })
    if (isLast) break
    value = afterBlanks(json, at + 1)
  }
  return elements
}

/** The index of the first non-blank byte from `at` on. */
export function afterBlanks(json: Uint8Array, at: number): number {
  let index = at
  while (isBlank(json[index])) index++
  return index
}

/** The index after the last non-blank byte before `at`. */
function beforeBlanks(json: Uint8Array, at: number): number {
  let index = at
  while (isBlank(json[index - 1])) index--
  return index
}

/** The quoted last name of a path. Cached, because creating it costs as much as searching for it. */
const nameIn = (path: string): Buffer => {
  const known = NAMES.get(path)
  if (known) return known
  const name = Buffer.from(`"${path.slice(path.indexOf('.') + 1)}"`)
  NAMES.set(path, name)
  return name
}

const NAMES = new Map<string, Buffer>()

/** The first two positions where it is a member name, at any depth. */
function getFolderPaths(json: Uint8Array, quoted: Buffer): number[] {
  const places: number[] = []
  for (let at = getPlace(json, quoted); at !== -1 && places.length < 2; at = getPlace(json, quoted, at + quoted.length))
    if (isName(json, at + quoted.length - 1)) places.push(at)
  return places
}

function hasSpelledNames(json: Uint8Array): boolean {
  for (let at = getPlace(json, ESCAPES); at !== -1; at = getPlace(json, ESCAPES, at + ESCAPES.length))
    if (SPELLING.includes(json[at + ESCAPES.length] ?? 0)) return true
  return false
}

function firstRepeated(json: Uint8Array, paths: ReadonlySet<string>): string | null {
  const seen = new Set<string>()
  let member = ''
  for (const { name, depth } of upperNames(json)) {
    if (depth === 1) member = name
    const path = depth === 1 ? name : `${member}.${name}`
    if (seen.has(path)) return path
    if (paths.has(path)) seen.add(path)
  }
  return null
}

/** Names of the object's members (depth 1) and of those in nested objects (depth 2), in order. */
function* upperNames(json: Uint8Array): Generator<{ name: string; depth: number }> {
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    if (byte !== QUOTE) continue
    const end = endOfString(json, at)
    if (depth <= 2 && isName(json, end))
      yield { name: String(JSON.parse(utf8.decode(json.subarray(at, end + 1)))), depth }
    at = end
  }
}

/** Whether the string ending with the quote at `end` is a member name, followed by a colon. */
function isName(json: Uint8Array, end: number): boolean {
  return json[afterBlanks(json, end + 1)] === COLON
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
