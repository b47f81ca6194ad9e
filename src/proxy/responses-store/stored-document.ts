/**
 * The texts of a stored response: as they were written, because most responses are never referred to, and without the
 * output, which the store keeps as items.
 */
import { getObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { getElements } from '../../lib/json-members.ts'
import { eventJson } from '../../lib/sse-payload.ts'
import { decodeUtf8, encodeUtf8 } from '../../lib/utf8.ts'
import { type ItemPool, type StoredItem, textBytes } from './item-pool.ts'

export interface StoredDocument {
  /** The object as JSON, with nothing in `output` and in the members that are shared. */
  readonly head: string
  readonly bytes: number
  readonly shared: readonly { name: string; item: StoredItem }[]
}

/** Long, and usually the same in every response of a client. */
const SHARED = ['instructions', 'tools', 'text'] as const

/** Its shared members are held in `pool` until `releaseDocument`. */
export const packDocument = (response: JsonObject, pool: ItemPool): StoredDocument => {
  const shared = SHARED.filter((name) => response[name] != null).map((name) => ({
    name,
    item: pool.hold(JSON.stringify(response[name])),
  }))
  const emptied = Object.fromEntries(shared.map(({ name }) => [name, null]))
  const head = JSON.stringify({ ...response, ...emptied, output: [] })
  return { head, bytes: textBytes(head), shared }
}

export const releaseDocument = ({ shared }: StoredDocument, pool: ItemPool): void => {
  for (const { item } of shared) pool.release(item)
}

/** The response object as its client got it. */
export const unpackDocument = ({ head, shared }: StoredDocument, output: readonly StoredItem[]): JsonObject => ({
  ...getObject(parseJson(head)),
  ...Object.fromEntries(shared.map(({ name, item }) => [name, parseJson(item.text)])),
  output: output.map(({ text }) => parseJson(text)),
})

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
