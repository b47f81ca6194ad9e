/** The token endpoint of the stand-in upstream: the refresh grant with rotation, and the codes of sign-ins. */
import type { Account, SimAccounts, TokenSet } from './accounts.ts'
import { apiError, Refusal } from './refusal.ts'
import { isJson, type Json } from './script.ts'
import type { SignIns } from './sign-ins.ts'

export const CLIENT_ID = 'app_EMoamEEZ73f0CkXaXp7hrann'

const TEN_DAYS_SECONDS = 864_000

/** Answers a parsed JSON body of `POST /oauth/token`; throws a `Refusal` for everything it does not grant. */
export function grantTokens(accounts: SimAccounts, body: unknown): Record<string, unknown> {
  const request = getFields(body)
  if (request.grant_type !== 'refresh_token')
    throw new Refusal(400, { error: 'unsupported_grant_type', error_description: 'Only refresh_token is played.' })
  if (request.client_id !== CLIENT_ID) throw apiError(401, 'invalid_client', 'The client is unknown.')
  const account = presentedBy(accounts, body)
  if (!account) throw apiError(401, 'refresh_token_invalidated', 'The refresh token is unknown.')
  const outcome = account.redeem(String(request.refresh_token))
  if ('refusedWith' in outcome) throw apiError(401, outcome.refusedWith, 'The refresh token was refused.')
  return tokenResponse(outcome)
}

/**
 * Answers a form body of `POST /oauth/token`, as sign-ins send it; throws a `Refusal` for everything it does not grant.
 */
export function grantCode(
  signIns: SignIns,
  form: URLSearchParams,
): { account: Account; answer: Record<string, unknown> } {
  const request = Object.fromEntries(form)
  if (request.grant_type !== 'authorization_code')
    throw new Refusal(400, { error: 'unsupported_grant_type', error_description: 'Forms bring codes only.' })
  if (request.client_id !== CLIENT_ID) throw apiError(401, 'invalid_client', 'The client is unknown.')
  const account = signIns.redeem(request)
  account.signInAgain()
  const { idToken: id_token, accessToken: access_token, refreshToken: refresh_token } = account
  return { account, answer: tokenResponse({ id_token, access_token, refresh_token }) }
}

/** The account that was ever given the refresh token of this body. */
export function presentedBy(accounts: SimAccounts, body: unknown): Account | undefined {
  return accounts.byRefreshToken(String(getFields(body).refresh_token ?? ''))
}

function getFields(body: unknown): Json {
  return isJson(body) ? body : {}
}

function tokenResponse(tokens: TokenSet): Record<string, unknown> {
  return { ...tokens, token_type: 'Bearer', expires_in: TEN_DAYS_SECONDS, scope: 'openid profile email offline_access' }
}
