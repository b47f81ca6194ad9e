/** Follows the function calls of one stream and gives each its chat index; says what is new about a call. */
import { type JsonObject, textOf } from '../../lib/json.ts'

interface Call {
  /** Position among the calls of the answer; null until its name is known and the client was told. */
  index: number | null
  /** Arguments that came before the name. */
  early: string
  /** Characters of the arguments the client has. */
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

  /** A call item began or, with `isDone`, is complete: then its arguments are the whole truth. */
  item(event: JsonObject, item: JsonObject, isDone: boolean): JsonObject | null {
    const call = this.#find({ output_index: event.output_index, item_id: item.id, call_id: item.call_id })
    if (call.index === null) return this.#announce(call, item)
    return isDone ? this.#append(call, textOf(item.arguments).slice(call.sent)) : null
  }

  argumentsDelta(event: JsonObject, delta: string): JsonObject | null {
    const call = this.#find(event)
    if (call.index !== null) return this.#append(call, delta)
    call.early += delta
    return null
  }

  argumentsDone(event: JsonObject, full: string): JsonObject | null {
    const call = this.#find(event)
    if (call.index !== null) return this.#append(call, full.slice(call.sent))
    call.early = full
    return null
  }

  /** Id and name are said once, with all the arguments known by then. */
  #announce(call: Call, item: JsonObject): JsonObject {
    const known = [call.early, textOf(item.arguments)].reduce((a, b) => (b.length > a.length ? b : a))
    call.index = this.#count++
    call.sent = known.length
    call.early = ''
    return {
      index: call.index,
      id: item.call_id ?? item.id,
      type: 'function',
      function: { name: item.name, arguments: known },
    }
  }

  #append(call: Call, more: string): JsonObject | null {
    if (more === '') return null
    call.sent += more.length
    return { index: call.index, function: { arguments: more } }
  }

  #find(event: JsonObject): Call {
    const names = (['call_id', 'item_id', 'output_index'] as const)
      .filter((key) => event[key] != null)
      .map((key) => `${key}:${event[key]}`)
    const call = names.map((name) => this.#byName.get(name)).find((known) => known) ?? {
      index: null,
      early: '',
      sent: 0,
    }
    for (const name of names) this.#byName.set(name, call)
    return call
  }
}
