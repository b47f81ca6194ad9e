/** Rejects bodies that repeat a member checked here: the upstream might read the other one. */
import { AppError } from '../../errors.ts'
import { getObject, type JsonObject } from '../../lib/json.ts'
import { repeatedMember } from '../../lib/json-members.ts'

/** Members that a key, a gate or an upstream rule depends on. */
const CHECKED = [
  'model',
  'reasoning',
  'reasoning.effort',
  'service_tier',
  'client_metadata',
  'previous_response_id',
  'stream',
  'store',
  'generate',
] as const

/**
 * `json` is `bytes` parsed. A native body is passed on unchanged, and which of two equal names counts depends on the
 * parser (RFC 8259 §4). Throws `invalid_request_error`.
 */
export const requireSingle = (bytes: Uint8Array, json: JsonObject): void => {
  const hasEffort = 'effort' in getObject(json.reasoning)
  const there = CHECKED.filter((path) => (path === 'reasoning.effort' ? hasEffort : path in json))
  const param = repeatedMember(bytes, there)
  if (param !== null)
    throw new AppError('invalid_request_error', { message: `The request has '${param}' twice. Send it once.`, param })
}
