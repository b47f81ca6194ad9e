/** An event of the upstream's Responses stream, and the error in it. */
import { AppError } from '../../errors.ts'
import { getText, type JsonObject } from '../../lib/json.ts'
import { getErrorObject } from '../exchange/upstream-failure.ts'

/** A Responses event after `JSON.parse`; only `type` has been checked. */
export type ResponsesEvent = { type: string } & JsonObject

/**
 * The error in a `response.failed` or `error` event, or in a response with status `failed`: `upstream_error` with the
 * upstream's code, type and message.
 */
export function upstreamFailure(source: JsonObject): AppError {
  const error = getErrorObject(source)
  return new AppError('upstream_error', {
    ...(getText(error.message) && { message: getText(error.message) }),
    ...(getText(error.param) && { param: getText(error.param) }),
    upstream: { code: getText(error.code) || null, type: getText(error.type) || null },
  })
}
