/**
 * Which limits a client is shown (setting `clientRateLimits`). The figures of the pool are computed at most once a second
 * and scope, or when an account changes, because every response carries them.
 */

import type { Client } from '../../auth/client-key.ts'
import type { Clock } from '../../lib/clock.ts'
import { isInUse } from '../../model/accounts/account-state.ts'
import { accountLimits, type ClientLimits, keyLimits, poolLimits } from '../../model/keys/client-limits.ts'
import { type KeyScope, keyScope } from '../../model/keys/key-scope.ts'
import { type PoolWindow, poolWindows } from '../../model/overview/pool-usage.ts'
import type { Settings } from '../../settings/schema.ts'
import type { RateEvents } from '../downstream/contracts.ts'
import type { Pool } from './pool.ts'
import { rateHeaders, rateLimitsEvent } from './rate-limit-formats.ts'

const FRESH_MS = 1000

export interface PoolFigures {
  limits: ClientLimits
  /** The same figures in credits. */
  windows: readonly PoolWindow[]
  headers: Readonly<Record<string, string>>
}

interface Kept extends PoolFigures {
  revision: number
  /** ms since epoch */
  at: number
}

type Key = Client['key']

interface ViewDeps {
  pool: Pick<Pool, 'all' | 'get' | 'canServe' | 'revision'>
  settings: { current(): Readonly<Settings> }
  clock: Pick<Clock, 'now'>
}

export class ClientLimitsView {
  readonly #deps: ViewDeps
  /** By the scope object of a key, which is replaced when the keys are reloaded, and by its owner if caps exempt them. */
  readonly #kept = new WeakMap<object, Map<string | null, Kept>>()

  constructor(deps: ViewDeps) {
    this.#deps = deps
  }

  /** Whether clients with this key see nothing of the pool's quota. */
  hidesPool(key: Key): boolean {
    const { clientRateLimits, hideUpstreamQuotaFromApiKeys } = this.#deps.settings.current()
    return clientRateLimits === 'hidden' || (key !== null && hideUpstreamQuotaFromApiKeys)
  }

  /** What the client of a key sees in usage documents: its own limits, else the pool; null: hidden. */
  forKey(key: Key): ClientLimits | null {
    const own = key && keyLimits(key, this.#deps.clock.now())
    return own ?? (this.hidesPool(key) ? null : this.#forPoolOf(key).limits)
  }

  /** What responses to the client say, for a request served by `accountId` (null: none yet); null: nothing. */
  forResponse(key: Key, accountId: string | null): ClientLimits | null {
    if (this.hidesPool(key)) return null
    if (this.#deps.settings.current().clientRateLimits === 'pool') return this.forKey(key)
    return accountId === null ? null : this.forAccount(accountId, key?.ownerUserId)
  }

  /** The same as headers of a response. */
  headersFor(key: Key, accountId: string | null): Readonly<Record<string, string>> {
    const isPool = this.#deps.settings.current().clientRateLimits === 'pool'
    if (isPool && (key === null || key.limits.length === 0))
      return this.hidesPool(key) ? NO_HEADERS : this.#forPoolOf(key).headers
    const limits = this.forResponse(key, accountId)
    return limits ? rateHeaders(limits) : NO_HEADERS
  }

  #forPoolOf(key: Key): PoolFigures {
    return this.forScope(key?.scope ?? null, key?.ownerUserId)
  }

  /** The accounts in `scope` (null: all) together, for keys of this user. */
  forScope(scope: KeyScope, keyOwnerId: string | null = null): PoolFigures {
    const { pool, clock } = this.#deps
    const now = clock.now()
    const exemptId = pool.all().some(({ exemptOwnerId }) => exemptOwnerId === keyOwnerId) ? keyOwnerId : null
    const byOwner = this.#kept.get(scope ?? EVERY_ACCOUNT) ?? new Map<string | null, Kept>()
    const kept = byOwner.get(exemptId)
    if (kept && kept.revision === pool.revision && now >= kept.at && now - kept.at < FRESH_MS) return kept
    const { paidCredits } = this.#deps.settings.current()
    const accounts = pool.all()
    const limits = poolLimits({
      accounts,
      scope,
      canServe: pool.canServe({ scope, keyOwnerId: exemptId }),
      usesCredits: paidCredits !== 'never',
      now,
    })
    const windows = poolWindows(accounts, scope, now)
    const figures = { limits, windows, headers: rateHeaders(limits), revision: pool.revision, at: now }
    this.#kept.set(scope ?? EVERY_ACCOUNT, byOwner.set(exemptId, figures))
    return figures
  }

  /** One account, for keys of this user; null when it was deleted. */
  forAccount(id: string, keyOwnerId: string | null = null): ClientLimits | null {
    const { pool, clock } = this.#deps
    const account = pool.get(id)
    if (!account) return null
    const isUsable = pool.canServe({ scope: keyScope([id], null), keyOwnerId })
    const isLimited = !isUsable && isInUse(account.state)
    return accountLimits({ usage: account.usage, isUsable, isLimited }, clock.now())
  }
}

/** The events for one client. An account's own events are left as they are, unless its figures are hidden. */
export const rateEventsFor = (
  view: ClientLimitsView,
  { key, mode }: { key: Key; mode: Settings['clientRateLimits'] },
): RateEvents => {
  if (mode === 'account' && !view.hidesPool(key)) return 'unchanged'
  return () => {
    const limits = view.forResponse(key, null)
    return limits && hasFigures(limits) ? rateLimitsEvent(limits) : null
  }
}

/** Before the first usage report there is nothing to show. */
const hasFigures = ({ primary, secondary, monthly, credits }: ClientLimits): boolean =>
  [primary, secondary, monthly, credits].some((figure) => figure !== null)

const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({})
const EVERY_ACCOUNT = {}
