/** Parses the native client's `auth.json`, with its own names or in camelCase, into tokens and identity. */
import { z } from 'zod'
import { AppError } from '../../errors.ts'
import { isPrintable } from '../../lib/controls.ts'
import { getObject, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { knownCredentials } from './known-credentials.ts'

export interface AccountIdentity {
  email: string
  chatgptAccountId: string | null
  chatgptUserId: string | null
  planType: string
  workspaceId: string | null
  workspaceLabel: string | null
  seatType: string | null
}

/** For tokens without a plan. */
export const UNKNOWN_PLAN = 'unknown'

export interface AccountTokens {
  accessToken: string
  refreshToken: string
  idToken: string
}

export interface ImportedAccount {
  identity: AccountIdentity
  tokens: AccountTokens
  /**
   * When the tokens were issued (ms), according to the file or the tokens; null when unknown, `JUST_GIVEN` after a
   * sign-in.
   */
  lastRefreshAt: number | null
}

/** For tokens from a sign-in: newer than any stored ones, whenever they are stored. */
export const JUST_GIVEN = Number.POSITIVE_INFINITY

const token = z.string().trim().min(1)

const AuthJson = z.object({
  tokens: z
    .object({
      id_token: token.optional(),
      idToken: token.optional(),
      access_token: token.optional(),
      accessToken: token.optional(),
      refresh_token: token.optional(),
      refreshToken: token.optional(),
      account_id: z.string().nullish(),
      accountId: z.string().nullish(),
    })
    .nullish(),
  last_refresh: z.string().nullish(),
  lastRefresh: z.string().nullish(),
})

const AuthClaim = z.object({
  chatgpt_account_id: z.string().nullish(),
  chatgpt_user_id: z.string().nullish(),
  chatgpt_plan_type: z.string().nullish(),
  workspace_id: z.string().nullish(),
  workspace_label: z.string().nullish(),
  seat_type: z.string().nullish(),
})

const IdClaims = z.object({
  email: z.string().trim().min(3),
  sub: z.string().nullish(),
  'https://api.openai.com/auth': AuthClaim.nullish(),
})

/** Throws `invalid_auth_json`, naming `fileName` and the problem. */
export const parseAuthJson = (text: string, fileName: string): ImportedAccount => {
  const refuse = (why: string): never => {
    throw new AppError('invalid_auth_json', { message: `${fileName} ${why}.`, param: fileName })
  }
  return readAuthJson(parseJson(text) ?? refuse('is not valid JSON'), fileName)
}

/** Reads an `auth.json` that is already parsed. */
export const readAuthJson = (json: unknown, fileName: string): ImportedAccount => {
  const refuse = (why: string): never => {
    throw new AppError('invalid_auth_json', { message: `${fileName} ${why}.`, param: fileName })
  }
  if (!isObject(json)) return refuse('is not an auth.json of the Codex CLI (top level)')
  if (!hasTokens(json)) refuse(knownCredentials(json) ?? NO_TOKENS)
  const file = AuthJson.safeParse(json)
  if (!file.success)
    return refuse(`is not an auth.json of the Codex CLI (${file.error.issues[0]?.path.join('.') || 'top level'})`)
  const tokens = file.data.tokens ?? refuse(NO_TOKENS)
  const accessToken = tokens.access_token ?? tokens.accessToken ?? refuse('has no access_token')
  const refreshToken = tokens.refresh_token ?? tokens.refreshToken ?? refuse('has no refresh_token')
  const idToken = tokens.id_token ?? tokens.idToken ?? refuse('has no id_token')
  const claimed = getIdentity(idToken) ?? refuse('has an id_token without an e-mail address')
  const identity = {
    ...claimed,
    chatgptAccountId: claimed.chatgptAccountId ?? tokens.account_id ?? tokens.accountId ?? null,
  }
  const unusable = unusableField({ identity, tokens: { accessToken, refreshToken, idToken } })
  if (unusable) refuse(`is not usable: ${unusable}`)
  const stated = file.data.last_refresh ?? file.data.lastRefresh
  return {
    identity,
    tokens: { accessToken, refreshToken, idToken },
    lastRefreshAt: getRefreshDate(stated, { accessToken, idToken }),
  }
}

/** When the tokens were issued (ms since epoch), from `stated` or the tokens. Null if unknown. */
export const getRefreshDate = (
  stated: string | null | undefined,
  { accessToken, idToken }: Pick<AccountTokens, 'accessToken' | 'idToken'>,
): number | null => {
  const at = Date.parse(stated ?? '')
  return at > 0 ? at : (getIssue(accessToken) ?? getIssue(idToken)) // Go's zero date is in year 1
}

const NO_TOKENS = "has no tokens; it isn't an auth.json from the Codex CLI"

/** Apps that refresh the Codex CLI's tokens themselves leave the refresh token empty. */
const hasTokens = (file: JsonObject): boolean => {
  const { tokens } = file
  const held = getObject(tokens)
  if (file.auth_mode === 'chatgptAuthTokens') return Boolean(held.refresh_token)
  return Object.keys(held).length > 0 || (tokens !== null && tokens !== undefined && !('OPENAI_API_KEY' in file))
}

/**
 * Names the first field that cannot be sent in a header or shown, and why, without its value; null: all are fine.
 * Limits are far above what the identity service issues.
 */
export const unusableField = ({ identity, tokens }: Pick<ImportedAccount, 'identity' | 'tokens'>): string | null => {
  const sent: [string, string | null, number][] = [
    ['access_token', tokens.accessToken, MAX_TOKEN_LENGTH],
    ['refresh_token', tokens.refreshToken, MAX_TOKEN_LENGTH],
    ['id_token', tokens.idToken || null, MAX_TOKEN_LENGTH], // empty until the first refresh, if a file has none
    ['account_id', identity.chatgptAccountId, MAX_ID_LENGTH],
  ]
  const shown: [string, string | null, number][] = [
    ['email', identity.email, MAX_EMAIL_LENGTH],
    ['user_id', identity.chatgptUserId, MAX_ID_LENGTH],
    ['plan_type', identity.planType, MAX_ID_LENGTH],
    ['workspace_id', identity.workspaceId, MAX_ID_LENGTH],
    ['workspace_label', identity.workspaceLabel, MAX_ID_LENGTH],
    ['seat_type', identity.seatType, MAX_ID_LENGTH],
  ]
  const tooLong = [...shown, ...sent].find(([, value, max]) => value !== null && value.length > max)
  if (tooLong) return `${tooLong[0]} is too long (at most ${tooLong[2]} characters)`
  const unsendable = sent.find(([, value]) => value !== null && !/^[\x21-\x7e]+$/.test(value))
  if (unsendable) return `${unsendable[0]} has characters that cannot be sent in a header`
  const unshowable = shown.find(([, value]) => value !== null && !isPrintable(value))
  return unshowable ? `${unshowable[0]} has control characters` : null
}

const MAX_TOKEN_LENGTH = 16_384
const MAX_ID_LENGTH = 256
/** RFC 5321 §4.5.3.1: 64 for the name, 255 for the domain. */
const MAX_EMAIL_LENGTH = 320

/** The identity in an ID token, or null. The signature is not checked: the token came from the operator or over TLS. */
export const getIdentity = (idToken: string): AccountIdentity | null => {
  const claims = IdClaims.safeParse(jwtClaims(idToken))
  if (!claims.success) return null
  const { email, sub } = claims.data
  const auth = claims.data['https://api.openai.com/auth']
  return {
    email,
    chatgptAccountId: auth?.chatgpt_account_id ?? null,
    chatgptUserId: auth?.chatgpt_user_id ?? sub ?? null,
    planType: auth?.chatgpt_plan_type ?? UNKNOWN_PLAN,
    workspaceId: auth?.workspace_id ?? null,
    workspaceLabel: auth?.workspace_label ?? null,
    seatType: auth?.seat_type ?? null,
  }
}

const AccessClaims = z.object({
  'https://api.openai.com/profile': z.object({ email: z.string().trim().min(3) }).nullish(),
  'https://api.openai.com/auth': AuthClaim.nullish(),
})

/** The details of an account in a file, in addition to its tokens. */
export type IdentityHints = Partial<
  Record<'email' | 'chatgptAccountId' | 'chatgptUserId' | 'planType', string | undefined>
>

/**
 * The identity in an access token, completed from the file. Null without an e-mail address. Used for files without an
 * ID token. Assumed: access tokens have these claims.
 */
export const getAccessIdentity = (accessToken: string, hints: IdentityHints): AccountIdentity | null => {
  const claims = AccessClaims.safeParse(jwtClaims(accessToken)).data
  const auth = claims?.['https://api.openai.com/auth']
  const email = claims?.['https://api.openai.com/profile']?.email ?? hints.email
  if (!email) return null
  return {
    email,
    chatgptAccountId: auth?.chatgpt_account_id ?? hints.chatgptAccountId ?? null,
    chatgptUserId: auth?.chatgpt_user_id ?? hints.chatgptUserId ?? null,
    planType: auth?.chatgpt_plan_type ?? hints.planType ?? UNKNOWN_PLAN,
    workspaceId: auth?.workspace_id ?? null,
    workspaceLabel: auth?.workspace_label ?? null,
    seatType: auth?.seat_type ?? null,
  }
}

const Owned = z.object({
  sub: z.string().optional(),
  'https://api.openai.com/auth': z.object({ chatgpt_user_id: z.string().optional() }).optional(),
})

/** The user a JWT of OpenAI names, unverified; null: none. */
export const getUserId = (jwt: string): string | null => {
  const { data } = Owned.safeParse(jwtClaims(jwt))
  return data?.['https://api.openai.com/auth']?.chatgpt_user_id ?? data?.sub ?? null
}

/** Created once, because creating schemas costs more than parsing. */
const Expiring = z.object({ exp: z.number() })
const Issued = z.object({ iat: z.number().positive() })

/** When a JWT expires (ms), or null without a valid date. */
export const getExpiry = (jwt: string): number | null => {
  const claims = Expiring.safeParse(jwtClaims(jwt))
  return toDate(claims.data?.exp)
}

/** When a JWT was issued (ms), or null. */
const getIssue = (jwt: string): number | null => toDate(Issued.safeParse(jwtClaims(jwt)).data?.iat)

const toDate = (seconds = Number.NaN): number | null => {
  const at = new Date(seconds * 1000).getTime()
  return Number.isNaN(at) ? null : at
}

const jwtClaims = (jwt: string): unknown =>
  parseJson(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? null
