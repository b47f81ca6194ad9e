/**
 * A frame of a client's socket: checks its envelope and builds the body of a turn from a `response.create`. The upstream
 * validates the rest.
 */

import { z } from 'zod'
import { AppError } from '../../errors.ts'
import { getObject, getObjects, type JsonObject, parseJson } from '../../lib/json.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { hasInstruction } from '../formats/instructions.ts'
import { normaliseResponses, withCiphertext } from '../formats/v1-responses.ts'
import type { TurnBody } from '../turn/turn.ts'
import { enforcedMembers, withKeyPolicy } from './key-policy.ts'
import { type BodyHold, capabilityNames } from './raw-body.ts'
import { rewriteBody } from './rewrite.ts'
import { alwaysStreamed, cutMembers, type ListText, spliceBody, withItemsBefore } from './splice.ts'

/** `generate: false` is a prewarm: it announces how the next turn will begin (Codex CLI 0.169). */
const ResponseCreate = z.looseObject({
  type: z.literal('response.create'),
  previous_response_id: z.string().max(512).nullish(),
  generate: z.boolean().nullish(),
})
/** Cancels the running turn. */
const Interrupt = z.looseObject({ type: z.literal('response.interrupt') })
/** Older clients acknowledge what they have read; it has no effect. */
const Processed = z.looseObject({ type: z.literal('response.processed') })

const ClientFrame = z.discriminatedUnion('type', [ResponseCreate, Interrupt, Processed])

type ClientFrame = z.output<typeof ClientFrame>
export type CreateFrame = z.output<typeof ResponseCreate>

/** Throws `malformed_json` or `invalid_request_error`, both 400. */
export const parseFrame = (text: string): ClientFrame => {
  const json = parseJson(text)
  if (json === undefined) throw new AppError('malformed_json', { message: 'The frame is not valid JSON.' })
  const parsed = ClientFrame.safeParse(json)
  if (parsed.success) return parsed.data
  const { path, message } = parsed.error.issues[0]! // a failure has an issue
  throw new AppError('invalid_request_error', {
    message: path[0] === 'type' || path.length === 0 ? 'The frame has an unknown type.' : message,
    param: path.join('.') || 'type',
  })
}

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
