/** What goes into the store of responses and what comes out of it. */
import type { JsonObject } from '../../lib/json.ts'
import type { StoredItem } from './item-pool.ts'

/**
 * One answered request. It holds its predecessor, so a conversation is a linked list: a chain of any length costs each item
 * once, and a response stays complete when the ones before it have left the store.
 */
export interface StoredResponse {
  readonly id: string
  readonly previous: StoredResponse | null
  /** The request's own items, without those of `previous`. */
  readonly input: readonly StoredItem[]
  /** Places in `input` of the system messages that were sent as `instructions`. */
  readonly instructions: readonly number[]
  readonly output: readonly StoredItem[]
}

/** The scope of clients without a key. */
export const NO_KEY = ''

/** What a request brings whose answer is to be stored. */
export interface RequestToStore {
  /** The id of the key, or `NO_KEY`. */
  scope: string
  previous: StoredResponse | null
  /** The request's own items as a JSON list, each as it is sent upstream. */
  input: string
  /** Ids of these items, where they have one. */
  inputIds: readonly string[]
  instructions: readonly number[]
  /** Ids of stored items that the request referred to. They can be found for as long as its response is stored. */
  itemIds: readonly string[]
  /** Calls in front of which stored reasoning was put back. The same holds for them. */
  callIds: readonly string[]
}

/**
 * A running request on its way into the store. Its memory counts until `release`, which comes when the turn is settled: of a
 * streamed answer that is just before its last event is written and finishes the recording.
 */
export interface Recording {
  /** Stores the response, whose `output` is complete. `answer` is its text, or that of the event it is sent in. */
  finish(response: JsonObject, answer: string): void
  /** Stores the reasoning in front of each call of the response, by call id, and nothing else. */
  finishChat(response: JsonObject): void
  release(): void
}

/** The response and those before it, oldest first. */
export const getChain = (last: StoredResponse): StoredResponse[] => {
  const chain: StoredResponse[] = []
  for (let one: StoredResponse | null = last; one; one = one.previous) chain.push(one)
  return chain.reverse()
}
