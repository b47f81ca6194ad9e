/** Decrypts Fernet tokens, the encryption of Python's `cryptography` package (github.com/fernet/spec). */
import { createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'

const KEY_BYTES = 32
const VERSION = 0x80
const VERSION_AND_TIME_BYTES = 9
const IV_BYTES = 16
const MAC_BYTES = 32

/** Parses a key file: 32 bytes in URL-safe base64. Null if it is not a Fernet key. */
export const readFernetKey = (text: string): Buffer | null => {
  const trimmed = text.trim()
  if (!/^[\w-]{43}=?$/.test(trimmed)) return null
  const key = Buffer.from(trimmed, 'base64url')
  return key.length === KEY_BYTES ? key : null
}

/** Decrypts `token`, regardless of its age. Null if the key is wrong, or the token is damaged or not a Fernet token. */
export const openFernet = (key: Buffer, token: string): string | null => {
  const bytes = Buffer.from(token.trim(), 'base64url')
  if (bytes[0] !== VERSION || bytes.length < VERSION_AND_TIME_BYTES + IV_BYTES + MAC_BYTES) return null
  const signed = bytes.subarray(0, -MAC_BYTES)
  const mac = createHmac('sha256', key.subarray(0, KEY_BYTES / 2))
    .update(signed)
    .digest()
  if (!timingSafeEqual(mac, bytes.subarray(-MAC_BYTES))) return null
  const iv = signed.subarray(VERSION_AND_TIME_BYTES, VERSION_AND_TIME_BYTES + IV_BYTES)
  const decipher = createDecipheriv('aes-128-cbc', key.subarray(KEY_BYTES / 2), iv)
  try {
    return (
      decipher.update(signed.subarray(VERSION_AND_TIME_BYTES + IV_BYTES), undefined, 'utf8') + decipher.final('utf8')
    )
  } catch {
    return null // the signature is valid, but the padding is wrong
  }
}
