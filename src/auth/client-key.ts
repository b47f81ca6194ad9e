/**
 * Authenticates clients of proxy routes: with an API key, or without where none is required (spec §5 Proxy routes, §1
 * Restricted capability).
 */
import { AppError } from '../errors.ts'
import { anyContains, type Cidr } from '../lib/cidr.ts'
import type { KeyPolicy, KeyRing } from '../model/keys/key-ring.ts'
import { keyStart, type Rejection } from '../model/log/rejections.ts'

export interface Client {
  /** Null: no key was required, and no known key was sent. */
  key: KeyPolicy | null
  /** An unknown key was sent where none was required. */
  hasUnrecognizedKey: boolean
  /** Address of the client after trusted proxies; null when unknown. */
  ip: string | null
}

export interface Knock {
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
export const authenticateClient = (knock: Knock): Client => {
  const { ip, keyAuthEnabled } = knock
  demandReachable(knock)
  const needsKey = keyAuthEnabled || knock.need === 'always' || knock.capability !== null
  if (needsKey) return { key: demandKey(knock), hasUnrecognizedKey: false, ip }
  const key = knownKey(knock)
  return { key, hasUnrecognizedKey: key === null && isFilled(knock.authorization), ip }
}

/** Rejects remote clients while keys are not required, key or not. Throws `invalid_api_key`. */
const demandReachable = (knock: Knock): void => {
  if (knock.keyAuthEnabled || knock.isLocal() || isExempt(knock)) return
  throw rejected('Proxy authentication must be configured before remote access is allowed', {
    reason: 'remote_client',
    keyStart: startOf(knock),
  })
}

/**
 * The ChatGPT token of a client that names an account of its own and sent no API key. Null: it must be checked as a
 * client with a key. Nothing is proved yet. Throws `invalid_api_key` for remote clients while keys are not required.
 */
export const ownerToken = (knock: Knock, chatgptAccountId: string | null): string | null => {
  const bearer = bearerOf(knock.authorization)
  if (bearer === null || chatgptAccountId === null || knock.keys.find(bearer)) return null
  demandReachable(knock)
  return bearer
}

/** A token that belongs to no account of the pool. */
export const notAnOwner = (authorization: string | null): AppError =>
  rejected(OWNERS_ONLY, { reason: 'unknown_key', keyStart: startOf({ authorization }) })

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

const isExempt = ({ peer, unauthenticatedCidrs }: Knock): boolean =>
  peer !== null && anyContains(unauthenticatedCidrs, peer)

/** The key of a client that needs one. Throws `invalid_api_key`. */
export const demandKey = (presented: Presented): KeyPolicy => {
  if (bearerOf(presented.authorization) === null)
    throw rejected('Missing API key in Authorization header', { reason: 'missing_key' })
  const key = knownKey(presented)
  if (!key) throw rejected('Invalid API key', { reason: 'unknown_key', keyStart: startOf(presented) })
  return key
}

type Presented = Pick<Knock, 'authorization' | 'keys' | 'now'>

/**
 * The known key that was sent, or null. A known key must be valid even where none is required: disabling a key must not
 * free its client from the key's limits. Throws `invalid_api_key`.
 */
const knownKey = ({ authorization, keys, now }: Presented): KeyPolicy | null => {
  const bearer = bearerOf(authorization)
  const key = bearer === null ? null : keys.find(bearer)
  if (!key) return null
  const about = () => ({ keyId: key.id, keyStart: startOf({ authorization }) })
  if (!key.isActive) throw rejected('Invalid API key', { reason: 'inactive_key', ...about() })
  if (key.expiresAt !== null && key.expiresAt <= now)
    throw rejected('API key has expired', { reason: 'expired_key', ...about() })
  return key
}

/** RFC 6750 §2.1; the scheme is case-insensitive (RFC 9110 §11.1). */
const bearerOf = (authorization: string | null): string | null =>
  authorization?.match(/^bearer[ \t]+(\S.*)$/i)?.[1] ?? null

/** A scheme alone is not a credential. */
const isFilled = (authorization: string | null): boolean =>
  authorization !== null && !/^(bearer)?[ \t]*$/i.test(authorization)

const startOf = ({ authorization }: Pick<Knock, 'authorization'>): string | null => {
  const bearer = bearerOf(authorization)
  return bearer === null ? null : keyStart(bearer)
}

const rejected = (message: string, rejection: Rejection): AppError =>
  new AppError('invalid_api_key', { message, rejection })
