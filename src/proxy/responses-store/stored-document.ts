/** The response object of a stored response without its output, which the store keeps as items. */
import { getObject, type JsonObject, parseJson } from '../../lib/json.ts'
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
