/** The key of a sticky session, as users see it: the start of its hash. Session ids themselves are not stored. */
import { type SQL, sql } from 'drizzle-orm'
import { affinity } from '../../../db/schema/accounts.ts'

/** Sticky sessions by what they keep on an account. Uploaded files are not sessions and expire after 30 minutes. */
export const STICKY_KINDS = ['conversation', 'ciphertext'] as const
export type StickyKind = (typeof STICKY_KINDS)[number]

const KEY_CHARS = 16

/** The first 16 hex digits of a stored hash, which is base64url. */
export const stickyKey = (keyHash: string): string =>
  Buffer.from(keyHash, 'base64url').toString('hex').slice(0, KEY_CHARS)

export const isStickyKey = (text: string): boolean => new RegExp(`^[0-9a-f]{${KEY_CHARS}}$`).test(text)

/** Rows whose key begins with `text`; undefined: no condition. A `conversationId` of the log matches its own row. */
export const keyWhere = (text: string): SQL | undefined => {
  if (text === '') return undefined
  if (CONVERSATION_ID.test(text)) return sql`${affinity.keyHash} = ${text}`
  return HEX.test(text) ? startsWithHex(text.toLowerCase()) : sql`FALSE`
}

const CONVERSATION_ID = /^[\w-]{43}$/
const HEX = new RegExp(`^[0-9a-f]{1,${KEY_CHARS}}$`, 'i')

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Comes after every base64url character. */
const AFTER_ALL = '{'

/** A range of the primary key for the characters that are known in full, then the choices for one known in part. */
const startsWithHex = (hex: string): SQL => {
  const bits = hex.length * 4
  const whole = Math.floor(bits / 6)
  const lowest = Buffer.from(hex.padEnd(KEY_CHARS + 8, '0'), 'hex').toString('base64url')
  const prefix = lowest.slice(0, whole)
  const within =
    prefix === '' ? sql`TRUE` : sql`${affinity.keyHash} >= ${prefix} AND ${affinity.keyHash} < ${prefix + AFTER_ALL}`
  const knownBits = bits - whole * 6
  if (knownBits === 0) return within
  const first = BASE64URL.indexOf(lowest[whole]!) // the text is longer than the key
  const choices = BASE64URL.slice(first, first + 2 ** (6 - knownBits))
  return sql`${within} AND instr(${choices}, substr(${affinity.keyHash}, ${whole + 1}, 1)) > 0`
}

/** The order of the keys, which is not that of the stored text: its characters are ordered differently. */
export const keyOrder = (direction: SQL): SQL =>
  sql.join(
    Array.from({ length: Math.ceil((KEY_CHARS * 4) / 6) }, (_, at) => {
      return sql`instr(${BASE64URL}, substr(${affinity.keyHash}, ${at + 1}, 1)) ${direction}`
    }),
    sql`, `,
  )
