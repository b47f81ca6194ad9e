/** User names: format, the reserved name, and deriving one from a proxy identity. */
import { createHash } from 'node:crypto'
import { eq } from 'drizzle-orm'
import { z } from 'zod'
import type { Db } from '../../../db/commit.ts'
import { users } from '../../../db/schema/people.ts'
import { AppError } from '../../errors.ts'
import { transliterate } from './transliterate.ts'

/** Only for the first local user; free for no one after it is renamed (spec §2). */
export const RESERVED_USERNAME = 'admin'
const MAX_DERIVED = 56

/** Trimmed and in lower case. */
export const Username = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9._-]{1,64}$/, 'must be 1 to 64 letters, digits, dots, dashes or underscores')
  .describe('Lower-case letters, digits, dots, dashes and underscores. Must be unique.')

/** For everyone except the user who already has the reserved name. */
export const FreeUsername = Username.refine((name) => name !== RESERVED_USERNAME, 'is reserved')

export const isTaken = async (db: Db, username: string): Promise<boolean> =>
  (await db.select({ id: users.id }).from(users).where(eq(users.username, username)).get()) !== undefined

/** `email` as stored: lower case. */
export const isEmailTaken = async (db: Db, email: string): Promise<boolean> =>
  (await db.select({ id: users.id }).from(users).where(eq(users.email, email)).get()) !== undefined

/**
 * `anna@example.com` becomes `anna.example.com`, `Žofie` `zofie`. A taken name, always including `admin`, gets a number
 * (spec §5); if nothing is left of the part before the `@`, it is `th-` and a hash.
 */
export const usernameFrom = async (db: Db, subject: string): Promise<string> => {
  const readable = isAscii(subject) ? plain(subject) : transliterated(subject)
  const base = readable || `th-${createHash('sha256').update(subject).digest('hex').slice(0, 8)}`
  for (let n = 1; ; n++) {
    const name = n === 1 ? base : `${base}-${n}`
    if (name !== RESERVED_USERNAME && !(await isTaken(db, name))) return name
  }
}

/** Whether a user name can express it, except for case and separators. */
export const isAscii = (subject: string): boolean => /^[\x20-\x7e]*$/.test(subject)

const plain = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll('@', '.')
    .replace(/[^a-z0-9._-]/g, '')
    .slice(0, MAX_DERIVED)

/** Drops letters without ASCII form, and adjacent separators. Empty: nothing is left of the name itself. */
const transliterated = (subject: string): string => {
  const text = transliterate(subject).replaceAll(/[^a-z0-9._@-]/g, '')
  const [local = ''] = text.split('@')
  if (!/[a-z0-9]/.test(local)) return ''
  return plain(text.replaceAll(/[._@-]{2,}/g, (run) => run[0] ?? '').replaceAll(/^[._@-]+|[._@-]+$/g, ''))
}

/** Throws `validation_error` for the reserved name, `username_taken`. */
export const requireFreeUsername = async (db: Db, username: string): Promise<void> => {
  if (username === RESERVED_USERNAME)
    throw new AppError('validation_error', { param: 'username', details: { fields: { username: ['is reserved'] } } })
  if (await isTaken(db, username)) throw new AppError('username_taken', { param: 'username' })
}
