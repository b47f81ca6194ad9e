/** Turns a malformed value into a 400 that names the field. */
import type { z } from 'zod'
import { AppError } from '../../errors.ts'

/** A 400 `invalid_request_error` about `param`, a path like `messages[2].content[0]`. */
export const invalid = (param: string, message: string): AppError =>
  new AppError('invalid_request_error', { param, message })

/** `value` parsed with `schema`. Throws `invalid_request_error` for the first invalid field. */
export function parseAt<S extends z.ZodType>(schema: S, value: unknown, at = ''): z.output<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const param = [...issue.path, ...unknown].reduce<string>((path, key) => {
    if (typeof key === 'number') return `${path}[${key}]`
    return path ? `${path}.${String(key)}` : String(key)
  }, at)
  throw invalid(param, `Invalid value for '${param}': ${issue.message}.`)
}
