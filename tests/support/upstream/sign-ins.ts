/** Signing in like at ChatGPT: single-use codes for the holder of the verifier, and device codes. */
import { createHash } from 'node:crypto'
import type { Account } from './accounts.ts'
import type { Ledger } from './ledger.ts'
import { CLIENT_ID } from './oauth.ts'
import { Refusal } from './refusal.ts'
import type { Mint } from './tokens.ts'

const CODE_TTL_MS = 10 * 60_000
const DEVICE_REDIRECT = '/deviceauth/callback'

/** An issued code. */
interface Grant {
  account: Account
  challenge: string
  redirectUri: string
  expiresAt: number
  isSpent: boolean
}

interface Device {
  id: string
  userCode: string
  intervalSeconds: number
  expiresAt: number
  lastAskedAt: number | null
  outcome: 'waiting' | 'denied' | { code: string; verifier: string }
}

interface SignInWorld {
  now: () => number
  mint: Mint
  ledger: Ledger
}

export class SignIns {
  /** How devices are treated from now on. */
  device: {
    /** Answers every request for a code with this status; 404 means that codes are disabled. */
    refusesWith: number | null
    /** Stated as text, as by ChatGPT; null: not stated. */
    interval: string | null
    ttlSeconds: number
    /** Answers the next so many questions with `slow_down`. */
    slowDowns: number
  } = { refusesWith: null, interval: '5', ttlSeconds: 900, slowDowns: 0 }
  readonly #world: SignInWorld
  readonly #grants = new Map<string, Grant>()
  readonly #devices: Device[] = []

  constructor(world: SignInWorld) {
    this.#world = world
  }

  /**
   * The user opens the URL and signs in as `account`: returns where the browser is redirected. Throws a `Refusal` for
   * an invalid URL.
   */
  approve(authorizationUrl: string, account: Account): string {
    const query = requireAuthorization(authorizationUrl)
    const code = this.#grant(account, query.challenge, query.redirectUri)
    return `${query.redirectUri}?${new URLSearchParams({ code, scope: query.scope, state: query.state })}`
  }

  /** The person cancels instead. */
  cancel(authorizationUrl: string): string {
    const { redirectUri, state } = requireAuthorization(authorizationUrl)
    const said = { error: 'access_denied', error_description: 'The user denied the request', state }
    return `${redirectUri}?${new URLSearchParams(said)}`
  }

  /** A user enters the code and signs in as `account`. Throws for a code that is not pending. */
  enterCode(userCode: string, account: Account): void {
    const device = this.#waiting(userCode)
    const verifier = this.#world.mint('verifier')
    device.outcome = { code: this.#grant(account, getChallenge(verifier), DEVICE_REDIRECT), verifier }
  }

  denyCode(userCode: string): void {
    this.#waiting(userCode).outcome = 'denied'
  }

  /** The account a code was for; it is spent. Throws `invalid_grant`. */
  redeem(request: Record<string, string>): Account {
    const { ledger, now } = this.#world
    const grant = this.#grants.get(request.code ?? '')
    const refuse = (why: string): never => {
      throw new Refusal(400, { error: 'invalid_grant', error_description: why })
    }
    if (!grant) return refuse('The code is unknown.')
    if (grant.isSpent) {
      ledger.odd('POST /oauth/token: a code came twice')
      return refuse('The code was used.')
    }
    grant.isSpent = true
    if (grant.expiresAt <= now()) return refuse('The code has expired.')
    const redirectUri = request.redirect_uri ?? ''
    const isSameRedirect =
      grant.redirectUri === DEVICE_REDIRECT
        ? new URL(redirectUri).pathname === DEVICE_REDIRECT
        : redirectUri === grant.redirectUri
    if (!isSameRedirect) return refuse('The redirect is another one.')
    if (
      !/^[\w.~-]+$/.test(request.code_verifier ?? '') ||
      getChallenge(request.code_verifier ?? '') !== grant.challenge
    )
      return refuse('The verifier does not fit the challenge.')
    return grant.account
  }

  /** `POST /api/accounts/deviceauth/usercode`. */
  newDevice(body: Record<string, unknown>): Record<string, unknown> {
    if (this.device.refusesWith !== null) throw new Refusal(this.device.refusesWith, { error: 'not_offered' })
    if (body.client_id !== CLIENT_ID) throw new Refusal(401, { error: 'invalid_client' })
    const { now, mint } = this.#world
    const { interval, ttlSeconds } = this.device
    const number = this.#devices.length + 1
    const device: Device = {
      id: mint('deviceauth'),
      userCode: `WXYZ-${String(number).padStart(5, '0')}`,
      intervalSeconds: Number(interval ?? 0),
      expiresAt: now() + ttlSeconds * 1000,
      lastAskedAt: null,
      outcome: 'waiting',
    }
    this.#devices.push(device)
    return {
      device_auth_id: device.id,
      user_code: device.userCode,
      ...(interval !== null && { interval }),
      expires_at: new Date(device.expiresAt).toISOString(),
    }
  }

  /** `POST /api/accounts/deviceauth/token`. Throws a `Refusal` until a user has signed in. */
  askDevice(body: Record<string, unknown>): Record<string, unknown> {
    const { now, ledger } = this.#world
    const device = this.#devices.find(({ id }) => id === body.device_auth_id)
    if (!device || device.userCode !== body.user_code) throw new Refusal(404, { error: 'not_found' })
    const pauseMs = device.lastAskedAt === null ? Number.POSITIVE_INFINITY : now() - device.lastAskedAt
    device.lastAskedAt = now()
    if (pauseMs < device.intervalSeconds * 1000) {
      ledger.odd('POST /api/accounts/deviceauth/token: asked faster than the interval')
      throw new Refusal(429, { error: 'slow_down' })
    }
    if (this.device.slowDowns > 0) {
      this.device.slowDowns--
      device.intervalSeconds += 5
      throw new Refusal(400, { error: 'slow_down' })
    }
    if (device.expiresAt <= now()) throw new Refusal(400, { error: 'expired_token' })
    if (device.outcome === 'denied') throw new Refusal(400, { error: 'access_denied' })
    if (device.outcome === 'waiting') throw new Refusal(403, { error: 'authorization_pending' })
    const { code, verifier } = device.outcome
    return { authorization_code: code, code_challenge: getChallenge(verifier), code_verifier: verifier }
  }

  #grant(account: Account, challenge: string, redirectUri: string): string {
    const code = this.#world.mint('ac')
    this.#grants.set(code, {
      account,
      challenge,
      redirectUri,
      expiresAt: this.#world.now() + CODE_TTL_MS,
      isSpent: false,
    })
    return code
  }

  #waiting(userCode: string): Device {
    const device = this.#devices.find((one) => one.userCode === userCode && one.outcome === 'waiting')
    if (!device) throw new Error(`Nobody waits for the code ${userCode}.`)
    return device
  }
}

interface Authorization {
  challenge: string
  redirectUri: string
  state: string
  scope: string
}

/** The required parameters of the sign-in URL; each missing one is an error that names it. */
export function requireAuthorization(authorizationUrl: string): Authorization {
  const { pathname, searchParams } = new URL(authorizationUrl)
  const query = Object.fromEntries(searchParams)
  const demand = (isMet: boolean, what: string) => {
    if (!isMet) throw new Refusal(400, { error: 'invalid_request', error_description: `Wrong ${what}.` })
  }
  const { code_challenge: challenge = '', redirect_uri: redirectUri = '', state = '', scope = '' } = query
  demand(pathname === '/oauth/authorize', 'path')
  demand(query.client_id === CLIENT_ID, 'client_id')
  demand(query.response_type === 'code', 'response_type')
  demand(query.code_challenge_method === 'S256', 'code_challenge_method')
  demand(/^[\w-]{43}$/.test(challenge), 'code_challenge')
  demand(/^http:\/\/localhost:\d+\/auth\/callback$/.test(redirectUri), 'redirect_uri')
  demand(state.length >= 16, 'state')
  demand(
    ['openid', 'profile', 'email', 'offline_access'].every((one) => scope.split(' ').includes(one)),
    'scope',
  )
  demand(query.id_token_add_organizations === 'true', 'id_token_add_organizations')
  demand(query.codex_cli_simplified_flow === 'true', 'codex_cli_simplified_flow')
  return { challenge, redirectUri, state, scope }
}

function getChallenge(verifier: string): string {
  return createHash('sha256').update(verifier).digest('base64url')
}
