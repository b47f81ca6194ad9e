/** Signing in through a browser: the address to open (RFC 6749 §4.1 with the S256 challenge of RFC 7636), and what comes back. */
import { createHash } from 'node:crypto'
import type { Random } from '../lib/random.ts'
import { CLIENT_ID } from './oauth.ts'

const ORIGINATOR = 'codex_chatgpt_desktop'
const SCOPE = 'openid profile email offline_access'
const VERIFIER_BYTES = 32
const STATE_BYTES = 16
export const CALLBACK_PATH = '/auth/callback'

/** What only we know of a sign-in: `state` names it in the callback, `verifier` proves that the code was asked for here. */
export interface BrowserSecret {
  state: string
  verifier: string
}

export const newBrowserSecret = (random: Random): BrowserSecret => ({
  state: random.token(STATE_BYTES),
  verifier: random.token(VERIFIER_BYTES),
})

/** The one redirect the service knows for this client; browsers and the service read `localhost` as this very machine. */
export const callbackUrl = (port: number): string => `http://localhost:${port}${CALLBACK_PATH}`

/** Where the person signs in. */
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
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    state,
    id_token_add_organizations: 'true',
    codex_cli_simplified_flow: 'true',
    originator: ORIGINATOR,
  })
  return `${authBaseUrl}/oauth/authorize?${query}`
}

const challengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')

/** What a callback says: the code, or that there will be none. */
type Callback = { state: string } & ({ kind: 'code'; code: string } | { kind: 'refused'; error: string })

/**
 * Reads the address a browser was sent to, or what somebody has copied of it: the whole, or from the path or the query on.
 * null when there is no state, or neither code nor error in it. `error` is a word, never a sentence of somebody else's.
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
