/**
 * Access tokens of the accounts: kept in memory, refreshed one at a time per account, stored before they are used. A
 * refresh token spent twice kills its account upstream, so nothing here may run a refresh twice or drop its result.
 */
import { commit, type Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Sealer } from '../lib/seal.ts'
import { type AccountRow, listAccounts, openTokens, storeTokens } from '../model/accounts.ts'
import { type AccountTokens, expiryOf } from '../model/auth-json.ts'
import type { AccountCredentials } from './headers.ts'
import { type OAuthContext, RefreshError, refreshTokens } from './oauth.ts'

const REFRESH_AFTER_MS = 8 * 86_400_000
const FAILURE_COOLDOWN_MS = 5000

interface Held {
  row: AccountRow
  tokens: AccountTokens
  /** ms from which the token is renewed before use. */
  staleAt: number
  /** No further try before this after a passing failure. */
  notBefore: number
  refreshing: Promise<AccountCredentials> | null
}

export interface CredentialsDeps {
  db: Db
  sealer: Sealer
  clock: Clock
  log: Log
  oauth: OAuthContext
  /** The account cannot be refreshed any more: its state changes. */
  onPermanentFailure: (accountId: string, code: string, evidence: string) => void
}

export class Credentials {
  readonly #deps: CredentialsDeps
  #held = new Map<string, Held>()

  constructor(deps: CredentialsDeps) {
    this.#deps = deps
    this.reload()
  }

  /** Reads the rows again after a change notice; a refresh under way goes on. */
  reload(): void {
    const next = new Map<string, Held>()
    for (const row of listAccounts(this.#deps.db)) {
      const before = this.#held.get(row.id)
      const isSame = before?.row.refreshTokenSealed === row.refreshTokenSealed
      next.set(row.id, isSame ? Object.assign(before, { row }) : this.#hold(row, before))
    }
    this.#held = next
  }

  #hold(row: AccountRow, before: Held | undefined): Held {
    const tokens = openTokens(this.#deps.sealer, row)
    const expiresAt = expiryOf(tokens.accessToken) ?? Number.POSITIVE_INFINITY
    const staleAt = Math.min(row.lastRefreshAt + REFRESH_AFTER_MS, expiresAt)
    return { row, tokens, staleAt, notBefore: 0, refreshing: before?.refreshing ?? null }
  }

  /**
   * Credentials fit for use; a promise only when a refresh is due. A due refresh that fails for a passing reason gives
   * the old token, which the upstream may still take. Throws `upstream_auth_failed`, `account_not_found`.
   */
  fresh(accountId: string): AccountCredentials | Promise<AccountCredentials> {
    const held = this.#get(accountId)
    if (this.#deps.clock.now() < held.staleAt) return credentialsOf(held)
    return this.refresh(accountId, held.tokens.accessToken).catch((err: unknown) => {
      if (err instanceof AppError && err.cause instanceof RefreshError && err.cause.code === null)
        return credentialsOf(held)
      throw err
    })
  }

  /**
   * Replaces `rejected`, the access token the upstream did not take. When it was replaced already, the present one is
   * returned. Throws `upstream_auth_failed` with a `RefreshError` as cause.
   */
  refresh(accountId: string, rejected: string): Promise<AccountCredentials> {
    const held = this.#get(accountId)
    if (held.refreshing) return held.refreshing
    if (held.tokens.accessToken !== rejected) return Promise.resolve(credentialsOf(held))
    const now = this.#deps.clock.now()
    if (now < held.notBefore)
      return Promise.reject(failed(new RefreshError('The last refresh failed a moment ago.', null)))
    held.refreshing = this.#exchange(accountId, held).finally(() => {
      held.refreshing = null
      const current = this.#held.get(accountId)
      if (current) current.refreshing = null
    })
    return held.refreshing
  }

  async #exchange(accountId: string, held: Held): Promise<AccountCredentials> {
    const { db, sealer, clock, log, oauth, onPermanentFailure } = this.#deps
    try {
      const tokens = await refreshTokens(oauth, held.tokens)
      const at = clock.now()
      const previousSealed = held.row.refreshTokenSealed
      const isStored = commit(db, (tx) => storeTokens(tx, { id: accountId, previousSealed, tokens, sealer, at }))
      if (!isStored) log.warn('an account changed while its token was refreshed', { account: accountId })
      return {
        ...credentialsOf(held),
        accessToken: isStored ? tokens.accessToken : this.#get(accountId).tokens.accessToken,
      }
    } catch (cause) {
      if (!(cause instanceof RefreshError)) throw cause
      held.notBefore = clock.now() + FAILURE_COOLDOWN_MS
      log.warn('a token refresh failed', { account: accountId, why: cause.message })
      if (cause.code !== null) onPermanentFailure(accountId, cause.code, cause.message)
      throw failed(cause)
    }
  }

  /** Accounts whose token is due, for the job that keeps idle ones alive. */
  due(now: number): string[] {
    return [...this.#held].filter(([, held]) => now >= held.staleAt && now >= held.notBefore).map(([id]) => id)
  }

  #get(accountId: string): Held {
    const held = this.#held.get(accountId)
    if (!held) throw new AppError('account_not_found')
    return held
  }
}

const credentialsOf = ({ row, tokens }: Held): AccountCredentials => ({
  id: row.id,
  chatgptAccountId: row.chatgptAccountId,
  accessToken: tokens.accessToken,
})

const failed = (cause: RefreshError): AppError => new AppError('upstream_auth_failed', { cause })
