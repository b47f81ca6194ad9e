/** Recovery codes: ten single-use codes that replace the code of a lost authenticator. Only their hashes are stored. */
import { createHash } from 'node:crypto'
import { and, count, eq, sql } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { recoveryCodes, users } from '../../../db/schema/people.ts'
import type { Random } from '../../lib/random.ts'
import { type Actor, append } from '../audit/audit.ts'
import type { UserRow } from './people.ts'

const CODES = 10
const CODE_BYTES = 10
/** Base32 of RFC 4648 in lower case: no digits that look like letters. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const CODE = /^[a-z2-7]{16}$/

/** Replaces all recovery codes of the user. The returned codes (`xxxx-xxxx-xxxx-xxxx`) are shown once and not stored. */
export const createRecoveryCodes = async (tx: Tx, userId: string, { random, now }: NewCodes): Promise<string[]> => {
  await deleteRecoveryCodes(tx, userId)
  const codes = Array.from({ length: CODES }, () => base32(random.bytes(CODE_BYTES)))
  await tx
    .insert(recoveryCodes)
    .values(codes.map((code) => ({ userId, codeHash: getHash(userId, code), createdAt: now })))
    .run()
  return codes.map((code) => code.match(/.{4}/g)?.join('-') ?? code)
}

interface NewCodes {
  random: Random
  now: number
}

export const deleteRecoveryCodes = async (tx: Tx, userId: string): Promise<void> => {
  await tx.delete(recoveryCodes).where(eq(recoveryCodes.userId, userId)).run()
}

export const countRecoveryCodes = async (db: Db, userId: string): Promise<number> =>
  (await db.select({ n: count() }).from(recoveryCodes).where(eq(recoveryCodes.userId, userId)).get())?.n ?? 0

/** Whether `text` has the form of a recovery code; case, spaces and dashes do not matter. */
export const isRecoveryCode = (text: string): boolean => CODE.test(normalised(text))

/**
 * Deletes the code and returns whether it existed, in one statement, so that parallel uses succeed only once. Only for
 * an active user with the authenticator in `row`.
 */
export const spendRecoveryCode = async (
  tx: Tx,
  row: UserRow,
  { text, actor }: { text: string; actor: Actor },
): Promise<boolean> => {
  const { id, totpSecretSealed } = row
  const isCurrent = sql`EXISTS (SELECT 1 FROM ${users} WHERE ${users.id} = ${id} AND ${users.status} = 'active'
    AND ${users.totpSecretSealed} = ${totpSecretSealed})`
  const { changes } = await tx
    .delete(recoveryCodes)
    .where(and(eq(recoveryCodes.userId, id), eq(recoveryCodes.codeHash, getHash(id, normalised(text))), isCurrent))
    .run()
  if (changes > 0)
    await append(tx, actor, 'recovery_code_used', { target: id, details: { left: await countRecoveryCodes(tx, id) } })
  return changes > 0
}

const normalised = (text: string): string => text.replace(/[\s-]/g, '').toLowerCase()

const getHash = (userId: string, code: string): string =>
  createHash('sha256').update(`recovery code/${userId}/${code}`).digest('hex')

const base32 = (bytes: Uint8Array): string => {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return (bits.match(/.{5}/g) ?? []).map((five) => ALPHABET[Number.parseInt(five, 2)]).join('')
}
