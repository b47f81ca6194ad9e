/**
 * Which members of a JSON object are written more than once, told from its bytes: a parser keeps the last and says nothing.
 * And where one of them stands, without a tree of all.
 */
import { placeOf } from './bytes.ts'
import { endOfString, QUOTE } from './json-bounds.ts'

const COLON = 0x3a
const COMMA = 0x2c
const utf8 = new TextDecoder()
/** Of a letter or an underscore, which a name could be spelled with. */
const ESCAPES = Buffer.from('\\u00')
const SPELLING = [0x35, 0x36, 0x37]

/**
 * The first of `paths` that is there a second time, null when none is. A path is a member's name, or that of a member and of
 * one inside it: `reasoning.effort`. Names are lower case letters and underscores; `json` is a valid object. Where each name
 * stands in it once, as is usual, it costs a small part of the time of parsing.
 */
export function repeatedMember(bytes: Uint8Array, paths: readonly string[]): string | null {
  const isPlain = !hasSpelledNames(bytes) && paths.every((path) => placesOf(bytes, nameIn(path)).length < 2)
  return isPlain ? null : firstRepeated(bytes, new Set(paths))
}

/**
 * Where the value of the member `name` begins, which `json` has at its top; null where a search for the name does not tell,
 * because it stands in other objects, too, or could be spelled otherwise.
 */
export function placeOfValue(bytes: Uint8Array, name: string): number | null {
  const [at, other] = placesOf(bytes, nameIn(name))
  if (at === undefined || other !== undefined || hasSpelledNames(bytes)) return null
  return afterBlanks(bytes, afterBlanks(bytes, at + nameIn(name).length) + 1)
}

/** Where a member of the object at the top stands: from its name to behind its value. */
interface Member {
  name: string
  start: number
  value: number
  end: number
}

/**
 * The members of the object that begins at `from`, by default the whole document, in their order, also those of equal names.
 * `json` is valid. No tree is made of it: of a long text with many escapes that takes seconds (measured).
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

/** Where the elements of the list that begins at `from` stand, in their order. `json` is valid. */
export function elementsOf(json: Uint8Array, from: number): { value: number; end: number }[] {
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

/** The index of the first byte from `at` on that is no white space. */
export function afterBlanks(json: Uint8Array, at: number): number {
  let index = at
  while (isBlank(json[index])) index++
  return index
}

/** Behind the last byte before `at` that is no white space. */
function beforeBlanks(json: Uint8Array, at: number): number {
  let index = at
  while (isBlank(json[index - 1])) index--
  return index
}

/** The last name of a path, as it stands in JSON. The few there are stay: making one costs as much as searching for it. */
const nameIn = (path: string): Buffer => {
  const known = NAMES.get(path)
  if (known) return known
  const name = Buffer.from(`"${path.slice(path.indexOf('.') + 1)}"`)
  NAMES.set(path, name)
  return name
}

const NAMES = new Map<string, Buffer>()

/** Where it is the name of a member, at any depth; the first two places. */
function placesOf(json: Uint8Array, quoted: Buffer): number[] {
  const places: number[] = []
  for (let at = placeOf(json, quoted); at !== -1 && places.length < 2; at = placeOf(json, quoted, at + quoted.length))
    if (isName(json, at + quoted.length - 1)) places.push(at)
  return places
}

function hasSpelledNames(json: Uint8Array): boolean {
  for (let at = placeOf(json, ESCAPES); at !== -1; at = placeOf(json, ESCAPES, at + ESCAPES.length))
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

/** Of the members of the object, depth 1, and of those of objects in them, depth 2, in their order. */
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

/** Whether the string that ends with the quote at `end` is the name of a member: only then a colon follows. */
function isName(json: Uint8Array, end: number): boolean {
  return json[afterBlanks(json, end + 1)] === COLON
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
