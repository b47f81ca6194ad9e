/** The accounts of the stand-in upstream: identity, tokens, usage and their pending faults. */
import type { Fault, FaultRoute } from './faults.ts'
import type { TokenUsage } from './script.ts'
import { AUTH_CLAIM, type Mint, unsignedJwt } from './tokens.ts'

export type Plan = 'free' | 'plus' | 'pro' | 'prolite' | 'team' | 'business' | 'enterprise' | 'edu'

/** `resetAt` is ms since epoch; the wire has seconds. */
export type UsageWindow = { usedPercent: number; windowMinutes: number; resetAt: number }

export type Usage = {
  primary?: UsageWindow
  secondary?: UsageWindow
  credits?: { hasCredits: boolean; unlimited: boolean; balance: string }
  /** The fields of the report that replace those derived from the windows. */
  allowed?: boolean
  limitReached?: boolean
  spendControl?: { reached: boolean; resetAt?: number }
  /** As `workspace_member_usage_limit_reached`. */
  reachedType?: string
}

/** Times are ms since epoch; the wire has ISO 8601. */
type ResetCredit = {
  id: string
  /** `available` by default. */
  status?: string
  grantedAt?: number
  expiresAt: number | null
  redeemedAt?: number
}

export type AccountOptions = {
  /** The ChatGPT account id; must not contain a dot. */
  id?: string
  email?: string
  plan?: Plan
  /** Slugs this account can use; without it, those of its plan. */
  models?: string[]
  usage?: Usage
  securityWorkAuthorized?: boolean
  accessTokenTtlMs?: number
}

export type TokenSet = { id_token: string; access_token: string; refresh_token: string }

const DEFAULT_TTL_MS = 10 * 24 * 3_600_000

/** One account: what ChatGPT knows about it, and what a test can do to it while it runs. */
export class Account {
  readonly chatgptAccountId: string
  readonly userId: string
  readonly email: string
  readonly securityWorkAuthorized: boolean
  plan: Plan
  models: string[] | null
  usage: Usage | null
  resetCredits: readonly ResetCredit[] = []
  #tokens: TokenSet
  #revokedWith: string | null = null
  #lastRefreshAt: number
  readonly #expired = new Set<string>()
  readonly #access = new Map<string, number>()
  readonly #spent = new Set<string>()
  readonly #ttlMs: number
  readonly #now: () => number
  readonly #mint: Mint
  #queue: Fault[] = []
  readonly #standing = new Map<FaultRoute, Fault>()

  constructor(ordinal: number, options: AccountOptions, now: () => number, mint: Mint) {
    const serial = ordinal.toString(16).padStart(12, '0')
    this.chatgptAccountId = options.id ?? `acc00000-0000-4000-8000-${serial}`
    if (this.chatgptAccountId.includes('.')) throw new Error('An account id must not contain a dot.')
    this.userId = `user-${serial}`
    this.email = options.email ?? `account-${ordinal}@example.test`
    this.plan = options.plan ?? 'plus'
    this.models = options.models ?? null
    this.usage = options.usage ?? null
    this.securityWorkAuthorized = options.securityWorkAuthorized ?? false
    this.#ttlMs = options.accessTokenTtlMs ?? DEFAULT_TTL_MS
    this.#now = now
    this.#mint = mint
    this.#lastRefreshAt = now()
    this.#tokens = this.#issue()
  }

  get accessToken(): string {
    return this.#tokens.access_token
  }

  get refreshToken(): string {
    return this.#tokens.refresh_token
  }

  get idToken(): string {
    return this.#tokens.id_token
  }

  /** The `auth.json` that Codex writes after a login with this account's current tokens. */
  authJson(): string {
    const document = {
      auth_mode: 'chatgpt',
      OPENAI_API_KEY: null,
      tokens: { ...this.#tokens, account_id: this.chatgptAccountId },
      last_refresh: new Date(this.#lastRefreshAt).toISOString(),
    }
    return `${JSON.stringify(document, null, 2)}\n`
  }

  /** From now on every access token issued so far is answered with 401 `token_expired`; refreshing helps. */
  expireAccessToken(): void {
    for (const token of this.#access.keys()) this.#expired.add(token)
  }

  /** Ends the account: every access and refresh token is answered with 401 and this code from now on. */
  revoke(code = 'token_invalidated'): void {
    this.#revokedWith = code
  }

  /** Undoes `revoke` and gives new tokens, as a new login would. */
  signInAgain(): void {
    this.#revokedWith = null
    this.#rotate()
  }

  setUsage(usage: Usage | null): void {
    this.usage = usage
  }

  /** Percent of the weekly quota that a response uses; null: the meter does not move. */
  meter: ((usage: TokenUsage) => number) | null = null
  /** The smallest step that the meter shows. */
  meterStep = 0.01
  #used = 0

  /** Moves the weekly meter by `percent`, as work does, here or elsewhere. */
  use(percent: number): void {
    const window = this.usage?.secondary
    if (!window) throw new Error('The account has no weekly window.')
    this.#used += percent
    window.usedPercent = Number((Math.floor(this.#used / this.meterStep + 1e-9) * this.meterStep).toFixed(4))
  }

  /** The weekly window starts over. */
  restartWeek(resetAt: number): void {
    this.#used = 0
    const primary = this.usage?.primary
    this.usage = { ...(primary && { primary }), secondary: { usedPercent: 0, windowMinutes: 10_080, resetAt } }
  }

  setResetCredits(credits: readonly ResetCredit[]): void {
    this.resetCredits = credits
  }

  /** Queues a fault for one request; the queue is served in order, per route. */
  next(...faults: Fault[]): void {
    this.#queue.push(...faults)
  }

  /** A fault for every request without a queued one; `null` removes all standing faults. */
  always(fault: Fault | null): void {
    if (fault === null) this.#standing.clear()
    else this.#standing.set(fault.on ?? 'responses', fault)
  }

  clearFaults(): void {
    this.#queue = []
    this.#standing.clear()
  }

  /** The fault this request gets, taken off the queue. */
  takeFault(route: FaultRoute): Fault | null {
    const index = this.#queue.findIndex((fault) => (fault.on ?? 'responses') === route)
    if (index < 0) return this.#standing.get(route) ?? null
    return this.#queue.splice(index, 1)[0] ?? null
  }

  issued(accessToken: string): boolean {
    return this.#access.has(accessToken)
  }

  /** Why this access token is rejected, or `null` if it is valid. */
  accessRefusal(accessToken: string): string | null {
    if (this.#revokedWith) return this.#revokedWith
    const expiresAt = this.#access.get(accessToken) ?? 0
    return this.#expired.has(accessToken) || expiresAt <= this.#now() ? 'token_expired' : null
  }

  knowsRefreshToken(token: string): boolean {
    return token === this.#tokens.refresh_token || this.#spent.has(token)
  }

  /**
   * Redeems a refresh token and rotates it. A token that was redeemed before ends the whole account, as the
   * service does when it suspects theft (client-protocol §14).
   */
  redeem(refreshToken: string): TokenSet | { refusedWith: string } {
    if (this.#revokedWith) return { refusedWith: this.#revokedWith }
    if (refreshToken !== this.#tokens.refresh_token) {
      this.revoke('refresh_token_reused')
      return { refusedWith: 'refresh_token_reused' }
    }
    this.#rotate()
    return this.#tokens
  }

  #rotate(): void {
    this.#spent.add(this.#tokens.refresh_token)
    this.#lastRefreshAt = this.#now()
    this.#tokens = this.#issue()
  }

  #issue(): TokenSet {
    const issuedAt = this.#now()
    const expiresAt = issuedAt + this.#ttlMs
    const claims = {
      iss: 'https://auth.openai.com',
      sub: `auth0|${this.userId}`,
      iat: Math.floor(issuedAt / 1000),
      exp: Math.floor(expiresAt / 1000),
      jti: this.#mint('jti'),
      [AUTH_CLAIM]: {
        chatgpt_account_id: this.chatgptAccountId,
        chatgpt_plan_type: this.plan,
        chatgpt_user_id: this.userId,
        user_id: this.userId,
      },
    }
    const access = unsignedJwt({
      ...claims,
      'https://api.openai.com/profile': { email: this.email, email_verified: true },
      aud: ['https://api.openai.com/v1'],
      scp: ['openid', 'offline_access'],
    })
    this.#access.set(access, expiresAt)
    const id = unsignedJwt({ ...claims, aud: ['app'], email: this.email, email_verified: true })
    return { id_token: id, access_token: access, refresh_token: this.#mint('rt') }
  }
}

/** All accounts of one stand-in. */
export class SimAccounts {
  readonly #accounts: Account[] = []
  readonly #now: () => number
  readonly #mint: Mint

  constructor(now: () => number, mint: Mint) {
    this.#now = now
    this.#mint = mint
  }

  add(options: AccountOptions = {}): Account {
    const account = new Account(this.#accounts.length + 1, options, this.#now, this.#mint)
    if (this.byId(account.chatgptAccountId)) throw new Error(`Account ${account.chatgptAccountId} exists already.`)
    this.#accounts.push(account)
    return account
  }

  list(): readonly Account[] {
    return this.#accounts
  }

  byId(chatgptAccountId: string): Account | undefined {
    return this.#accounts.find((account) => account.chatgptAccountId === chatgptAccountId)
  }

  byAccessToken(token: string): Account | undefined {
    return this.#accounts.find((account) => account.issued(token))
  }

  byRefreshToken(token: string): Account | undefined {
    return this.#accounts.find((account) => account.knowsRefreshToken(token))
  }
}
