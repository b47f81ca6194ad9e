/** The responses a connection keeps, so that a turn can continue one by its id. */
import { apiError } from './refusal.ts'
import type { Json } from './script.ts'

type Exchange = { items: Json[]; before: Exchange | null }

export class Conversation {
  readonly #exchanges = new Map<string, Exchange>()

  /** The conversation up to and including this response; throws 400 `previous_response_not_found`. */
  upTo(responseId: unknown): Json[] {
    if (responseId === undefined) return []
    const parts: Json[][] = []
    for (let exchange: Exchange | null = this.#find(responseId); exchange; exchange = exchange.before)
      parts.unshift(exchange.items)
    return parts.flat()
  }

  /** Keeps a response with the conversation before it. */
  remember(response: Json, body: Json): void {
    const said = [body.input, response.output].flatMap((items) => (Array.isArray(items) ? items : []))
    const before = body.previous_response_id === undefined ? null : this.#find(body.previous_response_id)
    this.#exchanges.set(String(response.id), { items: said, before })
  }

  #find(responseId: unknown): Exchange {
    const exchange = this.#exchanges.get(String(responseId))
    if (exchange) return exchange
    const message = `Previous response with id '${responseId}' not found.`
    throw apiError(400, 'previous_response_not_found', message, 'previous_response_id')
  }
}
