/** Who calls a proxy route: a client with an API key, or one that needs none (spec §5 Proxy routes, §1 Restricted capability). */
import { AppError } from '../errors.ts'
import { anyContains, type Cidr } from '../lib/cidr.ts'
import type { KeyPolicy, KeyRing } from '../model/key-ring.ts'

export interface Client {
  /** null: no key was needed; whatever was sent instead of one was not looked at. */
  key: KeyPolicy | null
  /** Address of the client after trusted proxies; null: unknown. */
  ip: string | null
}

export interface Knock {
  /** The `Authorization` header. */
  authorization: string | null
  /** The required-capability header, whatever its value. */
  capability: string | null
  /** Asked only where no key is required of everybody. */
  isLocal: () => boolean
  ip: string | null
  /** Raw socket peer: a forwarded address never opens the exemption by range. */
  peer: string | null
  keyAuthEnabled: boolean
  unauthenticatedCidrs: readonly Cidr[]
  keys: Pick<KeyRing, 'find'>
  now: number
  /** `always`: this route means nothing without a key. */
  need: 'optional' | 'always'
}

/**
 * Lets the client in or throws `invalid_api_key`. With key auth on everybody needs a key. With it off, only callers on
 * this machine and the exempt peers get in at all, and they need a key only where the route or the capability header
 * demands one.
 */
export const authenticateClient = (knock: Knock): Client => {
  const { ip, keyAuthEnabled } = knock
  if (!keyAuthEnabled && !knock.isLocal() && !isExempt(knock))
    throw refused('Proxy authentication must be configured before remote access is allowed')
  const needsKey = keyAuthEnabled || knock.need === 'always' || knock.capability !== null
  return { key: needsKey ? demandKey(knock) : null, ip }
}

type Capability = 'trusted_cyber'

/**
 * What the required-capability header asks for; null without the header. Throws `unsupported_required_capability` for
 * any other value. Ask after `authenticateClient`: a caller without a key learns nothing about capabilities.
 */
export const capability = (header: string | null): Capability | null => {
  if (header === null || header === 'trusted_cyber') return header
  throw new AppError('unsupported_required_capability')
}

const isExempt = ({ peer, unauthenticatedCidrs }: Knock): boolean =>
  peer !== null && anyContains(unauthenticatedCidrs, peer)

/** The key of a client that may not pass without, however it came in. Throws `invalid_api_key`. */
export const demandKey = ({ authorization, keys, now }: Pick<Knock, 'authorization' | 'keys' | 'now'>): KeyPolicy => {
  const bearer = bearerOf(authorization)
  if (bearer === null) throw refused('Missing API key in Authorization header')
  const key = keys.find(bearer)
  if (!key?.isActive) throw refused('Invalid API key')
  if (key.expiresAt !== null && key.expiresAt <= now) throw refused('API key has expired')
  return key
}

/** RFC 6750 §2.1; the scheme in any case (RFC 9110 §11.1). */
const bearerOf = (authorization: string | null): string | null =>
  authorization?.match(/^bearer[ \t]+(\S.*)$/i)?.[1] ?? null

const refused = (message: string): AppError => new AppError('invalid_api_key', { message })
