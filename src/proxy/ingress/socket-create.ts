/**
 * Builds the body of a turn from a `response.create` frame: what it continues, what the key enforces, what is not
 * passed on.
 */
import { capability } from '../../auth/client-key.ts'
import { AppError } from '../../errors.ts'
import { CAPABILITY_HEADER } from '../../http/gates.ts'
import { getObject, getObjects, type JsonObject } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { hasInstruction } from '../formats/instructions.ts'
import { normaliseResponses, withCiphertext } from '../formats/v1-responses.ts'
import type { TurnBody } from '../turn/turn.ts'
import type { CreateFrame } from './client-frames.ts'
import { enforcedMembers, withKeyPolicy } from './key-policy.ts'
import type { BodyHold } from './raw-body.ts'
import { rewriteBody } from './rewrite.ts'
import { alwaysStreamed, cutMembers, type ListText, spliceBody, withItemsBefore } from './splice.ts'

/** What the last response leaves for a turn that continues it. */
export interface Earlier {
  id: string
  /** Input of a prewarm answered here; null for responses the upstream knows. */
  input: ListText | null
  /** Its conversation has developer messages. Unused where bodies pass unchanged. */
  isInstructed: boolean
}

export interface Create {
  frame: CreateFrame
  bytes: Uint8Array<ArrayBuffer>
  hold: BodyHold
}

export interface Continued {
  body: TurnBody
  /** The earlier response that the upstream connection has to know. */
  chain: string | null
  /** As in `Earlier`. */
  isInstructed: boolean
}

/** Whether the frame names a capability at all: clients without a key must not learn which exist. */
export const mentionsCapability = (body: JsonObject): boolean => capabilityNames(body).length > 0

/** Whether the body's metadata requests the restricted pool. Throws `unsupported_required_capability`. */
export const demandsCapability = (body: JsonObject): boolean => {
  const metadata = getObject(body.client_metadata)
  return capabilityNames(body).some((name) => capability(String(metadata[name])) !== null)
}

/** Header names are case-insensitive, so their counterparts in metadata are too. */
const capabilityNames = ({ client_metadata }: JsonObject): string[] =>
  Object.keys(getObject(client_metadata)).filter((name) => name.toLowerCase() === CAPABILITY_HEADER)

/** A native frame passes unchanged, except for `enforcedMembers` and the upstream's requirements. */
export const nativeBody = (create: Create, key: KeyPolicy | null, earlier: Earlier | null): Continued => {
  const { frame, bytes, hold } = create
  const follows = followedBy(frame, earlier)
  const members = { ...alwaysStreamed(frame), ...enforcedMembers(frame, key), ...withoutOurMetadata(frame) }
  // The upstream would look up `null` as an earlier response.
  const kept = follows || frame.previous_response_id === null ? cutMembers(bytes, ['previous_response_id']) : bytes
  const json = follows ? { ...frame, previous_response_id: null } : frame
  const body = spliceBody({ bytes: kept, json, hold }, members)
  return {
    body: follows ? withItemsBefore(body, 'input', follows) : body,
    chain: follows ? null : getChain(frame),
    isInstructed: false,
  }
}

/**
 * A public frame is normalised like a public request, except for system messages: `instructions` apply to one turn
 * only, items continue.
 */
export const publicBody = (create: Create, key: KeyPolicy | null, last: Earlier | null): Continued => {
  const { frame, bytes, hold } = create
  const { type, previous_response_id, generate, ...request } = frame
  const earlier = last && previous_response_id === last.id ? last : null
  const chain = earlier?.input ? null : getChain(frame)
  const asked = { ...request, ...withoutOurMetadata(frame) }
  const placing = { keepsSystem: true, isInstructed: earlier?.isInstructed ?? false }
  const { body } = normaliseResponses(asked, placing)
  const said = getObjects(body.input)
  const json = {
    type,
    ...(chain !== null && { previous_response_id: chain }),
    ...(generate === false && { generate }),
    ...withKeyPolicy(withCiphertext(body), key),
  }
  const own = rewriteBody({ bytes, json: frame, hold }, json)
  const whole = earlier?.input ? withItemsBefore(own, 'input', earlier.input) : own
  return { body: whole, chain, isInstructed: placing.isInstructed || hasInstruction(said) }
}

const getChain = ({ previous_response_id }: CreateFrame): string | null => previous_response_id || null

/** The input of our own prewarm that the turn continues. Throws `invalid_request_error` when `input` is not a list. */
const followedBy = ({ previous_response_id, input }: CreateFrame, earlier: Earlier | null): ListText | null => {
  if (!earlier?.input || previous_response_id !== earlier.id) return null
  if (!Array.isArray(input))
    throw new AppError('invalid_request_error', { message: "'input' must be a list.", param: 'input' })
  return earlier.input
}

const withoutOurMetadata = (frame: CreateFrame): JsonObject => {
  const ours = capabilityNames(frame)
  if (ours.length === 0) return {}
  const metadata = Object.entries(getObject(frame.client_metadata)).filter(([name]) => !ours.includes(name))
  return { client_metadata: Object.fromEntries(metadata) }
}
