/** Refuses bodies that say twice what is looked at here: what was checked would not be what the upstream reads. */
import { AppError } from '../errors.ts'
import { type JsonObject, objectOf } from '../lib/json.ts'
import { repeatedMember } from '../lib/json-members.ts'

/** What a key, a gate or a rule of the upstream is about. */
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
 * `json` is what `bytes` say. A native body leaves as it came, and which of two equal names counts is everybody's own choice
 * (RFC 8259 §4). Throws `invalid_request_error`.
 */
export const demandSingle = (bytes: Uint8Array, json: JsonObject): void => {
  const hasEffort = 'effort' in objectOf(json.reasoning)
  const there = CHECKED.filter((path) => (path === 'reasoning.effort' ? hasEffort : path in json))
  const param = repeatedMember(bytes, there)
  if (param !== null)
    throw new AppError('invalid_request_error', { message: `The request has '${param}' twice. Send it once.`, param })
}
