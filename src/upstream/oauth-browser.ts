/** Browser sign-in: the URL to open (RFC 6749 §4.1 with the S256 challenge of RFC 7636), and the callback. */
import { createHash } from 'node:crypto'
import type { Random } from '../lib/random.ts'
import { CLIENT_ID } from './oauth.ts'

const ORIGINATOR = 'codex_chatgpt_desktop'
const SCOPE = 'openid profile email offline_access'
const VERIFIER_BYTES = 32
const STATE_BYTES = 16
export const CALLBACK_PATH = '/auth/callback'

/** Secrets of a sign-in: `state` identifies it in the callback, `verifier` proves that the code was requested here. */
export interface BrowserSecret {
  state: string
  verifier: string
}

export const newBrowserSecret = (random: Random): BrowserSecret => ({
  state: random.token(STATE_BYTES),
  verifier: random.token(VERIFIER_BYTES),
})

/** The only redirect URL allowed for this client; `localhost` means this machine to browsers and to OpenAI. */
export const callbackUrl = (port: number): string => `http://localhost:${port}${CALLBACK_PATH}`

/** The URL where the user signs in. */
export const authorizationUrl = (
  authBaseUrl: string,
  { state, verifier }: BrowserSecret,
  redirectUri: string,
): string => {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: CLIENT_ID,
    redirect_uri: redirectUri,
    scope: SCOPE,
    code_challenge: getChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    id_token_add_organizations: 'true',
    codex_cli_simplified_flow: 'true',
    originator: ORIGINATOR,
  })
  return `${authBaseUrl}/oauth/authorize?${query}`
}

const getChallenge = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** A parsed callback: a code, or an error. */
type Callback = { state: string } & ({ kind: 'code'; code: string } | { kind: 'refused'; error: string })

/**
 * Parses a callback URL or what the user copied of it: all, or from the path or query on. Null without a state, or
 * without code and error. `error` is a code, never foreign text.
 */
export const readCallback = (pasted: string): Callback | null => {
  const text = pasted.trim()
  const at = text.indexOf('?')
  const query = new URLSearchParams(at < 0 ? text : text.slice(at + 1).replace(/#.*$/s, ''))
  const [state, code, error] = [query.get('state'), query.get('code'), query.get('error')]
  if (!state) return null
  if (error) return { kind: 'refused', state, error: /^[\w.-]{1,64}$/.test(error) ? error : 'error' }
  return code ? { kind: 'code', state, code } : null
}
