/** Follows the tool calls of one stream and gives each its chat index; says what is new about a call. */
import { type JsonObject, textOf } from '../../lib/json.ts'
import { type CallKind, callKind, chatCall } from './call-kinds.ts'

interface Call {
  /** What the client was told; null until its name is known. */
  told: Told | null
  /** What came of its text before the name. */
  early: string
}

interface Told {
  /** Position among the calls of the answer. */
  index: number
  kind: CallKind
  /** Characters of its text the client has. */
  sent: number
}

/** Each method returns the `tool_calls[]` delta to send, or null when the client has it all. */
export class ChatToolCalls {
  /** One call under every name events use for it; the surest name first, since item ids are not stable everywhere. */
  readonly #byName = new Map<string, Call>()
  #count = 0

  /** Calls the client was told about. */
  get count(): number {
    return this.#count
  }

  /** An item began, without its text, or is complete: then that is the whole truth. Null also for items that call no tool. */
  item(event: JsonObject, item: JsonObject): JsonObject | null {
    const kind = callKind(item)
    if (!kind) return null
    const call = this.#find({ output_index: event.output_index, item_id: item.id, call_id: item.call_id })
    if (!call.told) return this.#announce(call, item, kind)
    return this.#append(call.told, textOf(item[kind.text]).slice(call.told.sent))
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

  /** Id and name are said once, with all the text known by then. */
  #announce(call: Call, item: JsonObject, kind: CallKind): JsonObject {
    const known = [call.early, textOf(item[kind.text])].reduce((a, b) => (b.length > a.length ? b : a))
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
