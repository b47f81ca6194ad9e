/**
 * Authenticates clients of proxy routes: with an API key, or without where none is required (spec §5 Proxy routes, §1
 * Restricted capability).
 */
import { AppError, type Rejection } from '../errors.ts'
import { anyContains, type Cidr } from '../lib/cidr.ts'
import type { KeyPolicy, KeyRing } from '../model/keys/key-ring.ts'

export interface Client {
  /** Null: no key was required, and no known key was sent. */
  key: KeyPolicy | null
  /** An unknown key was sent where none was required. */
  hasUnrecognizedKey: boolean
  /** Address of the client after trusted proxies; null when unknown. */
  ip: string | null
}

export interface ClientAuthRequest {
  /** The `Authorization` header. */
  authorization: string | null
  /** The required-capability header, whatever its value. */
  capability: string | null
  /** Called only where keys are not required for everyone. */
  isLocal: () => boolean
  ip: string | null
  /** Raw socket peer: a forwarded address never qualifies for the exemption by range. */
  peer: string | null
  keyAuthEnabled: boolean
  unauthenticatedCidrs: readonly Cidr[]
  keys: Pick<KeyRing, 'find'>
  now: number
  /** `always`: the route makes no sense without a key. */
  need: 'optional' | 'always'
}

/**
 * Admits the client or throws `invalid_api_key`. With key auth on every client needs a key. With it off, only local
 * clients and exempt peers are admitted, and they need a key only where the route or the capability header requires
 * one. A known key always counts (decisions §3 "A key that is presented").
 */
export const authenticateClient = (authRequest: ClientAuthRequest): Client => {
  const { ip, keyAuthEnabled } = authRequest
  requireReachable(authRequest)
  const needsKey = keyAuthEnabled || authRequest.need === 'always' || authRequest.capability !== null
  if (needsKey) return { key: requireKey(authRequest), hasUnrecognizedKey: false, ip }
  const key = knownKey(authRequest)
  return { key, hasUnrecognizedKey: key === null && isFilled(authRequest.authorization), ip }
}

/** Rejects remote clients while keys are not required, key or not. Throws `invalid_api_key`. */
const requireReachable = (authRequest: ClientAuthRequest): void => {
  if (authRequest.keyAuthEnabled || authRequest.isLocal() || isExempt(authRequest)) return
  throw rejected('Proxy authentication must be configured before remote access is allowed', {
    reason: 'remote_client',
    keyStart: getStart(authRequest),
  })
}

/**
 * The ChatGPT token of a client that names an account of its own and sent no API key. Null: it must be checked as a
 * client with a key. Nothing is proved yet. Throws `invalid_api_key` for remote clients while keys are not required.
 */
export const ownerToken = (authRequest: ClientAuthRequest, chatgptAccountId: string | null): string | null => {
  const bearer = getBearer(authRequest.authorization)
  if (bearer === null || chatgptAccountId === null || authRequest.keys.find(bearer)) return null
  requireReachable(authRequest)
  return bearer
}

/** A token that belongs to no account of the pool. */
export const notOwnerError = (authorization: string | null): AppError =>
  rejected(OWNERS_ONLY, { reason: 'unknown_key', keyStart: getStart({ authorization }) })

const OWNERS_ONLY = 'ChatGPT authentication required: send the token and ID of a ChatGPT account in the pool.'

type Capability = 'trusted_cyber'

/**
 * The capability in the header; null without the header. Throws `unsupported_required_capability` for other values.
 * Call after `authenticateClient`: clients without a key must learn nothing about capabilities.
 */
export const capability = (header: string | null): Capability | null => {
  if (header === null || header === 'trusted_cyber') return header
  throw new AppError('unsupported_required_capability')
}

const isExempt = ({ peer, unauthenticatedCidrs }: ClientAuthRequest): boolean =>
  peer !== null && anyContains(unauthenticatedCidrs, peer)

/** The key of a client that needs one. Throws `invalid_api_key`. */
export const requireKey = (presented: Presented): KeyPolicy => {
  if (getBearer(presented.authorization) === null)
    throw rejected('Missing API key in Authorization header', { reason: 'missing_key' })
  const key = knownKey(presented)
  if (!key) throw rejected('Invalid API key', { reason: 'unknown_key', keyStart: getStart(presented) })
  return key
}

type Presented = Pick<ClientAuthRequest, 'authorization' | 'keys' | 'now'>

/**
 * The known key that was sent, or null. A known key must be valid even where none is required: disabling a key must not
 * free its client from the key's limits. Throws `invalid_api_key`.
 */
const knownKey = ({ authorization, keys, now }: Presented): KeyPolicy | null => {
  const bearer = getBearer(authorization)
  const key = bearer === null ? null : keys.find(bearer)
  if (!key) return null
  const about = () => ({ keyId: key.id, keyStart: getStart({ authorization }) })
  if (!key.isActive) throw rejected('Invalid API key', { reason: 'inactive_key', ...about() })
  if (key.expiresAt !== null && key.expiresAt <= now)
    throw rejected('API key has expired', { reason: 'expired_key', ...about() })
  return key
}

/** Whether a valid key was sent. */
export const isKnownKey = (
  { authorization, keys }: Pick<Presented, 'authorization' | 'keys'>,
  now: number,
): boolean => {
  const bearer = getBearer(authorization)
  const key = bearer === null ? null : keys.find(bearer)
  return !!key?.isActive && (key.expiresAt === null || key.expiresAt > now)
}

/** RFC 6750 §2.1; the scheme is case-insensitive (RFC 9110 §11.1). */
const getBearer = (authorization: string | null): string | null =>
  authorization?.match(/^bearer[ \t]+(\S.*)$/i)?.[1] ?? null

/** A scheme alone is not a credential. */
const isFilled = (authorization: string | null): boolean =>
  authorization !== null && !/^(bearer)?[ \t]*$/i.test(authorization)

const getStart = ({ authorization }: Pick<ClientAuthRequest, 'authorization'>): string | null => {
  const bearer = getBearer(authorization)
  return bearer === null ? null : keyStart(bearer)
}

const rejected = (message: string, rejection: Rejection): AppError =>
  new AppError('invalid_api_key', { message, rejection })

const MAX_CHARS = 8

/** The loggable part of a secret: its first eight characters, at most half of it. null: nothing. */
const keyStart = (secret: string): string | null =>
  secret.slice(0, Math.min(MAX_CHARS, Math.floor(secret.length / 2))).replace(/[^\x21-\x7e]/g, '?') || null
