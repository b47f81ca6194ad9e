/** Takes out of an event the headers of the upstream's own answer that a native client would take for those of this service. */
import { placeOf } from '../../lib/bytes.ts'
import { isObject, type JsonObject, objectOf } from '../../lib/json.ts'
import type { SseEvent } from '../../lib/sse.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { FrameEvent } from '../../upstream/frame-event.ts'

/**
 * Another model than it asked for is told to its user as high-risk activity, another tag than that of our catalog has it
 * fetched again after every response (client protocol §1).
 */
const FOREIGN: ReadonlySet<string> = new Set(['openai-model', 'x-openai-model', 'x-models-etag'])
const KEY = Buffer.from('"headers"')

/** Whether any event in `bytes` may hold headers; told without taking it apart, so also of one that only speaks of them. */
export const mentionsHeaders = (bytes: Uint8Array): boolean => placeOf(bytes, KEY) !== -1

const holdsHeaders = (event: SseEvent): boolean =>
  event.type !== null && !event.type.endsWith('.delta') && mentionsHeaders(event.bytes)

/** The same object where there are none. */
export const withoutForeignHeaders = (event: SseEvent): SseEvent => {
  if (!holdsHeaders(event)) return event
  const said = eventJson(event.bytes)
  if (!isObject(said)) return event
  const response = isObject(said.response) ? cleaned(said.response) : said.response
  const told = cleaned(response === said.response ? said : { ...said, response })
  return told === said ? event : new FrameEvent(JSON.stringify(told))
}

const cleaned = (source: JsonObject): JsonObject => {
  const all = Object.entries(objectOf(source.headers))
  const kept = all.filter(([name]) => !FOREIGN.has(name.toLowerCase()))
  return kept.length === all.length ? source : { ...source, headers: Object.fromEntries(kept) }
}
