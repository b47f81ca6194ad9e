/** `GET` and `DELETE /v1/responses/:id` and its input items: what is still stored of the answers this key got. No upstream is called. */
import type { Ctx } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import type { JsonObject } from '../../lib/json.ts'
import { invalid } from '../formats/invalid-request.ts'
import { listedItems } from '../responses-store/listed-items.ts'
import { storeScope } from '../responses-store/stateful-request.ts'

const gates = () => [clientKey('optional'), restricted('refuse')] as const

export const showResponse = createHandlers(...gates(), (c) => {
  if (c.req.query('stream') === 'true')
    throw new AppError('unsupported_parameter', { param: 'stream', message: 'A stored response cannot be streamed.' })
  return c.json(c.env.responses.document(storeScope(c.var.client), getPathId(c)) ?? notFound(c))
})

export const deleteResponse = createHandlers(...gates(), (c) => {
  if (!c.env.responses.delete(storeScope(c.var.client), getPathId(c))) notFound(c)
  return c.json({ id: getPathId(c), object: 'response', deleted: true })
})

export const listInputItems = createHandlers(...gates(), (c) => {
  const { limit, order, after } = getPaging(c)
  const response = c.env.responses.get(storeScope(c.var.client), getPathId(c)) ?? notFound(c)
  const items = listedItems(response)
  const ordered = order === 'asc' ? items : items.reverse()
  const from = after === null ? 0 : placeAfter(ordered, after)
  const data = ordered.slice(from, from + limit).map((item) => item())
  return c.json({
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: ordered.length > from + limit,
  })
})

const getPathId = (c: Ctx): string => c.req.param('id') ?? ''

/** Also for a response of another key: it learns nothing of it. */
const notFound = (c: Ctx): never => {
  throw new AppError('not_found', {
    message: `Response with id '${getPathId(c).slice(0, MAX_SHOWN_CHARS)}' not found.`,
    param: 'response_id',
  })
}

const MAX_SHOWN_CHARS = 80

const DEFAULT_LIMIT = 20
const MAX_LIMIT = 100

/** As OpenAI has it: 20 items, the newest first. */
const getPaging = (c: Ctx): { limit: number; order: string; after: string | null } => {
  const { limit = String(DEFAULT_LIMIT), order = 'desc', after = null } = c.req.query()
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_LIMIT)
    throw invalid('limit', `limit must be a whole number from 1 to ${MAX_LIMIT}.`)
  if (order !== 'asc' && order !== 'desc') throw invalid('order', "order must be 'asc' or 'desc'.")
  return { limit: Number(limit), order, after }
}

const placeAfter = (items: readonly (() => JsonObject)[], after: string): number => {
  const place = items.findIndex((item) => item().id === after)
  if (place === -1) throw invalid('after', 'after must be the id of an item of this list.')
  return place + 1
}
