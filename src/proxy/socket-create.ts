/** Makes the body of a turn from a `response.create` frame: what it continues, what the key puts in, what stays here. */
import { capability } from '../auth/client-key.ts'
import { AppError } from '../errors.ts'
import { CAPABILITY_HEADER } from '../http/gates.ts'
import { type JsonObject, objectOf, objectsOf } from '../lib/json.ts'
import type { KeyPolicy } from '../model/key-ring.ts'
import type { CreateFrame } from './client-frames.ts'
import { hasInstruction } from './formats/instructions.ts'
import { normaliseResponses, withCiphertext } from './formats/v1-responses.ts'
import { enforcedMembers, withKeyPolicy } from './key-policy.ts'
import type { BodyHold } from './raw-body.ts'
import { rewritten } from './rewrite.ts'
import { alwaysStreamed, cutMembers, type ListText, spliced, withItemsAhead } from './splice.ts'
import type { TurnBody } from './turn.ts'

/** What the last response leaves for a turn that continues it. */
export interface Earlier {
  id: string
  /** The input of a prewarm that was answered here and not upstream; null for what the upstream knows. */
  input: ListText | null
  /** Its conversation holds developer messages. Not looked at where bodies leave as they came. */
  isInstructed: boolean
}

export interface Create {
  frame: CreateFrame
  bytes: Uint8Array<ArrayBuffer>
  hold: BodyHold
}

export interface Continued {
  body: TurnBody
  /** The earlier response, where an upstream connection has to know it. */
  chain: string | null
  /** As `Earlier` has it. */
  isInstructed: boolean
}

/** Whether the frame speaks of a capability at all: who has no key learns nothing about which there are. */
export const mentionsCapability = (body: JsonObject): boolean => capabilityNames(body).length > 0

/** Whether the body itself asks for the restricted pool, in its metadata (proxy surface §4.5). Throws `unsupported_required_capability`. */
export const demandsCapability = (body: JsonObject): boolean => {
  const metadata = objectOf(body.client_metadata)
  return capabilityNames(body).some((name) => capability(String(metadata[name])) !== null)
}

/** Header names know no case, and what stands for one must not slip through by its spelling. */
const capabilityNames = ({ client_metadata }: JsonObject): string[] =>
  Object.keys(objectOf(client_metadata)).filter((name) => name.toLowerCase() === CAPABILITY_HEADER)

/** A native frame leaves as it came, but for what `enforcedMembers` and the rules of the upstream demand. */
export const nativeBody = (create: Create, key: KeyPolicy | null, earlier: Earlier | null): Continued => {
  const { frame, bytes, hold } = create
  const follows = followedBy(frame, earlier)
  const members = { ...alwaysStreamed(frame), ...enforcedMembers(frame, key), ...withoutOurMetadata(frame) }
  // `null` names no earlier response, and the upstream would look for one.
  const kept = follows || frame.previous_response_id === null ? cutMembers(bytes, ['previous_response_id']) : bytes
  const json = follows ? { ...frame, previous_response_id: null } : frame
  const body = spliced({ bytes: kept, json, hold }, members)
  return {
    body: follows ? withItemsAhead(body, 'input', follows) : body,
    chain: follows ? null : chainOf(frame),
    isInstructed: false,
  }
}

/** A public frame is normalised as a public request is, but for system messages: `instructions` last for one turn, items go on. */
export const publicBody = (create: Create, key: KeyPolicy | null, last: Earlier | null): Continued => {
  const { frame, bytes, hold } = create
  const { type, previous_response_id, generate, ...request } = frame
  const earlier = last && previous_response_id === last.id ? last : null
  const chain = earlier?.input ? null : chainOf(frame)
  const asked = { ...request, ...withoutOurMetadata(frame) }
  const placing = { keepsSystem: true, isInstructed: earlier?.isInstructed ?? false }
  const { body } = normaliseResponses(asked, placing)
  const said = objectsOf(body.input)
  const json = {
    type,
    ...(chain !== null && { previous_response_id: chain }),
    ...(generate === false && { generate }),
    ...withKeyPolicy(withCiphertext(body), key),
  }
  const own = rewritten({ bytes, json: frame, hold }, json)
  const whole = earlier?.input ? withItemsAhead(own, 'input', earlier.input) : own
  return { body: whole, chain, isInstructed: placing.isInstructed || hasInstruction(said) }
}

const chainOf = ({ previous_response_id }: CreateFrame): string | null => previous_response_id || null

/** The input of a prewarm of ours that the turn continues. Throws `invalid_request_error` when there is no list to join it to. */
const followedBy = ({ previous_response_id, input }: CreateFrame, earlier: Earlier | null): ListText | null => {
  if (!earlier?.input || previous_response_id !== earlier.id) return null
  if (!Array.isArray(input))
    throw new AppError('invalid_request_error', { message: "'input' must be a list.", param: 'input' })
  return earlier.input
}

const withoutOurMetadata = (frame: CreateFrame): JsonObject => {
  const ours = capabilityNames(frame)
  if (ours.length === 0) return {}
  const metadata = Object.entries(objectOf(frame.client_metadata)).filter(([name]) => !ours.includes(name))
  return { client_metadata: Object.fromEntries(metadata) }
}
