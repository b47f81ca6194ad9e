/** Encrypts secrets at rest: AES-256-GCM, bound to their storage location, labelled with the key's id. */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import type { Random } from './random.ts'

export interface Sealer {
  /** `v1.<key id>.<iv>.<ciphertext and tag>`, base64url. `context` names the location: `accounts/refresh_token/<id>`. */
  seal(text: string, context: string): string
  /** Decrypts. Throws `SealError` for another key, another context, or a changed byte. */
  open(sealed: string, context: string): string
  /** The same for bytes, in binary: 4 bytes of the key's id, the IV, ciphertext and tag. */
  sealBytes(bytes: Uint8Array, context: string): Uint8Array<ArrayBuffer>
  /** Throws as `open` does. */
  openBytes(sealed: Uint8Array, context: string): Uint8Array<ArrayBuffer>
}

export class SealError extends Error {
  override readonly name = 'SealError'

  constructor(readonly kind: 'malformed' | 'wrong-key' | 'tampered') {
    super(MESSAGES[kind])
  }
}

/** `key` is 32 bytes, as from `loadOrCreateKey`. Throws an Error for any other length. */
export function createSealer(key: Uint8Array, random: Random): Sealer {
  if (key.length !== KEY_BYTES) throw new Error(`An encryption key has ${KEY_BYTES} bytes, not ${key.length}.`)
  const keyId = fingerprint(key).slice(0, 8)
  return {
    seal: (text, context) => {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      cipher.setAAD(Buffer.from(context))
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return ['v1', keyId, Buffer.from(iv).toString('base64url'), body.toString('base64url')].join('.')
    },
    open: (sealed, context) => {
      const parts = parse(sealed)
      if (parts.keyId !== keyId) throw new SealError('wrong-key')
      return decrypt(key, parts, context).toString('utf8')
    },
    sealBytes: (bytes, context) => {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      cipher.setAAD(Buffer.from(context))
      const parts = [Buffer.from(keyId, 'hex'), iv, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]
      return Buffer.concat(parts)
    },
    openBytes: (sealed, context) => {
      if (sealed.length < KEY_ID_BYTES + IV_BYTES + TAG_BYTES) throw new SealError('malformed')
      const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
      if (bytes.toString('hex', 0, KEY_ID_BYTES) !== keyId) throw new SealError('wrong-key')
      const iv = bytes.subarray(KEY_ID_BYTES, KEY_ID_BYTES + IV_BYTES)
      return decrypt(key, { iv, body: bytes.subarray(KEY_ID_BYTES + IV_BYTES) }, context)
    },
  }
}

/** A short public id of `key` that does not reveal it, to detect a database of another key. */
export function fingerprint(key: Uint8Array): string {
  return createHash('sha256').update('key fingerprint\0').update(key).digest('hex').slice(0, 16)
}

const KEY_BYTES = 32
const IV_BYTES = 12
const KEY_ID_BYTES = 4
const TAG_BYTES = 16

const MESSAGES = {
  malformed: 'This is not an encrypted value.',
  'wrong-key': 'This value was encrypted with another key.',
  tampered: 'This encrypted value was changed or belongs to another record.',
}

interface Parts {
  keyId: string
  iv: Buffer
  body: Buffer
}

function parse(sealed: string): Parts {
  const [, keyId, iv, body] = /^v1\.([0-9a-f]{8})\.([\w-]{16})\.([\w-]{22,})$/.exec(sealed) ?? []
  if (!keyId || !iv || !body) throw new SealError('malformed')
  return { keyId, iv: Buffer.from(iv, 'base64url'), body: Buffer.from(body, 'base64url') }
}

function decrypt(key: Uint8Array, { iv, body }: Omit<Parts, 'keyId'>, context: string): Buffer<ArrayBuffer> {
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(body.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(body.subarray(0, -TAG_BYTES)), decipher.final()])
  } catch {
    throw new SealError('tampered') // the cause says only "unable to authenticate"
  }
}
