/** What a request body must satisfy before Sluice uses it, and the capability that its metadata may require. */
import { capability } from '../../auth/client-key.ts'
import { AppError } from '../../errors.ts'
import { CAPABILITY_HEADER } from '../../http/gates.ts'
import { getObject, type JsonObject } from '../../lib/json.ts'
import { holdsMoreValuesThan, nestsDeeperThan } from '../../lib/json-bounds.ts'
import { repeatedMember } from '../../lib/json-members.ts'

/** The longest conversation a model accepts has about 200,000. This many take at most a second to parse (Bun 1.4.5). */
const MAX_VALUES = 500_000

/** Very many values take a minute and gigabytes to parse. Call before parsing a body. Throws `invalid_request_error`. */
export const requireFewValues = (bytes: Uint8Array): void => {
  if (holdsMoreValuesThan(bytes, MAX_VALUES))
    throw new AppError('invalid_request_error', {
      message: `The request body has more than ${MAX_VALUES} JSON values.`,
    })
}

/** Far above any client; the runtime's own limit is tens of thousands (Bun 1.4.5). */
const MAX_DEPTH = 1000

/** Very deep nesting takes a second and then fails. Call before a body is rewritten. Throws `invalid_request_error`. */
export const requireShallow = (json: Uint8Array): void => {
  if (nestsDeeperThan(json, MAX_DEPTH))
    throw new AppError('invalid_request_error', { message: 'The request body is nested too deeply.' })
}

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

/** Whether the body names a capability at all: clients without a key must not learn which exist. */
export const mentionsCapability = (body: JsonObject): boolean => capabilityNames(body).length > 0

/** Whether the body's metadata requests the restricted pool. Throws `unsupported_required_capability`. */
export const demandsCapability = (body: JsonObject): boolean => {
  const metadata = getObject(body.client_metadata)
  return capabilityNames(body).some((name) => capability(String(metadata[name])) !== null)
}

/** Header names are case-insensitive, so their counterparts in metadata are too. */
export const capabilityNames = ({ client_metadata }: JsonObject): string[] =>
  Object.keys(getObject(client_metadata)).filter((name) => name.toLowerCase() === CAPABILITY_HEADER)
