/**
 * Proves that a ChatGPT token belongs to an account of the pool, by one usage request with that token. Owners may read
 * usage and redeem reset credits of their account; they need a key to send model requests.
 */
import { z } from 'zod'
import { notOwnerError } from '../../auth/client-key.ts'
import type { FailureBudget } from '../../auth/failure-budget.ts'
import { AppError } from '../../errors.ts'
import { createMiddleware } from '../../http/handlers.ts'
import { getClient } from '../../lib/client-ip.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import { parseJson } from '../../lib/json.ts'
import { getUserId } from '../../model/accounts/auth-json.ts'
import type { Route } from '../../model/egress/route.ts'
import { wholeText } from '../../upstream/bounded-body.ts'
import { USER_AGENT, upstreamHeaders } from '../../upstream/headers.ts'
import type { Upstream } from '../../upstream/open.ts'
import { sha256 } from '../pool/affinity.ts'
import type { LiveAccount } from '../pool/live-account.ts'
import type { Pool } from '../pool/pool.ts'

const PROVED_MS = 5 * MINUTE_MS
const TIMEOUT_MS = 10_000
const MAX_ANSWER_BYTES = 1024 * 1024
/** Limits memory; dropped ones are proved again. */
const MAX_PROVED = 1000

interface ProofDeps {
  pool: Pick<Pool, 'all' | 'get'>
  upstream: Upstream
  /** The route of an account with this pool. */
  getRoute: (egressPoolId: string | null) => Route
  /** Wrong tokens, a minute and client. */
  wrong: FailureBudget
}

interface Claim {
  token: string
  chatgptAccountId: string
  /** Wrong tokens are charged to it. */
  client: string
}

export class OwnerProofs {
  readonly #deps: ProofDeps
  /** SHA-256 of token and account → the pool's account, until a monotonic time. */
  readonly #proved = new Map<string, { accountId: string; until: number }>()

  constructor(deps: ProofDeps) {
    this.#deps = deps
  }

  /**
   * The id of the account the token belongs to; null when it is wrong. Throws `rate_limit_exceeded` after eight wrong
   * ones within a minute, and `upstream_unreachable` with 503 when ChatGPT does not decide.
   */
  async toAccount(claim: Claim): Promise<string | null> {
    const { pool, upstream, wrong } = this.#deps
    const name = sha256(`${claim.token}\0${claim.chatgptAccountId}`)
    const proved = this.#proved.get(name)
    if (proved && proved.until > upstream.clock.monotonic() && pool.get(proved.accountId)) return proved.accountId
    const refund = await wrong.take(claim.client, 'rate_limit_exceeded')
    const seats = pool.all().filter(({ row }) => row.chatgptAccountId === claim.chatgptAccountId)
    if (seats.length === 0) return null
    const answer = await this.#ask(claim, this.#getRoute(seats, claim)).catch(async (cause: unknown) => {
      await refund()
      throw new AppError('upstream_unreachable', { status: 503, retryAfterSeconds: 5, cause })
    })
    const account = answer && seats.find((seat) => isOwnedBy(seat, answer))
    if (!account) return null
    await refund()
    this.#remember(name, account.id)
    return account.id
  }

  /** That of the seat the token names; which seat it really is, only ChatGPT can say. */
  #getRoute(seats: readonly LiveAccount[], { token }: Claim): Route {
    const named = getUserId(token)
    const seat = seats.find(({ row }) => row.chatgptUserId === named) ?? seats[0]
    return this.#deps.getRoute(seat?.row.egressPoolId ?? null)
  }

  /** Null when ChatGPT rejects the token. */
  async #ask({ token, chatgptAccountId }: Claim, route: Route): Promise<z.output<typeof Owner> | null> {
    const { dial, baseUrl, clock } = this.#deps.upstream
    const limit = new AbortController()
    const cancel = clock.after(TIMEOUT_MS, () => limit.abort(new AppError('upstream_timeout')))
    try {
      const credentials = { id: '', chatgptAccountId, accessToken: token, route }
      const response = await dial.fetch(
        `${baseUrl}/wham/usage`,
        {
          headers: upstreamHeaders({ 'user-agent': USER_AGENT }, credentials, { accept: 'application/json' }),
          signal: limit.signal,
        },
        route,
      )
      const text = await wholeText(response, MAX_ANSWER_BYTES)
      if (response.status === 401 || response.status === 403) return null
      if (response.status !== 200) throw new Error(`ChatGPT answered ${response.status}.`)
      return Owner.parse(parseJson(text))
    } finally {
      cancel()
    }
  }

  #remember(name: string, accountId: string): void {
    this.#proved.delete(name)
    this.#proved.set(name, { accountId, until: this.#deps.upstream.clock.monotonic() + PROVED_MS })
    const oldest = this.#proved.keys().next().value
    if (this.#proved.size > MAX_PROVED && oldest !== undefined) this.#proved.delete(oldest)
  }
}

/** Sets `c.var.ownedAccount`: null for a client with a key. Must come after `keyOrOwner`. Throws `invalid_api_key`. */
export const requireProvedOwner = createMiddleware(async (c, next) => {
  const token = c.get('ownerToken')
  let accountId: string | null = null
  if (token !== null) {
    const chatgptAccountId = c.req.header('chatgpt-account-id') ?? ''
    const client = getClient(c.get('clientIp') ?? c.get('peer'))
    accountId = await c.env.ownerProofs.toAccount({ token, chatgptAccountId, client })
    if (accountId === null) throw notOwnerError(c.req.header('authorization') ?? null)
  }
  c.set('ownedAccount', accountId)
  return next()
})

const Owner = z.object({ user_id: z.string().nullish().catch(null), email: z.string().nullish().catch(null) })

/**
 * The seats of a workspace share its account id, so the user must match too. Assumed: the usage document names the user
 * by `user_id` or `email`; one that names neither proves nothing.
 */
const isOwnedBy = ({ row }: LiveAccount, { user_id, email }: z.output<typeof Owner>): boolean =>
  (Boolean(user_id) && user_id === row.chatgptUserId) ||
  (Boolean(email) && email?.toLowerCase() === row.email.toLowerCase())
