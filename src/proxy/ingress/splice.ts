/** Changes or removes single members of a JSON text in place, leaving all other bytes as the client wrote them. */
import type { JsonObject } from '../../lib/json.ts'
import { afterBlanks, topMembers } from '../../lib/json-members.ts'
import { decodeUtf8, encodeUtf8 } from '../../lib/utf8.ts'
import type { TurnBody } from '../turn/turn.ts'
import { requireShallow } from './raw-body.ts'

/** The upstream requires both on every turn. */
export const alwaysStreamed = ({ stream, store }: JsonObject): JsonObject => ({
  ...(stream !== true && { stream: true }),
  ...(store !== false && { store: false }),
})

/** The body with `members` set. */
export const spliceBody = (body: TurnBody, members: JsonObject): TurnBody => {
  if (Object.keys(members).length === 0) return body
  return { bytes: spliceMembers(body.bytes, members), json: { ...body.json, ...members }, hold: body.hold }
}

/**
 * Sets top-level members of a JSON object, new ones first. `bytes` must have been parsed as an object. Throws
 * `invalid_request_error` when nested too deeply.
 */
export const spliceMembers = (
  bytes: Uint8Array<ArrayBuffer>,
  members: Readonly<Record<string, unknown>>,
): Uint8Array<ArrayBuffer> => {
  requireShallow(bytes)
  const missing = new Map(Object.entries(members))
  const parts: Uint8Array[] = []
  let rest = bytes.length
  // Backwards, because the last of duplicate members counts, as in `JSON.parse`.
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
 * Removes top-level members, each with one comma, leaving all other bytes. `bytes` must have been parsed as an object.
 * Throws `invalid_request_error` when nested too deeply.
 */
export const cutMembers = (bytes: Uint8Array<ArrayBuffer>, names: readonly string[]): Uint8Array<ArrayBuffer> => {
  requireShallow(bytes)
  const members = topMembers(bytes)
  if (!members.some(({ name }) => names.includes(name))) return bytes
  const from = bytes.indexOf(OPENING) + 1
  // A member reaches from the comma before it to the comma after it, blanks included.
  const ends = members.map(({ end }) => afterBlanks(bytes, end))
  const kept = members.flatMap(({ name }, at) =>
    names.includes(name) ? [] : [COMMA, bytes.subarray(at === 0 ? from : ends[at - 1]! + 1, ends[at])],
  )
  return Buffer.concat([bytes.subarray(0, from), ...kept.slice(1), bytes.subarray(ends.at(-1))])
}

/** A list in a body, parsed and as text without brackets. */
export interface ListText {
  items: readonly unknown[]
  text: string
}

/** The top-level list of this name; null when there is none. */
export const listTextOf = (body: TurnBody, name: string): ListText | null => placedList(body, name)

/** The body with `ahead` before the elements of the named list. Adjusts the budget. */
export const withItemsBefore = (body: TurnBody, name: string, ahead: ListText): TurnBody => {
  const own = placedList(body, name)
  if (!own || ahead.items.length === 0) return body
  const text = own.items.length > 0 ? `${ahead.text},${own.text}` : ahead.text
  const { bytes, hold } = body
  const joined = Buffer.concat([bytes.subarray(0, own.value), encodeUtf8(`[${text}]`), bytes.subarray(own.end)])
  hold.resize(joined.length)
  return { bytes: joined, json: { ...body.json, [name]: [...ahead.items, ...own.items] }, hold }
}

/** The last of duplicate members counts, as in `JSON.parse`. */
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
 * Puts members first in the object at `at` (by default the whole body), which must not contain them. Does not parse the
 * body, which would take about 20 ms per MiB.
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
