/**
 * What `/v1` remembers of answered requests, in memory only: their input and output items and the response itself, by the key
 * that sent them (decisions §3 "Stateful Responses calls"). Bounded in time and bytes; the oldest go first.
 */
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { getObjects, getText, type JsonObject, parseJson } from '../../lib/json.ts'
import type { Settings } from '../../settings/schema.ts'
import { reasoningByCall } from '../formats/recalled-reasoning.ts'
import { ItemNames } from './item-names.ts'
import { ItemPool, type StoredItem, textBytes } from './item-pool.ts'
import {
  elementTexts,
  packDocument,
  type RawResponse,
  rawResponse,
  releaseDocument,
  responseIn,
  type StoredDocument,
  unpackDocument,
} from './stored-document.ts'
import { NO_KEY, type Recording, type RequestToStore, type StoredResponse } from './stored-response.ts'

const MIB = 1024 * 1024
/** Own input, output and response together; a larger one is answered and not stored. */
export const MAX_RESPONSE_BYTES = 8 * MIB

/** What a response costs beside its texts and names (`bench/README.md`, Bun 1.4.5). */
const RESPONSE_OVERHEAD_BYTES = 704
const POINTER_BYTES = 8

/** Splitting a smaller response saves too little. */
const SMALL_BYTES = 16 * 1024
/** About 25 ms (Bun 1.4.5), and only when memory is full for the first time; later each request splits about one. */
const SPLIT_AT_ONCE_BYTES = 4 * MIB

interface Node extends StoredResponse {
  id: string
  readonly previous: Node | null
  /** Null when it has been split into `input`, `output` and `document`, which are empty before. */
  raw: RawResponse | null
  input: readonly StoredItem[]
  output: readonly StoredItem[]
  readonly scope: string
  document: StoredDocument | null
  /** References from the index, from responses that continue this one, and from running requests. */
  holders: number
  names: Set<string>
  /** `clock.monotonic()` */
  storedAt: number
  /** Its neighbours in order of age while it is in the index. */
  older: Node | null
  newer: Node | null
}

interface Answer {
  response: JsonObject
  answer: string
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
  /** Responses older than this one have been split, or were too small for it to save memory. */
  #unsplit: Node | null = null
  readonly #names = new ItemNames<Node>(this.#pool)
  /** Keys that may store responses; null: all. */
  #keyIds: ReadonlySet<string> | null = null
  /** Memory of everything but items and names. */
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
    return this.#pool.bytes + this.#names.bytes + this.#overhead
  }

  get(scope: string, id: string): StoredResponse | null {
    const node = this.#find(scope, id)
    if (!node) return null
    this.#split(node)
    this.#makeRoom() // which may evict it
    return this.#find(scope, id)
  }

  /** The response object as the client got it; null for one that was not stored or was stored by another key. */
  document(scope: string, id: string): JsonObject | null {
    const node = this.#find(scope, id)
    if (node?.raw?.answer) return responseIn(node.raw.answer)
    return node?.document ? unpackDocument(node.document, node.output) : null
  }

  #find(scope: string, id: string): Node | null {
    this.sweep()
    const node = this.#responses.get(toKey(scope, id))
    return node?.document || node?.raw?.answer ? node : null // a chat answer has neither
  }

  /** False when there is none. Responses that continue it keep the history they were made with. */
  delete(scope: string, id: string): boolean {
    const node = this.#find(scope, id)
    if (!node) return false
    this.#evict(node)
    return true
  }

  item(scope: string, id: string): StoredItem | null {
    this.sweep()
    const name = itemName(scope, id)
    const source = this.#names.source(name)
    if (source) {
      this.#split(source)
      this.#makeRoom()
    }
    return this.#names.items(name)[0] ?? null
  }

  /** The reasoning that led to a call of a chat answer. */
  reasoningBefore(scope: string, callId: string): readonly StoredItem[] {
    this.sweep()
    return this.#names.items(callName(scope, callId))
  }

  /** Holds what the request brings until its answer is there. Null when the store is off, or it does not fit. */
  record(request: RequestToStore): Recording | null {
    this.sweep()
    if (!this.isOn) return null
    if (textBytes(request.input) > this.#mostBytes) return null // before anything is evicted for it
    const node = this.#begin(request)
    if (!node) return null
    this.#makeRoom()
    if (this.bytes <= this.#limit) return this.#recording(node, request)
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
      finish: (response, answer) => this.#finish(take(), request, { response, answer }),
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

  /** Drops what other keys stored, and stores nothing for them from now on. Clients without a key are not affected. */
  keepOnly(keyIds: ReadonlySet<string>): void {
    const isSomeGone = !this.#keyIds?.isSubsetOf(keyIds)
    this.#keyIds = keyIds
    if (!isSomeGone) return
    for (let node = this.#oldest; node; ) {
      const { newer } = node
      if (!this.#mayStore(node.scope)) this.#evict(node)
      node = newer
    }
  }

  #mayStore(scope: string): boolean {
    return scope === NO_KEY || this.#keyIds === null || this.#keyIds.has(scope)
  }

  #finish(node: Node | null, { inputIds }: RequestToStore, { response, answer }: Answer): void {
    if (!node?.raw) return
    node.id = getText(response.id)
    const bytes = textBytes(answer)
    node.raw.answer = answer
    node.raw.bytes += bytes
    this.#overhead += bytes
    for (const id of inputIds) this.#names.addSource(node, itemName(node.scope, id))
    for (const item of getObjects(response.output)) {
      const id = getText(item.id)
      if (id !== '') this.#names.addSource(node, itemName(node.scope, id))
    }
    if (node.id === '' || node.raw.bytes > this.#mostBytes) this.#abandon(node)
    else this.#index(node)
  }

  /** Into items, each kept once. Costs a parse, so it waits until something refers to the response or memory is short. */
  #split(node: Node): void {
    const { raw } = node
    if (!raw?.answer) return
    const response = responseIn(raw.answer)
    const input = getObjects(parseJson(raw.input))
    const output = getObjects(response.output)
    node.input = elementTexts(raw.input, input).map((text) => this.#pool.hold(text))
    node.output = output.map((item) => this.#pool.hold(JSON.stringify(item)))
    node.document = packDocument(response, this.#pool)
    node.raw = null
    this.#overhead += node.document.bytes + (input.length + output.length) * POINTER_BYTES - raw.bytes
    for (const [index, { id }] of input.entries()) this.#resolve(node, getText(id), node.input[index])
    for (const [index, { id }] of output.entries()) this.#resolve(node, getText(id), node.output[index])
  }

  #resolve(node: Node, id: string, item: StoredItem | undefined): void {
    if (item) this.#names.resolve(node, itemName(node.scope, id), item)
  }

  #finishChat(node: Node | null, response: JsonObject): void {
    if (!node) return
    node.id = `chat\0${getText(response.id)}`
    for (const [callId, items] of reasoningByCall(getObjects(response.output)))
      this.#names.addItems(
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
      raw: rawResponse(input),
      input: NOTHING,
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
    this.#overhead += RESPONSE_OVERHEAD_BYTES + (node.raw?.bytes ?? 0)
    for (const id of itemIds) this.#names.use(node, itemName(scope, id))
    for (const id of callIds) this.#names.use(node, callName(scope, id))
    return node
  }

  #index(node: Node): void {
    if (!this.#mayStore(node.scope)) {
      this.#abandon(node)
      return
    }
    const key = toKey(node.scope, node.id)
    const before = this.#responses.get(key)
    if (before) this.#evict(before)
    node.storedAt = this.#deps.clock.monotonic()
    this.#responses.set(key, node)
    node.older = this.#newest
    if (this.#newest) this.#newest.newer = node
    else this.#oldest = node
    this.#newest = node
    this.#unsplit ??= node
    this.#makeRoom()
  }

  get #limit(): number {
    return this.#deps.settings().responseStoreMiB * MIB
  }

  /** Limit per response; a larger one is not stored. */
  get #mostBytes(): number {
    return Math.min(MAX_RESPONSE_BYTES, this.#limit)
  }

  /** Splits responses first, oldest first, since they usually have items in common. */
  #makeRoom(): void {
    for (let work = SPLIT_AT_ONCE_BYTES; this.#unsplit && work > 0 && this.bytes > this.#limit; ) {
      const node: Node = this.#unsplit
      this.#unsplit = node.newer
      if (!node.raw || node.raw.bytes < SMALL_BYTES) continue
      work -= node.raw.bytes
      this.#split(node)
    }
    while (this.#oldest && this.bytes > this.#limit) this.#evict(this.#oldest)
  }

  /** Takes it out of the index. Its items stay for as long as a later response continues it. */
  #evict(node: Node): void {
    const { older, newer } = node
    this.#responses.delete(toKey(node.scope, node.id))
    if (older) older.newer = newer
    else this.#oldest = newer
    if (newer) newer.older = older
    else this.#newest = older
    if (this.#unsplit === node) this.#unsplit = newer
    node.older = null
    node.newer = null
    this.#abandon(node)
  }

  #abandon(node: Node): void {
    if (node.raw && this.#names.isOnlySource(node)) this.#split(node)
    if (node.raw) this.#overhead -= node.raw.bytes
    node.raw = null
    if (node.document) {
      this.#overhead -= node.document.bytes
      releaseDocument(node.document, this.#pool)
      node.document = null
    }
    this.#names.release(node)
    for (let last: Node | null = node; last && --last.holders === 0; last = last.previous) this.#drop(last)
  }

  #drop({ input, output }: Node): void {
    for (const item of input) this.#pool.release(item)
    for (const item of output) this.#pool.release(item)
    this.#overhead -= RESPONSE_OVERHEAD_BYTES + (input.length + output.length) * POINTER_BYTES
  }
}

const NOTHING: readonly StoredItem[] = []

const toKey = (scope: string, id: string): string => `${scope}\0${id}`
const itemName = (scope: string, id: string): string => `item\0${scope}\0${id}`
const callName = (scope: string, id: string): string => `call\0${scope}\0${id}`
