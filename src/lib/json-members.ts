/** Which members of a JSON object are written more than once, told from its bytes: a parser keeps the last and says nothing. */
import { endOfString, QUOTE } from './json-depth.ts'

const COLON = 0x3a
/** Of a letter or an underscore, which a name could be spelled with. */
const ESCAPES = Buffer.from('\\u00')
const SPELLING = [0x35, 0x36, 0x37]

/**
 * The first of `paths` that is there a second time, null when none is. A path is a member's name, or that of a member and of
 * one inside it: `reasoning.effort`. Names are lower case letters and underscores; `json` is a valid object. Where each name
 * stands in it once, as is usual, it costs a small part of the time of parsing.
 */
export function repeatedMember(json: Uint8Array, paths: readonly string[]): string | null {
  const bytes = json instanceof Buffer ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength)
  const isPlain = !hasSpelledNames(bytes) && paths.every((path) => standsOnce(bytes, nameIn(path)))
  return isPlain ? null : firstRepeated(bytes, new Set(paths))
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

/** At any depth. */
function standsOnce(json: Buffer, quoted: Buffer): boolean {
  let count = 0
  for (let at = json.indexOf(quoted); at !== -1 && count < 2; at = json.indexOf(quoted, at + quoted.length))
    if (isName(json, at + quoted.length - 1)) count++
  return count < 2
}

function hasSpelledNames(json: Buffer): boolean {
  for (let at = json.indexOf(ESCAPES); at !== -1; at = json.indexOf(ESCAPES, at + ESCAPES.length))
    if (SPELLING.includes(json[at + ESCAPES.length] ?? 0)) return true
  return false
}

function firstRepeated(json: Buffer, paths: ReadonlySet<string>): string | null {
  const seen = new Set<string>()
  let member = ''
  let depth = 0
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === 0x5b || byte === 0x7b) depth++
    else if (byte === 0x5d || byte === 0x7d) depth--
    if (byte !== QUOTE) continue
    const end = endOfString(json, at)
    if (depth <= 2 && isName(json, end)) {
      const name = String(JSON.parse(json.toString('utf8', at, end + 1)))
      if (depth === 1) member = name
      const path = depth === 1 ? name : `${member}.${name}`
      if (seen.has(path)) return path
      if (paths.has(path)) seen.add(path)
    }
    at = end
  }
  return null
}

/** Whether the string that ends with the quote at `end` is the name of a member: only then a colon follows. */
function isName(json: Buffer, end: number): boolean {
  let at = end + 1
  while (isBlank(json[at])) at++
  return json[at] === COLON
}

const isBlank = (byte: number | undefined): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
