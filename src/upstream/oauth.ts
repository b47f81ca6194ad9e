/** The token endpoint of the identity service: one refresh grant, and what its refusals mean. */

import { z } from 'zod'
import { parseJson } from '../lib/json.ts'
import type { AccountTokens } from '../model/auth-json.ts'
import type { Dial } from './dial.ts'
import { USER_AGENT } from './headers.ts'

export const CLIENT_ID = 'app_EMoamEEZ73f0CkXaXp7hrann'
const SCOPE = 'openid profile email'
/** Long, because an answer that is cut off may hold the only living refresh token; nobody waits for it that long. */
const TIMEOUT_MS = 60_000

/** A refresh that did not work. `code` is set when no later try with the same token can work either. */
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
  /** Aborts after so many ms. */
  timeout: (ms: number) => AbortSignal
}

const Granted = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1).optional(),
  id_token: z.string().min(1).optional(),
})

/** Exchanges a refresh token, which is dead from then on. Throws `RefreshError`. */
export const refreshTokens = async (context: OAuthContext, tokens: AccountTokens): Promise<AccountTokens> => {
  const url = `${context.authBaseUrl}/oauth/token`
  let status: number
  let text: string
  try {
    const response = await context.dial.fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', 'user-agent': USER_AGENT },
      body: JSON.stringify({
        grant_type: 'refresh_token',
        client_id: CLIENT_ID,
        refresh_token: tokens.refreshToken,
        scope: SCOPE,
      }),
      signal: context.timeout(TIMEOUT_MS),
    })
    status = response.status
    text = await response.text()
  } catch (cause) {
    throw new RefreshError('The identity service could not be reached.', null, cause)
  }
  if (status !== 200) throw refusal(status, text)
  const granted = Granted.safeParse(parseJson(text))
  if (!granted.success) throw new RefreshError('The identity service gave an answer without tokens.', null)
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

/** 5xx, 408 and 429 pass; any other refusal is about the token. */
const refusal = (status: number, text: string): RefreshError => {
  const parsed = Refusal.safeParse(parseJson(text))
  const { error, code } = parsed.success ? parsed.data : {}
  const stated = code ?? (typeof error === 'string' ? error : (error?.code ?? error?.type)) ?? null
  const message = `The identity service refused the refresh with ${status}${stated ? ` ${stated}` : ''}.`
  const passes = status >= 500 || status === 408 || status === 429
  return new RefreshError(message, passes ? null : (stated ?? 'account_auth_invalidated'))
}
