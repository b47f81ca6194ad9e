/** A response as its texts were written, before it is split into items: most responses are never referred to. */
import { getObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { getElements } from '../../lib/json-members.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { decodeUtf8, encodeUtf8 } from '../../lib/utf8.ts'
import { textBytes } from './item-pool.ts'

export interface RawResponse {
  /** The request's own items as a JSON list. */
  readonly input: string
  /** What the client got: the response object, or the last event of its stream. Null until then. */
  answer: string | null
  bytes: number
}

export const rawResponse = (input: string): RawResponse => ({ input, answer: null, bytes: textBytes(input) })

export const responseIn = (answer: string): JsonObject =>
  answer.startsWith('{') ? getObject(parseJson(answer)) : getObject(getObject(eventJson(encodeUtf8(answer))).response)

/** The texts of a JSON list's elements, unchanged. Looks at the bytes only if writing the parsed elements changes them. */
export const elementTexts = (list: string, parsed: readonly unknown[]): string[] => {
  const texts = parsed.map((element) => JSON.stringify(element))
  if (`[${texts.join(',')}]` === list) return texts
  const bytes = encodeUtf8(list)
  return getElements(bytes, 0).map(({ value, end }) => decodeUtf8(bytes.subarray(value, end)))
}
