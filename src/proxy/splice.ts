/** Changes single members of a JSON text at their place, or takes them out, leaving every other byte as the client wrote it. */
import type { JsonObject } from '../lib/json.ts'
import { afterBlanks, topMembers } from '../lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../lib/utf8.ts'
import { demandShallow } from './body-bounds.ts'
import type { TurnBody } from './turn.ts'

/** What the upstream demands of every turn. */
export const alwaysStreamed = ({ stream, store }: JsonObject): JsonObject => ({
  ...(stream !== true && { stream: true }),
  ...(store !== false && { store: false }),
})

/** The body with `members` set; anything else stays as the client wrote it. */
export const spliced = (body: TurnBody, members: JsonObject): TurnBody => {
  if (Object.keys(members).length === 0) return body
  return { bytes: spliceMembers(body.bytes, members), json: { ...body.json, ...members }, hold: body.hold }
}

/**
 * Sets top-level members of a JSON object; new ones are put first. The caller has parsed `bytes` as an object before.
 * Throws `invalid_request_error` for one that nests too deep.
 */
export const spliceMembers = (
  bytes: Uint8Array<ArrayBuffer>,
  members: Readonly<Record<string, unknown>>,
): Uint8Array<ArrayBuffer> => {
  demandShallow(bytes)
  const missing = new Map(Object.entries(members))
  const parts: Uint8Array[] = []
  let rest = bytes.length
  // Backwards: of a member written twice the last counts, as in `JSON.parse`.
  for (const { name, value, end } of topMembers(bytes).reverse()) {
    if (!missing.has(name)) continue
    parts.unshift(encodeUtf8(JSON.stringify(missing.get(name))), bytes.subarray(end, rest))
    missing.delete(name)
    rest = value
  }
  const written = parts.length > 0 ? Buffer.concat([bytes.subarray(0, rest), ...parts]) : bytes
  return missing.size > 0 ? putFirst(written, Object.fromEntries(missing)) : written
}

/**
 * Takes top-level members out; the others stay as the client wrote them, separated by commas alone. The caller has parsed
 * `bytes` as an object before. Throws `invalid_request_error` for one that nests too deep.
 */
export const cutMembers = (bytes: Uint8Array<ArrayBuffer>, names: readonly string[]): Uint8Array<ArrayBuffer> => {
  demandShallow(bytes)
  const members = topMembers(bytes)
  const kept = members.filter(({ name }) => !names.includes(name))
  if (kept.length === members.length) return bytes
  const parts = kept.flatMap(({ start, end }) => [COMMA, bytes.subarray(start, end)])
  return Buffer.concat([encodeUtf8('{'), ...parts.slice(1), encodeUtf8('}')])
}

/** A list of a body, as it was parsed and as it was written, without its brackets. */
export interface ListText {
  items: readonly unknown[]
  text: string
}

/** The list under this name at the top of a body; null when there is none. */
export const listTextOf = (body: TurnBody, name: string): ListText | null => placedList(body, name)

/** The body with `ahead` in front of the elements of its list of this name. Its budget follows. */
export const withItemsAhead = (body: TurnBody, name: string, ahead: ListText): TurnBody => {
  const own = placedList(body, name)
  if (!own || ahead.items.length === 0) return body
  const text = own.items.length > 0 ? `${ahead.text},${own.text}` : ahead.text
  const { bytes, hold } = body
  const joined = Buffer.concat([bytes.subarray(0, own.value), encodeUtf8(`[${text}]`), bytes.subarray(own.end)])
  hold.resize(joined.length)
  return { bytes: joined, json: { ...body.json, [name]: [...ahead.items, ...own.items] }, hold }
}

/** Of a member written twice the last counts, as in `JSON.parse`. */
const placedList = ({ bytes, json }: TurnBody, name: string): (ListText & { value: number; end: number }) | null => {
  const items = json[name]
  const place = topMembers(bytes).findLast((member) => member.name === name)
  if (!Array.isArray(items) || !place) return null
  const { value, end } = place
  return { items, text: decodeUtf8(bytes.subarray(value + 1, end - 1)), value, end }
}

const OPENING = 0x7b
const CLOSING = 0x7d
const COMMA = encodeUtf8(',')

/**
 * Puts members first in the object that begins at `at`, the whole one unless told, which has none of these. No tree is
 * made of it, which takes some 20 ms a MiB.
 */
export const putFirst = (
  bytes: Uint8Array<ArrayBuffer>,
  members: Readonly<Record<string, unknown>>,
  at = bytes.indexOf(OPENING),
): Uint8Array<ArrayBuffer> => {
  const comma = bytes[afterBlanks(bytes, at + 1)] === CLOSING ? '' : ','
  const put = encodeUtf8(JSON.stringify(members).slice(1, -1) + comma)
  return Buffer.concat([bytes.subarray(0, at + 1), put, bytes.subarray(at + 1)])
}
