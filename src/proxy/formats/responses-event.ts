/** The parsed JSON of the upstream's Responses dialect, and the readers for its untyped members. */
import { AppError } from '../../errors.ts'

export type JsonObject = Record<string, unknown>

/** One event of a Responses stream after `JSON.parse`; everything beyond `type` is unproven. */
export type ResponsesEvent = { type: string } & JsonObject

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The value as an object; an empty one when it is anything else. */
export const objectOf = (value: unknown): JsonObject => (isObject(value) ? value : {})

/** The objects of a list; an empty list when it is anything else. */
export const objectsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** The value as text; empty when it is anything else. */
export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/**
 * What went wrong according to a `response.failed` or `error` event, or a response object with status `failed`.
 * The upstream's own code, type and message are kept; ours is `upstream_error`.
 */
export function upstreamFailure(source: JsonObject): AppError {
  const response = objectOf(source.response)
  // A bare `error` event carries its members at the top level, where `type` is the event's name, not the error's.
  const error = [source.error, response.error].find(isObject) ?? { code: source.code, message: source.message }
  return new AppError('upstream_error', {
    ...(textOf(error.message) && { message: textOf(error.message) }),
    ...(textOf(error.param) && { param: textOf(error.param) }),
    upstream: { code: textOf(error.code) || null, type: textOf(error.type) || null },
  })
}
