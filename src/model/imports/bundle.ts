/** The encrypted file that moves accounts from one Sluice to another: JSON, sealed with a passphrase. */
import { createCipheriv, createDecipheriv, type ScryptOptions, scrypt } from 'node:crypto'
import { z } from 'zod'
import { ROUTING_POLICIES } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import { parseJson } from '../../lib/json.ts'
import type { Random } from '../../lib/random.ts'
import { unusableField } from '../accounts/auth-json.ts'
import { type Found, type FoundAccount, found, type TextFile } from './found.ts'

export const MAX_BUNDLED_ACCOUNTS = 10_000
/** The shortest passphrase, in characters. */
export const MIN_PASSPHRASE = 12

const FORMAT = 'sluice-accounts'
/** Each guess at the passphrase takes 128 MiB and a third of a second. */
const SCRYPT: ScryptOptions & { N: number; r: number; p: number } = {
  N: 2 ** 17,
  r: 8,
  p: 1,
  maxmem: 160 * 1024 * 1024,
}
const KEY_BYTES = 32
const SALT_BYTES = 16
const IV_BYTES = 12
const TAG_BYTES = 16

const base64 = z.string().regex(/^[A-Za-z0-9+/]+=*$/)

/** Only these parameters are accepted, so that a file cannot ask for more memory. */
const Envelope = z.object({
  format: z.literal(FORMAT),
  version: z.literal(1),
  kdf: z.object({ name: z.literal('scrypt'), N: z.literal(SCRYPT.N), r: z.literal(8), p: z.literal(1), salt: base64 }),
  cipher: z.literal('aes-256-gcm'),
  iv: base64,
  data: base64,
})

const text = z.string().min(1)
const nullable = z.string().nullable()

const BundledAccount = z.object({
  identity: z.object({
    email: text,
    chatgptAccountId: nullable,
    chatgptUserId: nullable,
    planType: text,
    workspaceId: nullable,
    workspaceLabel: nullable,
    seatType: nullable,
  }),
  tokens: z.object({ accessToken: text, refreshToken: text, idToken: z.string() }),
  lastRefreshAt: z.int().min(0),
  alias: nullable,
  routingPolicy: z.enum(ROUTING_POLICIES),
  securityWorkAuthorized: z.boolean(),
  tags: z.array(z.string()),
  isPaused: z.boolean(),
})
export type BundledAccount = z.output<typeof BundledAccount>

const Content = z.object({ accounts: z.array(BundledAccount).max(MAX_BUNDLED_ACCOUNTS) })

/** The text of the file. */
export const sealBundle = async (
  accounts: readonly BundledAccount[],
  passphrase: string,
  random: Pick<Random, 'bytes'>,
): Promise<string> => {
  const salt = Buffer.from(random.bytes(SALT_BYTES))
  const iv = Buffer.from(random.bytes(IV_BYTES))
  const cipher = createCipheriv('aes-256-gcm', await deriveKey(passphrase, salt), iv)
  cipher.setAAD(AAD)
  const data = Buffer.concat([cipher.update(JSON.stringify({ accounts })), cipher.final(), cipher.getAuthTag()])
  const { N, r, p } = SCRYPT
  const envelope = {
    format: FORMAT,
    version: 1,
    kdf: { name: 'scrypt', N, r, p, salt: salt.toString('base64') },
    cipher: 'aes-256-gcm',
    iv: iv.toString('base64'),
    data: data.toString('base64'),
  }
  return `${JSON.stringify(envelope, null, 2)}\n`
}

/** Recognizes a bundle by its first field, without decrypting it. */
export const isBundle = (text: string): boolean => /^\s*\{\s*"format":\s*"sluice-accounts"/.test(text)

/** Throws `invalid_import` for a wrong or missing passphrase, a damaged file, and an unknown version. */
export const openBundle = async ({ name, text }: TextFile, passphrase: string | null): Promise<Found> => {
  const refuse = (why: string): never => {
    throw new AppError('invalid_import', { message: `${name} ${why}`, param: name })
  }
  const envelope = Envelope.safeParse(parseJson(text))
  if (!envelope.success) return refuse('was written by a version of Sluice that this one does not know.')
  if (!passphrase) return refuse('is encrypted. Enter the passphrase it was exported with.')
  const { kdf, iv, data } = envelope.data
  const key = await deriveKey(passphrase, Buffer.from(kdf.salt, 'base64'))
  const content = Content.safeParse(
    parseJson(decrypt(key, Buffer.from(iv, 'base64'), Buffer.from(data, 'base64')) ?? ''),
  )
  if (!content.success) return refuse('cannot be decrypted. The passphrase is wrong, or the file is damaged.')
  return found('sluice', name, { accounts: content.data.accounts.map(toFound) })
}

const toFound = (bundled: BundledAccount): FoundAccount => {
  const { identity, tokens, lastRefreshAt, alias, routingPolicy, securityWorkAuthorized, tags, isPaused } = bundled
  const problem = unusableField({ identity, tokens })
  return {
    label: identity.email,
    account: problem ? null : { identity, tokens, lastRefreshAt },
    refreshToken: null,
    problem: problem && `It is not usable: ${problem}.`,
    extras: {
      ...(alias !== null && { alias }),
      routingPolicy,
      securityWorkAuthorized,
      tags,
      ...(isPaused && { state: 'paused' }),
    },
    foreignId: null,
  }
}

const AAD = Buffer.from(`${FORMAT}.1`)

const decrypt = (key: Buffer, iv: Buffer, data: Buffer): string | null => {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
    decipher.setAAD(AAD)
    decipher.setAuthTag(data.subarray(-TAG_BYTES))
    return Buffer.concat([decipher.update(data.subarray(0, -TAG_BYTES)), decipher.final()]).toString('utf8')
  } catch {
    return null
  }
}

/**
 * Runs in the thread pool. The passphrase is normalized (Unicode), because systems encode the same characters
 * differently.
 */
const deriveKey = (passphrase: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) =>
    scrypt(passphrase.normalize('NFKC'), salt, KEY_BYTES, SCRYPT, (err, key) => (err ? reject(err) : resolve(key))),
  )
