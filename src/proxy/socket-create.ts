/** Makes the body of a turn from a `response.create` frame: what it continues, what the key puts in, what stays here. */
import { capability } from '../auth/client-key.ts'
import { AppError } from '../errors.ts'
import { CAPABILITY_HEADER } from '../http/gates.ts'
import { type JsonObject, objectOf } from '../lib/json.ts'
import type { KeyPolicy } from '../model/key-ring.ts'
import type { CreateFrame } from './client-frames.ts'
import { normaliseResponses } from './formats/v1-responses.ts'
import { enforcedMembers, withKeyPolicy } from './key-policy.ts'
import { demandShallow } from './nesting.ts'
import type { BodyHold, RawBody } from './raw-body.ts'
import { cutMembers, spliceMembers } from './splice.ts'
import type { TurnBody } from './turn.ts'

/** What a prewarm said that was answered here and not upstream. */
export interface Prewarm {
  id: string
  input: readonly unknown[]
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
export const nativeBody = (create: Create, key: KeyPolicy | null, prewarm: Prewarm | null): Continued => {
  const { frame, bytes } = create
  const follows = followedBy(frame, prewarm)
  const members: JsonObject = {
    ...(frame.stream !== true && { stream: true }),
    ...(frame.store !== false && { store: false }),
    ...enforcedMembers(frame, key),
    ...(follows && { input: follows }),
    ...withoutOurMetadata(frame),
  }
  // `null` names no earlier response, and the upstream would look for one.
  const kept = follows || frame.previous_response_id === null ? cutMembers(bytes, ['previous_response_id']) : bytes
  const written = Object.keys(members).length > 0 ? spliceMembers(kept, members) : kept
  const json = { ...frame, ...members, ...(follows && { previous_response_id: null }) }
  return { body: { bytes: written, json, hold: create.hold }, chain: follows ? null : chainOf(frame) }
}

const encoder = new TextEncoder()

/** A public frame is normalised as a public request is. */
export const publicBody = (create: Create, key: KeyPolicy | null, prewarm: Prewarm | null): Continued => {
  const { frame, bytes, hold } = create
  const { type, previous_response_id, generate, ...request } = frame
  const follows = followedBy(frame, prewarm)
  const chain = follows ? null : chainOf(frame)
  demandShallow(bytes)
  const asked = { ...request, ...withoutOurMetadata(frame), ...(follows && { input: follows }) }
  const { body } = normaliseResponses(asked)
  const json = {
    type,
    ...(chain !== null && { previous_response_id: chain }),
    ...(generate === false && { generate }),
    ...withKeyPolicy(body, key),
  }
  const written: RawBody['bytes'] = encoder.encode(JSON.stringify(json))
  hold.resize(written.length)
  return { body: { bytes: written, json, hold }, chain }
}

const chainOf = ({ previous_response_id }: CreateFrame): string | null => previous_response_id || null

/** The whole input of a turn that continues a prewarm of ours. Throws `invalid_request_error` when there is no list to join. */
const followedBy = ({ previous_response_id, input }: CreateFrame, prewarm: Prewarm | null): unknown[] | null => {
  if (!prewarm || previous_response_id !== prewarm.id) return null
  if (!Array.isArray(input))
    throw new AppError('invalid_request_error', { message: 'input must be a list.', param: 'input' })
  return [...prewarm.input, ...input]
}

const withoutOurMetadata = (frame: CreateFrame): JsonObject => {
  const ours = capabilityNames(frame)
  if (ours.length === 0) return {}
  const metadata = Object.entries(objectOf(frame.client_metadata)).filter(([name]) => !ours.includes(name))
  return { client_metadata: Object.fromEntries(metadata) }
}
