/**
 * What `/v1` remembers of answered requests, in memory only: their input and output items and the response itself, by the key
 * that sent them (decisions §3 "Stateful Responses calls"). Bounded in time and bytes; the oldest go first.
 */
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { type JsonObject, objectsOf, textOf } from '../../lib/json.ts'
import type { Settings } from '../../settings/schema.ts'
import { callKind } from '../formats/call-kinds.ts'
import { ItemPool, type StoredItem, textBytes } from './item-pool.ts'
import { packDocument, releaseDocument, type StoredDocument, unpackDocument } from './stored-document.ts'

const MIB = 1024 * 1024
/** Own input, output and response together; a larger one is answered and not stored. */
export const MAX_RESPONSE_BYTES = 8 * MIB

/** What a response and one of its names cost beside their texts (`bench/response-store.ts`, Bun 1.4.5). */
const RESPONSE_OVERHEAD_BYTES = 704
const NAME_OVERHEAD_BYTES = 320
const POINTER_BYTES = 8

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

/** What a request brings whose answer is to be stored. */
export interface RequestToStore {
  /** The key, or the one scope of clients without a key. */
  scope: string
  previous: StoredResponse | null
  input: readonly { text: string; id: string | null }[]
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
  /** Stores the response, whose `output` is complete. */
  finish(response: JsonObject): void
  /** Stores the reasoning in front of each call of the response, by call id, and nothing else. */
  finishChat(response: JsonObject): void
  release(): void
}

interface Node extends StoredResponse {
  id: string
  readonly previous: Node | null
  output: readonly StoredItem[]
  readonly scope: string
  document: StoredDocument | null
  /** Of the index, of responses that continue it, and of running requests. */
  holders: number
  names: Set<string>
  /** `clock.monotonic()` */
  storedAt: number
  /** Its neighbours in order of age while it is in the index. */
  older: Node | null
  newer: Node | null
}

/** Items that can be found by a name for as long as any stored response uses it. */
interface Named {
  items: readonly StoredItem[]
  holders: number
}

interface StoreDeps {
  clock: Pick<Clock, 'monotonic'>
  settings: () => Pick<Settings, 'responseStoreMinutes' | 'responseStoreMiB'>
}

export class ResponseStore {
  readonly #deps: StoreDeps
  readonly #pool = new ItemPool()
  /** By scope and id. */
  readonly #responses = new Map<string, Node>()
  /** Ends of a linked list: a `Map` whose first entries are deleted skips their empty places each time it is read. */
  #oldest: Node | null = null
  #newest: Node | null = null
  readonly #named = new Map<string, Named>()
  /** Memory of everything but the items. */
  #overhead = 0

  constructor(deps: StoreDeps) {
    this.#deps = deps
  }

  get isOn(): boolean {
    return this.#deps.settings().responseStoreMinutes > 0
  }

  get size(): number {
    return this.#responses.size
  }

  /** Memory of all that is stored or on its way, texts and what it takes to keep them. */
  get bytes(): number {
    return this.#pool.bytes + this.#overhead
  }

  get(scope: string, id: string): StoredResponse | null {
    this.sweep()
    const node = this.#responses.get(keyOf(scope, id))
    return node?.document ? node : null // a chat answer has none
  }

  /** The response object as the client got it; null for one that was not stored or was stored by another key. */
  document(scope: string, id: string): JsonObject | null {
    this.sweep()
    const node = this.#responses.get(keyOf(scope, id))
    return node?.document ? unpackDocument(node.document, node.output) : null
  }

  /** False when there is none. Responses that continue it keep the history they were made with. */
  delete(scope: string, id: string): boolean {
    this.sweep()
    const node = this.#responses.get(keyOf(scope, id))
    if (!node?.document) return false
    this.#evict(node)
    return true
  }

  item(scope: string, id: string): StoredItem | null {
    this.sweep()
    return this.#named.get(itemName(scope, id))?.items[0] ?? null
  }

  /** The reasoning that led to a call of a chat answer. */
  reasoningBefore(scope: string, callId: string): readonly StoredItem[] {
    this.sweep()
    return this.#named.get(callName(scope, callId))?.items ?? NOTHING
  }

  /** Holds what the request brings until its answer is there. Null when the store is off, or it does not fit. */
  record(request: RequestToStore): Recording | null {
    this.sweep()
    if (!this.isOn) return null
    const size = request.input.reduce((sum, { text }) => sum + textBytes(text), 0)
    if (size > Math.min(MAX_RESPONSE_BYTES, this.#limit)) return null // before anything is displaced for it
    const node = this.#begin(request)
    if (!node) return null
    this.#makeRoom()
    if (ownBytes(node) <= MAX_RESPONSE_BYTES && this.bytes <= this.#limit) return this.#recording(node, request)
    this.#abandon(node)
    return null
  }

  #recording(node: Node, request: RequestToStore): Recording {
    let running: Node | null = node
    const take = (): Node | null => {
      const taken = running ?? this.#begin(request)
      running = null
      return taken
    }
    return {
      finish: (response) => this.#finish(take(), response),
      finishChat: (response) => this.#finishChat(take(), response),
      release: () => {
        if (running) this.#abandon(running)
        running = null
      },
    }
  }

  /** Drops what is too old, or more than the settings allow by now. */
  sweep(): void {
    const oldest = this.#deps.clock.monotonic() - this.#deps.settings().responseStoreMinutes * MINUTE_MS
    while (this.#oldest && this.#oldest.storedAt <= oldest) this.#evict(this.#oldest)
    this.#makeRoom()
  }

  #finish(node: Node | null, response: JsonObject): void {
    if (!node) return
    node.id = textOf(response.id)
    const output = objectsOf(response.output)
    node.output = output.map((item) => this.#pool.hold(JSON.stringify(item)))
    node.document = packDocument(response, this.#pool)
    this.#overhead += node.document.bytes + node.output.length * POINTER_BYTES
    for (const [index, { text }] of node.output.entries()) {
      const id = textOf(output[index]?.id)
      if (id !== '') this.#name(node, itemName(node.scope, id), [text])
    }
    if (node.id === '' || ownBytes(node) > Math.min(MAX_RESPONSE_BYTES, this.#limit)) this.#abandon(node)
    else this.#index(node)
  }

  #finishChat(node: Node | null, response: JsonObject): void {
    if (!node) return
    node.id = `chat\0${textOf(response.id)}`
    for (const [callId, items] of reasoningByCall(objectsOf(response.output)))
      this.#name(
        node,
        callName(node.scope, callId),
        items.map((item) => JSON.stringify(item)),
      )
    if (node.names.size === 0) this.#abandon(node)
    else this.#index(node)
  }

  /** Null when what it continues was dropped since. */
  #begin({ scope, previous, input, instructions, itemIds, callIds }: RequestToStore): Node | null {
    if ((previous as Node | null)?.holders === 0) return null // as: only this class makes them
    const node: Node = {
      id: '',
      scope,
      previous: previous as Node | null, // as above
      input: input.map(({ text }) => this.#pool.hold(text)),
      instructions,
      output: NOTHING,
      document: null,
      holders: 1,
      names: new Set(),
      storedAt: 0,
      older: null,
      newer: null,
    }
    if (node.previous) node.previous.holders++
    this.#overhead += RESPONSE_OVERHEAD_BYTES + node.input.length * POINTER_BYTES
    for (const id of itemIds) this.#nameAgain(node, itemName(scope, id))
    for (const id of callIds) this.#nameAgain(node, callName(scope, id))
    for (const { id, text } of input) if (id !== null) this.#name(node, itemName(scope, id), [text])
    return node
  }

  #index(node: Node): void {
    const key = keyOf(node.scope, node.id)
    const before = this.#responses.get(key)
    if (before) this.#evict(before)
    node.storedAt = this.#deps.clock.monotonic()
    this.#responses.set(key, node)
    node.older = this.#newest
    if (this.#newest) this.#newest.newer = node
    else this.#oldest = node
    this.#newest = node
    this.#makeRoom()
  }

  get #limit(): number {
    return this.#deps.settings().responseStoreMiB * MIB
  }

  #makeRoom(): void {
    while (this.#oldest && this.bytes > this.#limit) this.#evict(this.#oldest)
  }

  /** Takes it out of the index. Its items stay for as long as a later response continues it. */
  #evict(node: Node): void {
    const { older, newer } = node
    this.#responses.delete(keyOf(node.scope, node.id))
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
    node.older = null
    node.newer = null
    this.#abandon(node)
  }

  #abandon(node: Node): void {
    if (node.document) {
      this.#overhead -= node.document.bytes
      releaseDocument(node.document, this.#pool)
      node.document = null
    }
    for (const name of node.names) this.#unname(name)
    node.names = NO_NAMES
    for (let last: Node | null = node; last && --last.holders === 0; last = last.previous) this.#drop(last)
  }

  #drop({ input, output }: Node): void {
    for (const item of input) this.#pool.release(item)
    for (const item of output) this.#pool.release(item)
    this.#overhead -= RESPONSE_OVERHEAD_BYTES + (input.length + output.length) * POINTER_BYTES
  }

  #name(node: Node, name: string, texts: readonly string[]): void {
    if (!this.#named.has(name)) {
      this.#named.set(name, { items: texts.map((text) => this.#pool.hold(text)), holders: 0 })
      this.#overhead += NAME_OVERHEAD_BYTES
    }
    this.#nameAgain(node, name)
  }

  #nameAgain(node: Node, name: string): void {
    const named = this.#named.get(name)
    if (!named || node.names.has(name)) return
    named.holders++
    node.names.add(name)
    this.#overhead += NAME_POINTER_BYTES
  }

  #unname(name: string): void {
    const named = this.#named.get(name)!
    this.#overhead -= NAME_POINTER_BYTES
    if (--named.holders > 0) return
    this.#named.delete(name)
    this.#overhead -= NAME_OVERHEAD_BYTES
    for (const item of named.items) this.#pool.release(item)
  }
}

/** The response and those before it, oldest first. */
export const chainOf = (last: StoredResponse): StoredResponse[] => {
  const chain: StoredResponse[] = []
  for (let one: StoredResponse | null = last; one; one = one.previous) chain.push(one)
  return chain.reverse()
}

const NOTHING: readonly StoredItem[] = []
const NO_NAMES: Set<string> = new Set()

/** A place in the set of a response; the name itself is shared. */
const NAME_POINTER_BYTES = 24

const keyOf = (scope: string, id: string): string => `${scope}\0${id}`
const itemName = (scope: string, id: string): string => `item\0${scope}\0${id}`
const callName = (scope: string, id: string): string => `call\0${scope}\0${id}`

const ownBytes = ({ input, output, document }: Node): number =>
  [...input, ...output].reduce((sum, { bytes }) => sum + bytes, document?.bytes ?? 0)

/** Call id → the reasoning between it and the call before. A summary alone would be read as text, so it needs ciphertext. */
const reasoningByCall = (output: readonly JsonObject[]): Map<string, JsonObject[]> => {
  const found = new Map<string, JsonObject[]>()
  let reasoning: JsonObject[] = []
  for (const item of output) {
    if (item.type === 'reasoning' && textOf(item.encrypted_content) !== '') reasoning.push(item)
    const id = callKind(item) && (textOf(item.call_id) || textOf(item.id))
    if (!id) continue
    if (reasoning.length > 0) found.set(id, reasoning)
    reasoning = []
  }
  return found
}
