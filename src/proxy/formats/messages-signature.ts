/**
 * Carries encrypted reasoning in the `signature` of a thinking block, which clients send back unchanged.
 * `turn/continuity.ts` stores which account can read it, so signatures stay valid after a restart.
 */
import { getText, type JsonObject } from '../../lib/json.ts'

const PREFIX = 'sluice1.'

/**
 * The signature of a reasoning item. Null if it has no ciphertext. Includes the item's ID, because the ciphertext is
 * bound to it.
 */
export const toSignature = ({ id, encrypted_content }: JsonObject): string | null =>
  getText(encrypted_content) === '' ? null : `${PREFIX}${getText(id)}.${encrypted_content}`

/** The `id` and `encrypted_content` of the reasoning item. Null for signatures of other providers. */
export const fromSignature = (signature: string): { id?: string; encrypted_content: string } | null => {
  const dot = signature.indexOf('.', PREFIX.length)
  if (!signature.startsWith(PREFIX) || dot === -1 || dot === signature.length - 1) return null
  const id = signature.slice(PREFIX.length, dot)
  return { ...(id !== '' && { id }), encrypted_content: signature.slice(dot + 1) }
}
