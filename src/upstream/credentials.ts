/**
 * Access tokens of the accounts: in memory, refreshed once at a time per account, stored before use. Using a refresh
 * token twice invalidates the account, so a refresh never runs twice, not even in two processes, and its result is
 * never dropped: the exchange continues without waiters, and storing is retried until it succeeds.
 */
import { isOutcomeUnknown } from '../../db/busy.ts'
import { commit, type Db, type Tx } from '../../db/commit.ts'
import type { FolderLock } from '../../db/lock.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { DAY_MS, MINUTE_MS } from '../lib/durations.ts'
import { getQueue } from '../lib/lanes.ts'
import type { Log } from '../lib/log.ts'
import type { Sealer } from '../lib/seal.ts'
import { recordAccountEvent } from '../model/accounts/account-events.ts'
import {
  holdsTokens,
  openTokens,
  storeTokens,
  touchTokens,
  UNREADABLE_TOKENS,
} from '../model/accounts/account-tokens.ts'
import { type AccountRow, listAccounts } from '../model/accounts/accounts.ts'
import { type AccountTokens, getExpiry } from '../model/accounts/auth-json.ts'
import type { Route } from '../model/egress/route.ts'
import { dropFact, readFact, writeFact } from '../model/facts.ts'
import type { AccountCredentials } from './headers.ts'
import { type OAuthContext, RefreshError, refreshTokens } from './oauth.ts'

/** Tokens of this age are refreshed even if not expired. */
export const REFRESH_AFTER_MS = 8 * DAY_MS
/** After a temporary failure, no refresh is attempted for this long. */
export const FAILURE_COOLDOWN_MS = 5000
/** The name prefix in the `facts` table, followed by the account ID. */
const MARK = 'refreshing_'
const MARK_MS = 10 * MINUTE_MS
const UNMARK_PAUSE_MS = 10_000
/** How long a request waits for a token. */
const PATIENCE_MS = 8000
/** Between attempts to store; doubles. */
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 10_000
/** How often to look whether another process has ended its refresh of the same account. */
const LOCK_BEAT_MS = 100

interface Held {
  row: AccountRow
  tokens: AccountTokens
  /** From this time (ms) the token is refreshed before use. */
  staleAt: number
  /** Monotonic time of the next attempt after a temporary failure. */
  notBefore: number
  /** Failure of the last attempt. */
  failure: RefreshError | null
  /** The pending refresh. Set until the exchange ends, even if waiting timed out or newer tokens were imported. */
  refreshing: Promise<AccountCredentials> | null
}

interface CredentialsDeps {
  db: Db
  sealer: Sealer
  clock: Clock
  log: Log
  oauth: OAuthContext
  /** The route of an account with this pool. */
  getRoute: (egressPoolId: string | null) => Route
  /** Null while another process refreshes the tokens of this account. */
  lock: (accountId: string) => Promise<FolderLock | null>
  /** The number of this node, if another node can get its lock while it still waits for the upstream. */
  node?: number | undefined
  /** The account cannot be refreshed any more: its state changes. */
  onPermanentFailure: (accountId: string, code: string, evidence: string) => void
  /** The account has a new token from any source, so errors caused by the old one no longer apply. */
  onRenewed: (accountId: string) => void
}

export class Credentials {
  readonly #deps: CredentialsDeps
  #held = new Map<string, Held>()
  readonly #exchanges = new Set<Promise<AccountCredentials>>()
  /** Accounts whose refreshed tokens are not stored yet. */
  readonly #unstored = new Set<string>()
  /** Accounts whose mark of this node may be stored. */
  readonly #marked = new Set<string>()
  /** Cancels the next attempt to remove the mark of an account. */
  readonly #unmarkings = new Map<string, () => void>()
  #isEnding = false
  readonly #inTurn = getQueue(1)

  private constructor(deps: CredentialsDeps) {
    this.#deps = deps
  }

  static async open(deps: CredentialsDeps): Promise<Credentials> {
    const credentials = new Credentials(deps)
    await credentials.reload()
    return credentials
  }

  /** Reloads the rows after a change, one read after another; running refreshes continue. */
  reload(): Promise<void> {
    return this.#inTurn(() => this.#reload())
  }

  async #reload(): Promise<void> {
    const next = new Map<string, Held>()
    for (const row of await listAccounts(this.#deps.db)) {
      const before = this.#held.get(row.id)
      const isSame = before?.row.refreshTokenSealed === row.refreshTokenSealed
      const held = isSame ? Object.assign(before, { row }) : this.#hold(row, before)
      next.set(row.id, held)
      if (before && !isSame && held.tokens !== UNREADABLE_TOKENS) this.#deps.onRenewed(row.id)
    }
    this.#held = next
  }

  #hold(row: AccountRow, before: Held | undefined): Held {
    const tokens = openTokens(this.#deps.sealer, row)
    const expiresAt = getExpiry(tokens.accessToken) ?? Number.POSITIVE_INFINITY
    const staleAt = tokens === UNREADABLE_TOKENS ? 0 : Math.min(row.lastRefreshAt + REFRESH_AFTER_MS, expiresAt)
    return { row, tokens, staleAt, notBefore: 0, failure: null, refreshing: before?.refreshing ?? null }
  }

  /**
   * Valid credentials; a promise only when a refresh is due. If the refresh fails temporarily, returns the old token,
   * which may still work. Throws `upstream_auth_failed`, `account_not_found`.
   */
  fresh(accountId: string): AccountCredentials | Promise<AccountCredentials> {
    const held = this.#get(accountId)
    if (this.#deps.clock.now() < held.staleAt) return this.#getCredentials(held)
    return this.refresh(accountId, held.tokens.accessToken).catch((err: unknown) => {
      if (passingFailure(err) && held.tokens !== UNREADABLE_TOKENS) return this.#getCredentials(held)
      throw err
    })
  }

  /**
   * Replaces `rejected`, an access token the upstream rejected. Returns the current one if it was replaced in the
   * meantime. Throws `account_not_found`, and `upstream_auth_failed` with a `RefreshError` as cause, at most 8 s after
   * an exchange began.
   */
  async refresh(accountId: string, rejected: string): Promise<AccountCredentials> {
    const held = this.#get(accountId)
    if (held.tokens.accessToken !== rejected) return this.#getCredentials(held)
    const isJoining = held.refreshing !== null
    try {
      const given = await this.#renewal(accountId)
      const isOfTokensBefore = isJoining && given.accessToken === rejected // it started before these were imported
      return isOfTokensBefore ? await this.#renewal(accountId) : given
    } catch (err) {
      const present = this.#get(accountId)
      if (present.tokens.accessToken === rejected) throw err
      return this.#getCredentials(present)
    }
  }

  /** The running refresh, or a new one. */
  #renewal(accountId: string): Promise<AccountCredentials> {
    const held = this.#get(accountId)
    if (held.refreshing !== null) return held.refreshing
    if (held.failure && this.#deps.clock.monotonic() < held.notBefore) return Promise.reject(failed(held.failure))
    held.refreshing = this.#atMostPatience(this.#track(accountId, held))
    return held.refreshing
  }

  /** No other exchange may begin before this one has ended and its tokens are stored: it would use a spent refresh token. */
  #track(accountId: string, held: Held): Promise<AccountCredentials> {
    const exchange = this.#exchange(accountId, held).finally(() => {
      this.#exchanges.delete(exchange)
      held.refreshing = null
      const current = this.#held.get(accountId)
      if (current) current.refreshing = null
    })
    this.#exchanges.add(exchange)
    return exchange
  }

  /** Requests stop waiting when it takes too long; the exchange continues for later ones. */
  #atMostPatience(exchange: Promise<AccountCredentials>): Promise<AccountCredentials> {
    return new Promise((resolve, reject) => {
      const late = failed(new RefreshError('The token refresh takes too long.', null))
      const cancel = this.#deps.clock.after(PATIENCE_MS, () => reject(late))
      exchange.finally(cancel).then(resolve, reject)
    })
  }

  /** Call it at shutdown. Resolves when no exchange is running, at latest after `graceMs`. */
  settled(graceMs: number): Promise<void> {
    const { clock, log } = this.#deps
    this.#isEnding = true
    for (const cancel of this.#unmarkings.values()) cancel()
    const all = Promise.allSettled(this.#exchanges)
    return new Promise((resolve) => {
      const cancel = clock.after(graceMs, () => {
        log.error('tokens that were being refreshed may be lost', { count: this.#exchanges.size })
        resolve()
      })
      void all.then(cancel).then(resolve)
    })
  }

  async #exchange(accountId: string, held: Held): Promise<AccountCredentials> {
    const { clock, log, oauth, onPermanentFailure, getRoute } = this.#deps
    let lock: FolderLock | null = null
    try {
      if (held.tokens === UNREADABLE_TOKENS)
        throw new RefreshError('Its stored tokens cannot be read.', 'tokens_unreadable')
      lock = await this.#tryLock(accountId)
      while (!lock) {
        await clock.sleep(LOCK_BEAT_MS)
        lock = await this.#tryLock(accountId)
      }
      if (!(await this.#requireStorable(held))) {
        await this.reload() // another process refreshed them
        return this.#getCredentials(this.#get(accountId))
      }
      const tokens = await refreshTokens({ ...oauth, route: getRoute(held.row.egressPoolId) }, held.tokens)
      const isStored = await this.#store(held, tokens)
      if (!isStored) log.warn('an account changed while its token was refreshed', { account: accountId })
      return this.#getCredentials(this.#get(accountId)) // reloaded by the commit that stored them
    } catch (cause) {
      if (!(cause instanceof RefreshError)) throw cause
      if (!(await this.#charge(held, cause))) {
        log.info('a token refresh failed, but the tokens were already replaced', { account: accountId })
        return this.#getCredentials(this.#get(accountId))
      }
      held.notBefore = clock.monotonic() + FAILURE_COOLDOWN_MS
      held.failure = cause
      log.warn('a token refresh failed', { account: accountId, why: cause.message })
      if (cause.code !== null) onPermanentFailure(accountId, cause.code, cause.message)
      throw failed(cause)
    } finally {
      await this.#unmark(accountId)
      lock?.release()
    }
  }

  /**
   * A node that loses its database connection loses its lock, but may already have the new token. The mark stops other
   * nodes from using the old token until that node has had time to reconnect.
   */
  async #mark(tx: Tx, accountId: string): Promise<void> {
    const { node, clock } = this.#deps
    if (node === undefined) return
    const [other, at] = ((await readFact(tx, MARK + accountId)) ?? '').split(' ').map(Number)
    if (other && other !== node && clock.now() < (at ?? 0) + MARK_MS)
      throw new RefreshError('Another node is still refreshing this account’s token.', null)
    await writeFact(tx, MARK + accountId, `${node} ${clock.now()}`)
  }

  /** Repeats it later if it fails, because the mark stops the other nodes. */
  async #unmark(accountId: string, isRepeated = false): Promise<void> {
    const { db, node, log, clock } = this.#deps
    if (!this.#marked.has(accountId)) return
    try {
      await commit(db, async (tx) => {
        if (isRepeated && this.#held.get(accountId)?.refreshing) return // the mark belongs to that refresh now
        if ((await readFact(tx, MARK + accountId))?.startsWith(`${node} `)) await dropFact(tx, MARK + accountId)
        this.#marked.delete(accountId)
      })
    } catch (err) {
      this.#marked.add(accountId)
      log.warn('could not remove the mark of a token refresh', { account: accountId, err })
      this.#unmarkings.get(accountId)?.()
      if (this.#isEnding) return
      this.#unmarkings.set(
        accountId,
        clock.after(UNMARK_PAUSE_MS, () => this.#unmark(accountId, true)),
      )
    }
  }

  /** Throws when the lock cannot be created, as on a full disk: then tokens could not be stored either. */
  async #tryLock(accountId: string): Promise<FolderLock | null> {
    try {
      return await this.#deps.lock(accountId)
    } catch (cause) {
      throw new RefreshError(NOT_STORABLE, null, cause)
    }
  }

  /**
   * Spends the refresh token only if its successor can be stored: tests a similar write, and that no other account's
   * tokens are waiting. False when the token was replaced already.
   */
  async #requireStorable({ row }: Held): Promise<boolean> {
    if (this.#unstored.size > 0) throw new RefreshError(NOT_STORABLE, null)
    const mayBeMarked = () => this.#deps.node !== undefined && this.#marked.add(row.id)
    try {
      const isCurrent = await commit(this.#deps.db, async (tx) => {
        const holds = await holdsTokens(tx, row)
        if (holds) await touchTokens(tx, row)
        if (holds) await this.#mark(tx, row.id)
        return holds
      })
      if (isCurrent) mayBeMarked()
      return isCurrent
    } catch (cause) {
      if (isOutcomeUnknown(cause)) mayBeMarked()
      if (cause instanceof RefreshError) throw cause
      throw new RefreshError(NOT_STORABLE, null, cause)
    }
  }

  /** Retries until the database accepts the only valid tokens. False when the account was changed in the meantime. */
  async #store({ row }: Held, tokens: AccountTokens): Promise<boolean> {
    const { db, sealer, clock, log } = this.#deps
    const change = { id: row.id, previousSealed: row.refreshTokenSealed, tokens, sealer, at: clock.now() }
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      try {
        const wasStored = await commit(db, async (tx) => {
          const isStored = await storeTokens(tx, change)
          if (isStored) await recordAccountEvent(tx, { ...ofToken(row, change.at), result: 'refreshed', detail: null })
          return isStored
        })
        this.#unstored.delete(row.id)
        return wasStored
      } catch (err) {
        this.#unstored.add(row.id)
        log.error('refreshed tokens could not be stored yet', { account: row.id, err })
      }
      await clock.sleep(pauseMs)
    }
  }

  /**
   * Adds the failure to the account's history. False when newer tokens exist, so that it says nothing about them. A
   * failed write must not change the refresh's error.
   */
  async #charge({ row }: Held, { code, message }: RefreshError): Promise<boolean> {
    const { db, clock, log } = this.#deps
    const note = { ...ofToken(row, clock.now()), result: code ?? 'failed', detail: message }
    try {
      return await commit(db, async (tx) => {
        const isPresent = await holdsTokens(tx, row)
        if (isPresent) await recordAccountEvent(tx, note)
        return isPresent
      })
    } catch (err) {
      log.warn('an account event could not be stored', { account: row.id, err })
      return this.#held.get(row.id)?.row.refreshTokenSealed === row.refreshTokenSealed
    }
  }

  /** Accounts whose token is due, for the job that refreshes idle accounts. */
  due(): string[] {
    const { clock } = this.#deps
    const [now, elapsed] = [clock.now(), clock.monotonic()]
    return [...this.#held].filter(([, held]) => now >= held.staleAt && elapsed >= held.notBefore).map(([id]) => id)
  }

  #getCredentials({ row, tokens }: Held): AccountCredentials {
    return {
      id: row.id,
      chatgptAccountId: row.chatgptAccountId,
      accessToken: tokens.accessToken,
      route: this.#deps.getRoute(row.egressPoolId),
    }
  }

  #get(accountId: string): Held {
    const held = this.#held.get(accountId)
    if (!held) throw new AppError('account_not_found')
    return held
  }
}

const ofToken = ({ id }: AccountRow, at: number) => ({ accountId: id, at, kind: 'token' as const })

const NOT_STORABLE = 'The database cannot store a new token right now.'

/** The refresh error if it is temporary; null when the account needs sign-in. */
export const passingFailure = (err: unknown): RefreshError | null => {
  const cause = err instanceof AppError ? err.cause : null
  return cause instanceof RefreshError && cause.code === null ? cause : null
}

const failed = (cause: RefreshError): AppError => new AppError('upstream_auth_failed', { cause })
