/** The request body: read within a budget, decoded, parsed once for routing, and checked before Sluice uses it. */

import { capability } from '../../auth/client-key.ts'
import type { Bindings } from '../../boot/bindings.ts'
import { AppError } from '../../errors.ts'
import { CAPABILITY_HEADER } from '../../http/gates.ts'
import { readUpload, type UploadEnv } from '../../http/upload.ts'
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import { holdsMoreValuesThan, nestsDeeperThan } from '../../lib/json-bounds.ts'
import { repeatedMember } from '../../lib/json-members.ts'
import type { TurnBody } from '../turn/turn.ts'

export const RESPONSES_BODY_BYTES = 128 * 1024 * 1024
export const OTHER_BODY_BYTES = 32 * 1024 * 1024

/**
 * Memory budget for the bodies of all turns (decisions §3 "Bodies in flight"). It counts received bytes, not announced
 * ones, or a few clients announcing much and sending nothing would block all others.
 */
export class BodyBudget {
  #held = 0
  readonly #limitBytes: () => number

  constructor(limitBytes: () => number) {
    this.#limitBytes = limitBytes
  }

  get heldBytes(): number {
    return this.#held
  }

  /**
   * An empty hold. Throws `busy` immediately if the announced size does not fit. A body larger than the whole budget is
   * accepted when it is the only one.
   */
  open(announcedBytes: number): BodyHold {
    if (this.#held > 0 && this.#held + announcedBytes > this.#limitBytes()) throw tooManyBodies()
    return new BodyHold(this)
  }

  /** Called by a hold. */
  add(delta: number): void {
    this.#held += delta
  }

  /** Reserves room for received or decoded bytes. Throws `busy`. */
  grow(hold: BodyHold, bytes: number): void {
    const others = this.#held - hold.bytes
    if (others > 0 && bytes > hold.bytes && others + bytes > this.#limitBytes()) throw tooManyBodies()
    hold.resize(bytes)
  }
}

const tooManyBodies = (): AppError =>
  new AppError('busy', {
    message: 'Sluice is busy: too many request bodies are in memory. Try again shortly.',
    retryAfterSeconds: 2,
  })

/** One body's share of the budget. */
export class BodyHold {
  /** The body as the client sent it, only while a capture runs. */
  received: Uint8Array | null = null
  #bytes = 0
  readonly #budget: BodyBudget

  constructor(budget: BodyBudget) {
    this.#budget = budget
  }

  get bytes(): number {
    return this.#bytes
  }

  resize(bytes: number): void {
    this.#budget.add(bytes - this.#bytes)
    this.#bytes = bytes
  }

  release(): void {
    this.resize(0)
    this.received = null
  }
}

interface ReadLimits {
  env: UploadEnv & Pick<Bindings, 'bodies'>
  maxBytes: number
  /** The native client retries an oversized body after a 413 and stops after a 400 (Codex CLI 0.169). */
  tooLargeStatus: 400 | 413
}

/** A body that must be a JSON object. Throws what `readBytes` throws, and `malformed_json`. */
export const readBody = async (request: Request, limits: ReadLimits): Promise<TurnBody> => {
  const { bytes: decoded, hold } = await readBytes(request, limits)
  try {
    const bytes = withoutMark(decoded)
    const json = parseObject(bytes)
    collectAfter(bytes.length)
    return { bytes, json, hold }
  } catch (err) {
    hold.release()
    throw err
  }
}

/**
 * Decodes, and changes nothing else. Leaves the idle limit of the connection lifted (`readUpload`). Throws
 * `payload_too_large`, `unsupported_encoding`, `busy`, `upload_timeout`, `invalid_request_error`.
 */
export const readBytes = async (request: Request, limits: ReadLimits): Promise<Pick<TurnBody, 'bytes' | 'hold'>> => {
  const declared = Number(request.headers.get('content-length') ?? Number.NaN)
  if (declared > limits.maxBytes) throw tooLarge(limits)
  const { env, maxBytes } = limits
  const budget = env.bodies
  const hold = budget.open(declared || 0)
  const arrived = (bytes: number) => {
    if (bytes > maxBytes) throw tooLarge(limits)
    budget.grow(hold, bytes)
  }
  try {
    const raw = await readUpload({ env, request, arrived })
    const encoding = request.headers.get('content-encoding')
    const decoded = isPlain(encoding) ? raw : await decode(raw, { encoding, limits, hold })
    budget.grow(hold, decoded.length)
    return { bytes: decoded, hold }
  } catch (err) {
    hold.release()
    throw err
  }
}

interface Encoded {
  encoding: string
  limits: ReadLimits
  hold: BodyHold
}

const isPlain = (encoding: string | null): encoding is null | 'identity' => encoding === null || encoding === 'identity'

/** Loaded with the first compressed body rather than at start: it takes at least 1.3 MB (Bun 1.4.5). */
const loadDecoder = () => import('../../lib/decode-body.ts')

const decode = async (raw: Uint8Array<ArrayBuffer>, { encoding, limits, hold }: Encoded) => {
  const { env, maxBytes } = limits
  const { DecodeError, decodeBody } = await loadDecoder()
  try {
    return new Uint8Array(
      await decodeBody(raw, encoding, { maxBytes, charge: (bytes) => env.bodies.grow(hold, bytes) }),
    )
  } catch (cause) {
    if (!(cause instanceof DecodeError)) throw cause
    if (cause.kind === 'body_too_large') throw tooLarge(limits)
    throw new AppError('unsupported_encoding', { message: cause.message, cause })
  }
}

/** A byte order mark is not JSON (RFC 8259 §8.1): parsing here would skip it, but the upstream might not. */
const withoutMark = (bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes

/** `withoutMark` removed one mark, so another one must fail. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export const parseObject = (bytes: Uint8Array): JsonObject => {
  requireFewValues(bytes)
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch (cause) {
    throw new AppError('malformed_json', { cause })
  }
  if (!isObject(value))
    throw new AppError('invalid_request_error', { message: 'The request body must be a JSON object.' })
  return value
}

const tooLarge = ({ maxBytes, tooLargeStatus }: ReadLimits): AppError =>
  new AppError('payload_too_large', {
    message: `The request body is larger than ${maxBytes / 1024 / 1024} MiB.`,
    status: tooLargeStatus,
  })

/** Below this a full collection, 5 to 20 ms, takes longer than parsing did (Bun 1.4.5). */
const LARGE_BYTES = 16 * 1024 * 1024

/**
 * Call after parsing a body of this size. The collector underestimates the memory of the temporary text: five bodies of
 * 100 MB peaked at 1.4 GB without this and at 0.8 GB with it (Bun 1.4.5).
 */
export const collectAfter = (bytes: number): void => {
  if (bytes >= LARGE_BYTES) Bun.gc(true)
}

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
