/**
 * A software authenticator: creates ES256 passkeys and signs with them like a phone or laptop, or incorrectly on
 * purpose.
 */
import { createHash } from 'node:crypto'
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from '@simplewebauthn/server'
import { isoCBOR } from '@simplewebauthn/server/helpers'

/** What the browser and the device may do differently from the request. */
export interface Quirks {
  /** The origin of the browser; the server's own by default. */
  origin?: string
  rpId?: string
  isUserVerified?: boolean
  challenge?: string
  /** Shown instead of the next number. */
  counter?: number
  userHandle?: string
  /** The id of the new passkey; random by default. */
  id?: Uint8Array<ArrayBuffer>
  /** Changes the signature. */
  isForged?: boolean
}

interface Credential {
  id: Uint8Array<ArrayBuffer>
  key: CryptoKey
  userHandle: string
  counter: number
}

const LOCALHOST = 'http://localhost:2455'

const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04
const HAS_CREDENTIAL = 0x40

export class Authenticator {
  readonly #isCounting: boolean
  readonly #credentials: Credential[] = []

  /** One without a counter shows 0 forever, as synchronized passkeys do. */
  constructor({ isCounting = true }: { isCounting?: boolean } = {}) {
    this.#isCounting = isCounting
  }

  /** `navigator.credentials.create(…).toJSON()`. */
  async create(options: PublicKeyCredentialCreationOptionsJSON, quirks: Quirks = {}) {
    const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify'])
    const id = quirks.id ?? crypto.getRandomValues(new Uint8Array(16))
    const credential = { id, key: pair.privateKey, userHandle: options.user.id, counter: 0 }
    this.#credentials.push(credential)
    const point = new Uint8Array(await crypto.subtle.exportKey('raw', pair.publicKey))
    const attested = concat(new Uint8Array(16), uint(2, id.length), id, coseKey(point))
    const flags = USER_PRESENT | (quirks.isUserVerified === false ? 0 : USER_VERIFIED) | HAS_CREDENTIAL
    const authData = concat(
      rpHash(quirks.rpId ?? options.rp.id ?? ''),
      Uint8Array.of(flags),
      uint(4, quirks.counter ?? 0),
      attested,
    )
    const attestation = new Map<string, unknown>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', authData],
    ])
    return {
      ...named(id),
      response: {
        clientDataJSON: clientData('webauthn.create', options.challenge, quirks),
        attestationObject: base64url(isoCBOR.encode(attestation as Parameters<typeof isoCBOR.encode>[0])), // as: a map of its own types
        transports: ['internal'],
      },
    }
  }

  /** `navigator.credentials.get(…).toJSON()`, with the most recent of the allowed passkeys. */
  async get(options: PublicKeyCredentialRequestOptionsJSON, quirks: Quirks = {}) {
    const credential = this.#pick(options)
    if (this.#isCounting) credential.counter++
    const flags = USER_PRESENT | (quirks.isUserVerified === false ? 0 : USER_VERIFIED)
    const authData = concat(
      rpHash(quirks.rpId ?? options.rpId ?? ''),
      Uint8Array.of(flags),
      uint(4, quirks.counter ?? credential.counter),
    )
    const clientDataJSON = clientData('webauthn.get', options.challenge, quirks)
    const signed = concat(authData, sha256(Buffer.from(clientDataJSON, 'base64url')))
    const signature = new Uint8Array(
      await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, credential.key, signed),
    )
    if (quirks.isForged) signature[40]! ^= 1 // it has 64 bytes
    return {
      ...named(credential.id),
      response: {
        clientDataJSON,
        authenticatorData: base64url(authData),
        signature: base64url(der(signature)),
        userHandle: quirks.userHandle ?? credential.userHandle,
      },
    }
  }

  #pick({ allowCredentials = [] }: PublicKeyCredentialRequestOptionsJSON): Credential {
    const allowed = allowCredentials.map(({ id }) => id)
    const found = this.#credentials.findLast(({ id }) => allowed.length === 0 || allowed.includes(base64url(id)))
    if (!found) throw new Error('This authenticator holds none of these passkeys.')
    return found
  }
}

const clientData = (type: string, challenge: string, { origin = LOCALHOST, ...quirks }: Quirks): string =>
  base64url(Buffer.from(JSON.stringify({ type, challenge: quirks.challenge ?? challenge, origin, crossOrigin: false })))

const named = (id: Uint8Array) => ({
  id: base64url(id),
  rawId: base64url(id),
  type: 'public-key',
  clientExtensionResults: {},
})

/** EC2, ES256, P-256 (RFC 9053); the point is 4, x, y. */
const coseKey = (point: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(
    isoCBOR.encode(
      new Map<number, number | Uint8Array<ArrayBuffer>>([
        [1, 2],
        [3, -7],
        [-1, 1],
        [-2, point.slice(1, 33)],
        [-3, point.slice(33)],
      ]),
    ),
  )

const rpHash = (rpId: string): Uint8Array<ArrayBuffer> => sha256(Buffer.from(rpId))

const sha256 = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(createHash('sha256').update(bytes).digest())

/** Big endian. */
const uint = (size: number, value: number): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: size }, (_, at) => (value >>> (8 * (size - 1 - at))) & 0xff)

const concat = (...parts: Uint8Array[]): Uint8Array<ArrayBuffer> => Uint8Array.from(Buffer.concat(parts))

const base64url = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64url')

/** The browser's form of a signature: two ASN.1 integers. */
const der = (raw: Uint8Array): Uint8Array => {
  const parts = [integer(raw.slice(0, 32)), integer(raw.slice(32))]
  const body = concat(...parts)
  return concat(Uint8Array.of(0x30, body.length), body)
}

const integer = (bytes: Uint8Array): Uint8Array => {
  const from = bytes.findIndex((byte) => byte !== 0)
  const significant = bytes.slice(from === -1 ? 31 : from)
  const padded = significant[0]! >= 0x80 ? concat(Uint8Array.of(0), significant) : significant // never empty
  return concat(Uint8Array.of(0x02, padded.length), padded)
}
