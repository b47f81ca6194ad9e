/** Reads the native client's `auth.json`, in its own spelling and in camelCase, into the tokens and identity of one account. */
import { z } from 'zod'
import { AppError } from '../errors.ts'
import { parseJson } from '../lib/json.ts'

export interface AccountIdentity {
  email: string
  chatgptAccountId: string | null
  chatgptUserId: string | null
  planType: string
  workspaceId: string | null
  workspaceLabel: string | null
  seatType: string | null
}

/** Of tokens that name no plan. */
export const UNKNOWN_PLAN = 'unknown'

export interface AccountTokens {
  accessToken: string
  refreshToken: string
  idToken: string
}

export interface ImportedAccount {
  identity: AccountIdentity
  tokens: AccountTokens
  /** ms; when the tokens were given, by the file or by themselves; null when neither says. `JUST_GIVEN` of a sign-in. */
  lastRefreshAt: number | null
}

/** Of tokens that a sign-in gave: newer than all that are stored, whenever they come to be stored themselves. */
export const JUST_GIVEN = Number.POSITIVE_INFINITY

const token = z.string().trim().min(1)

const AuthJson = z.object({
  OPENAI_API_KEY: z.unknown().optional(),
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

/** Throws `invalid_auth_json`, naming `fileName` and what is wrong with it. */
export const parseAuthJson = (text: string, fileName: string): ImportedAccount => {
  const refuse = (why: string): never => {
    throw new AppError('invalid_auth_json', { message: `${fileName}: ${why}`, param: fileName })
  }
  const file = AuthJson.safeParse(parseJson(text) ?? refuse('is not JSON'))
  if (!file.success) return refuse(`is not a native auth.json (${file.error.issues[0]?.path.join('.') || 'top level'})`)
  const { tokens, OPENAI_API_KEY: apiKey } = file.data
  if (!tokens)
    return refuse(
      `holds no tokens; it is ${apiKey ? 'from a client signed in with an API key' : 'no auth.json of the Codex CLI'}`,
    )
  const accessToken = tokens.access_token ?? tokens.accessToken ?? refuse('has no access_token')
  const refreshToken = tokens.refresh_token ?? tokens.refreshToken ?? refuse('has no refresh_token')
  const idToken = tokens.id_token ?? tokens.idToken ?? refuse('has no id_token')
  const identity = identityOf(idToken) ?? refuse('has an id_token without an e-mail address')
  const stated = Date.parse(file.data.last_refresh ?? file.data.lastRefresh ?? '')
  return {
    identity: {
      ...identity,
      chatgptAccountId: identity.chatgptAccountId ?? tokens.account_id ?? tokens.accountId ?? null,
    },
    tokens: { accessToken, refreshToken, idToken },
    lastRefreshAt: stated > 0 ? stated : (issueOf(accessToken) ?? issueOf(idToken)), // Go's date for none is of the year 1
  }
}

/** Who an ID token speaks of, or null. The signature is not checked: the token came from the operator or over TLS. */
export const identityOf = (idToken: string): AccountIdentity | null => {
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

/** Made once: they cost more than all they read. */
const Expiring = z.object({ exp: z.number() })
const Issued = z.object({ iat: z.number().positive() })

/** ms at which a JWT expires, or null when it does not say, or names no date there is. */
export const expiryOf = (jwt: string): number | null => {
  const claims = Expiring.safeParse(jwtClaims(jwt))
  return dateOf(claims.data?.exp)
}

/** ms at which a JWT was given, or null likewise. */
const issueOf = (jwt: string): number | null => dateOf(Issued.safeParse(jwtClaims(jwt)).data?.iat)

const dateOf = (seconds = Number.NaN): number | null => {
  const at = new Date(seconds * 1000).getTime()
  return Number.isNaN(at) ? null : at
}

const jwtClaims = (jwt: string): unknown =>
  parseJson(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString('utf8')) ?? null
