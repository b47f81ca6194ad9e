/** The identity service's token endpoint: refreshing tokens, exchanging codes, and the meaning of its errors. */

import { z } from 'zod'
import { AppError } from '../errors.ts'
import { parseJson } from '../lib/json.ts'
import { PERMANENT_AUTH_CODES } from '../model/accounts/account-state.ts'
import type { AccountTokens } from '../model/accounts/auth-json.ts'
import { getEgressReason, type Route } from '../model/egress/route.ts'
import { errorText, wholeText } from './bounded-body.ts'
import type { Dial } from './dial.ts'
import { PLAIN_JSON_HEADERS } from './headers.ts'

export const CLIENT_ID = 'app_EMoamEEZ73f0CkXaXp7hrann'
const SCOPE = 'openid profile email'
/** Long, because an answer that is cut off may contain the only valid refresh token; requests stop waiting earlier. */
const TIMEOUT_MS = 60_000

/** A failed refresh. `code` is set when retrying with the same token cannot work. */
export class RefreshError extends Error {
  override readonly name = 'RefreshError'
  readonly code: string | null

  constructor(message: string, code: string | null, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

export interface OAuthContext {
  dial: Dial
  authBaseUrl: string
  /** Aborts after this many ms. */
  timeout: (ms: number) => AbortSignal
}

/** A call to the identity service, by the route of the account it is about. */
export interface OAuthCall extends OAuthContext {
  route: Route
}

const Granted = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1).optional(),
  id_token: z.string().min(1).optional(),
})

/** A failed sign-in; the message is for the user and contains no secret. */
export class SignInError extends Error {
  override readonly name = 'SignInError'
  /** OpenAI's own code, or null. */
  readonly code: string | null

  constructor(message: string, code: string | null = null, cause?: unknown) {
    super(message, { cause })
    this.code = code
  }
}

/** Proof of a sign-in: the code, and the verifier of its challenge (RFC 7636 §4.5). */
export interface CodeGrant {
  code: string
  verifier: string
  /** Must equal the one in the authorization request. */
  redirectUri: string
}

const CODE_TIMEOUT_MS = 30_000

const SignedIn = Granted.required()

/** Exchanges a code, which works once, for tokens. Throws `SignInError`. */
export const exchangeCode = async (context: OAuthCall, grant: CodeGrant): Promise<AccountTokens> => {
  const form = new URLSearchParams({
    grant_type: 'authorization_code',
    client_id: CLIENT_ID,
    code: grant.code,
    code_verifier: grant.verifier,
    redirect_uri: grant.redirectUri,
  })
  const headers = { ...PLAIN_JSON_HEADERS, 'content-type': 'application/x-www-form-urlencoded' }
  const init = { method: 'POST', headers, body: form.toString() }
  const { status, text } = await callIdentityService(context, '/oauth/token', init)
  if (status !== 200) {
    const code = getErrorCode(text)
    throw new SignInError(`OpenAI rejected the sign-in with HTTP ${status}${code ? ` (${code})` : ''}.`, code)
  }
  const granted = SignedIn.safeParse(parseJson(text))
  if (!granted.success) throw new SignInError('OpenAI answered without tokens.')
  const { access_token: accessToken, refresh_token: refreshToken, id_token: idToken } = granted.data
  return { accessToken, refreshToken, idToken }
}

/** Three tokens of a few KB each. */
const MAX_ANSWER_BYTES = 1024 * 1024

const getText = (response: Response): Promise<string> =>
  response.status === 200 ? wholeText(response, MAX_ANSWER_BYTES) : errorText(response)

const getSentence = (cause: unknown): string => {
  if (cause instanceof AppError && cause.code === 'upstream_error')
    return `The response from OpenAI could not be read: ${cause.message}`
  return cause instanceof AppError && getEgressReason(cause) ? cause.message : 'OpenAI could not be reached.'
}

/** One call to the identity service, at most 30 s including the body. Throws `SignInError` when no answer arrives. */
export const callIdentityService = async (
  { dial, authBaseUrl, timeout, route }: OAuthCall,
  path: string,
  init: RequestInit,
): Promise<{ status: number; text: string }> => {
  const limit = timeout(CODE_TIMEOUT_MS)
  try {
    const signal = init.signal ? AbortSignal.any([init.signal, limit]) : limit
    const response = await dial.fetch(authBaseUrl + path, { ...init, signal }, route)
    return { status: response.status, text: await getText(response) }
  } catch (cause) {
    if (init.signal?.aborted) throw init.signal.reason
    throw new SignInError(getSentence(cause), UNREACHABLE, cause)
  }
}

/** The code of a `SignInError` caused by the connection, not by the sign-in. */
export const UNREACHABLE = 'unreachable'

/** Exchanges a refresh token, which is invalid afterwards. Throws `RefreshError`. */
export const refreshTokens = async (context: OAuthCall, tokens: AccountTokens): Promise<AccountTokens> => {
  const url = `${context.authBaseUrl}/oauth/token`
  let status: number
  let text: string
  try {
    const response = await context.dial.fetch(
      url,
      {
        method: 'POST',
        headers: { ...PLAIN_JSON_HEADERS, 'content-type': 'application/json' },
        body: JSON.stringify({
          grant_type: 'refresh_token',
          client_id: CLIENT_ID,
          refresh_token: tokens.refreshToken,
          scope: SCOPE,
        }),
        signal: context.timeout(TIMEOUT_MS),
      },
      context.route,
    )
    status = response.status
    text = await getText(response)
  } catch (cause) {
    throw new RefreshError(getSentence(cause), null, cause)
  }
  if (status !== 200) throw refusal(status, text)
  const granted = Granted.safeParse(parseJson(text))
  if (!granted.success) throw new RefreshError('OpenAI answered without tokens.', null)
  return {
    accessToken: granted.data.access_token,
    refreshToken: granted.data.refresh_token ?? tokens.refreshToken,
    idToken: granted.data.id_token ?? tokens.idToken,
  }
}

const Refusal = z.object({
  error: z.union([z.string(), z.object({ code: z.string().nullish(), type: z.string().nullish() })]).optional(),
  code: z.string().optional(),
})

/** The code of an identity service error in any of its shapes; null if none is safe to repeat. */
export const getErrorCode = (text: string): string | null => {
  const parsed = Refusal.safeParse(parseJson(text))
  const { error, code } = parsed.success ? parsed.data : {}
  const stated = code ?? (typeof error === 'string' ? error : (error?.code ?? error?.type)) ?? null
  return stated !== null && /^[\w.-]{1,64}$/.test(stated) ? stated : null
}

/** 400 and 401 are about the token, and so is any 4xx with a known code; intermediaries send the others for every account. */
const refusal = (status: number, text: string): RefreshError => {
  const stated = getErrorCode(text)
  const message = `OpenAI rejected the token refresh with ${status}${stated ? ` ${stated}` : ''}.`
  const isNamed = stated !== null && Object.hasOwn(PERMANENT_AUTH_CODES, stated)
  const isOfToken = status === 400 || status === 401 || (status < 500 && isNamed)
  return new RefreshError(message, isOfToken ? (stated ?? 'account_auth_invalidated') : null)
}
