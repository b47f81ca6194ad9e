/** One event of the upstream's Responses dialect, and what it says went wrong. */
import { AppError } from '../../errors.ts'
import { type JsonObject, textOf } from '../../lib/json.ts'
import { statedError } from '../upstream-failure.ts'

/** One event of a Responses stream after `JSON.parse`; everything beyond `type` is unproven. */
export type ResponsesEvent = { type: string } & JsonObject

/**
 * What went wrong according to a `response.failed` or `error` event, or a response object with status `failed`.
 * The upstream's own code, type and message are kept; ours is `upstream_error`.
 */
export function upstreamFailure(source: JsonObject): AppError {
  const error = statedError(source)
  return new AppError('upstream_error', {
    ...(textOf(error.message) && { message: textOf(error.message) }),
    ...(textOf(error.param) && { param: textOf(error.param) }),
    upstream: { code: textOf(error.code) || null, type: textOf(error.type) || null },
  })
}
