/** Tracks the tool calls of one stream: assigns chat indexes and returns what is new about a call. */
import { getText, type JsonObject } from '../../lib/json.ts'
import { type CallKind, callKind, chatCall } from './call-kinds.ts'

interface Call {
  /** What was sent; null until the name is known. */
  told: Told | null
  /** Text that arrived before the name. */
  early: string
}

interface Told {
  /** Index among the calls of the answer. */
  index: number
  kind: CallKind
  /** Characters of text sent. */
  sent: number
}

/** Each method returns the `tool_calls[]` delta to send, or null when there is nothing new. */
export class ChatToolCalls {
  /** Each call under every id events use for it, most reliable first: item ids are not always stable. */
  readonly #byName = new Map<string, Call>()
  #count = 0

  get count(): number {
    return this.#count
  }

  /** An item that began without its text, or that is complete. Null for items that are not tool calls. */
  item(event: JsonObject, item: JsonObject): JsonObject | null {
    const kind = callKind(item)
    if (!kind) return null
    const call = this.#find({ output_index: event.output_index, item_id: item.id, call_id: item.call_id })
    if (!call.told) return this.#announce(call, item, kind)
    return this.#append(call.told, getText(item[kind.text]).slice(call.told.sent))
  }

  textDelta(event: JsonObject, delta: string): JsonObject | null {
    const call = this.#find(event)
    if (call.told) return this.#append(call.told, delta)
    call.early += delta
    return null
  }

  textDone(event: JsonObject, full: string): JsonObject | null {
    const call = this.#find(event)
    if (call.told) return this.#append(call.told, full.slice(call.told.sent))
    call.early = full
    return null
  }

  /** Sends id and name once, with the text known so far. */
  #announce(call: Call, item: JsonObject, kind: CallKind): JsonObject {
    const known = [call.early, getText(item[kind.text])].reduce((a, b) => (b.length > a.length ? b : a))
    call.told = { index: this.#count++, kind, sent: known.length }
    return { index: call.told.index, ...chatCall(kind, item, known) }
  }

  #append(told: Told, more: string): JsonObject | null {
    if (more === '') return null
    told.sent += more.length
    return { index: told.index, [told.kind.type]: { [told.kind.text]: more } }
  }

  #find(event: JsonObject): Call {
    const names = (['call_id', 'item_id', 'output_index'] as const)
      .filter((key) => event[key] != null)
      .map((key) => `${key}:${event[key]}`)
    const call = names.map((name) => this.#byName.get(name)).find((known) => known) ?? { told: null, early: '' }
    for (const name of names) this.#byName.set(name, call)
    return call
  }
}
