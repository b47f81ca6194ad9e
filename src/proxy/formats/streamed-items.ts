/** The output items of a stream, collected from events that are complete; deltas are ignored. */
import { getObject, type JsonObject } from '../../lib/json.ts'
import { ResponseCollector } from './collect.ts'
import type { ResponsesEvent } from './responses-event.ts'

const BEGUN = 'response.output_item.added'

export class StreamedItems {
  readonly #collector = new ResponseCollector()
  /**
   * Announced but without complete text. If the stream breaks off, they would be empty answers or calls, so they are
   * kept apart.
   */
  readonly #begun = new Map<unknown, ResponsesEvent>()
  #isEmpty = true

  get isEmpty(): boolean {
    return this.#isEmpty
  }

  needs(type: string | null): type is string {
    if (type === null) return false
    return type === BEGUN || (type.endsWith('.done') && this.#collector.needs(type))
  }

  push(event: ResponsesEvent): void {
    const key = event.output_index ?? getObject(event.item).id ?? event.item_id
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

  /** The response of the last event, with `output` filled in when empty. */
  getResponse(ended: ResponsesEvent): JsonObject {
    this.#collector.push(ended)
    return this.#collector.result()
  }
}
