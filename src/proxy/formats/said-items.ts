/** What the items of a stream said, as far as events tell it whole: deltas go by unread. */
import { type JsonObject, objectOf } from '../../lib/json.ts'
import { ResponseCollector } from './collect.ts'
import type { ResponsesEvent } from './responses-event.ts'

const BEGUN = 'response.output_item.added'

export class SaidItems {
  readonly #collector = new ResponseCollector()
  /** Announced, and nothing more: one that breaks off before any of its text is whole would be an empty answer, or a call of nothing. */
  readonly #begun = new Map<unknown, ResponsesEvent>()
  #isEmpty = true

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  needs(type: string | null): type is string {
    if (type === null) return false
    return type === BEGUN || (type.endsWith('.done') && this.#collector.needs(type))
  }

  /** Takes an event that is needed. */
  push(event: ResponsesEvent): void {
    const key = event.output_index ?? objectOf(event.item).id ?? event.item_id
    if (event.type === BEGUN) this.#begun.set(key, event)
    else this.#pushWhole(event, key)
  }

  #pushWhole(event: ResponsesEvent, key: unknown): void {
    const begun = this.#begun.get(key)
    if (begun) this.#collector.push(begun)
    this.#begun.delete(key)
    this.#collector.push(event)
    this.#isEmpty = false
  }

  /** The response of the last event, its `output` filled where it is empty. */
  responseOf(ended: ResponsesEvent): JsonObject {
    this.#collector.push(ended)
    return this.#collector.result()
  }
}
