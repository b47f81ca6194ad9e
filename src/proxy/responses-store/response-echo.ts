/** Sets `store` and `previous_response_id` of a response to what the client sent: upstream nothing is stored or continued. */
import { getObject, type JsonObject } from '../../lib/json.ts'
import { endOfString, QUOTE } from '../../lib/json-bounds.ts'
import { placeOfValue } from '../../lib/json-members.ts'
import { eventJson, frame } from '../../lib/sse-payload.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'

export interface ResponseEcho {
  /** As requested, if responses are stored at all. */
  store: boolean
  previousResponseId: string | null
}

export const echoed = (response: JsonObject, { store, previousResponseId }: ResponseEcho): JsonObject => ({
  ...response,
  previous_response_id: previousResponseId,
  store,
})

/**
 * The same for the response inside an event. Each stream has three of them, so only what differs from the upstream's `false`
 * and `null` is replaced, at its place. Assumed: the upstream always states both members, so a name that occurs once is the
 * response's own and not that of a tool.
 */
export const echoedEvent = (bytes: Uint8Array, type: string, echo: ResponseEcho): Uint8Array => {
  const { store, previousResponseId } = echo
  let changed = bytes
  if (store) changed = withScalar(changed, 'store', TRUE) ?? rewrittenEvent(changed, type, echo)
  if (previousResponseId === null) return changed
  const id = encodeUtf8(JSON.stringify(previousResponseId))
  return withScalar(changed, 'previous_response_id', id) ?? rewrittenEvent(changed, type, echo)
}

const TRUE = encodeUtf8('true')

/** Null when the place is not certain. */
const withScalar = (bytes: Uint8Array, name: string, value: Uint8Array): Uint8Array | null => {
  const place = placeOfValue(bytes, name)
  if (place === null || !isScalar(bytes[place])) return null
  return Buffer.concat([bytes.subarray(0, place), value, bytes.subarray(endOfScalar(bytes, place))])
}

const rewrittenEvent = (bytes: Uint8Array, type: string, echo: ResponseEcho): Uint8Array => {
  const event = getObject(eventJson(bytes))
  return frame({ ...event, type, response: echoed(getObject(event.response), echo) })
}

const LETTER_A = 0x61
/** What the two members can begin with: text, `null`, `true` and `false`. */
const SCALARS: ReadonlySet<number | undefined> = new Set([QUOTE, 0x6e, 0x74, 0x66])
const isScalar = (byte: number | undefined): boolean => SCALARS.has(byte)

/** Behind a string, `null`, `true` or `false`. */
const endOfScalar = (bytes: Uint8Array, place: number): number => {
  if (bytes[place] === QUOTE) return endOfString(bytes, place) + 1
  let end = place
  while ((bytes[end] ?? 0) >= LETTER_A && bytes[end] !== 0x7d) end++
  return end
}
