/**
 * Shares of the pool's capacity. A user within their share is never rejected here. Beyond it, they borrow from idle
 * users. When those return, new conversations of borrowers are rejected.
 */
import type { Db } from '../../../db/commit.ts'
import { AppError, resetMembers } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { MINUTE_MS } from '../../lib/durations.ts'
import type { Log } from '../../lib/log.ts'
import type { LiveRates } from '../log/live-rates.ts'
import { type PooledAccount, type PoolWindow, poolWindows } from '../overview/pool-usage.ts'
import type { Used } from './logged-use.ts'
import { RollingUse } from './rolling-use.ts'
import { type Holder, listHolders } from './share-rows.ts'
import {
  hasLender,
  lentCredits,
  type Position,
  SHARE_WINDOWS,
  type ShareWindow,
  spareCredits,
  WINDOW_NAMES,
} from './share-windows.ts'

interface SharesDeps {
  db: Db
  clock: Clock
  log: Log
  pool: { all(): readonly PooledAccount[]; readonly revision: number }
  /** Runs in another thread. */
  reads: {
    summedUse(asked: { from: number; until: number; stepMs: number }): Promise<Used[]>
    recentUse(since: number): Promise<(Used & { id: string })[]>
  }
  rates: Pick<LiveRates, 'current' | 'refresh'>
  /** Writes ended requests, so that the log has them. */
  flush: () => Promise<unknown>
  /** Whether other processes serve requests too. Their requests are read from the log. */
  isShared: () => boolean
}

/** One user's part of one window, in percent of the pool's capacity. */
export interface ShareUse {
  window: ShareWindow
  share: number
  used: number
  borrowed: number
  lent: number
}

interface Account {
  holder: Holder
  use: Record<ShareWindow, RollingUse>
  /** Running requests by ID, with the units expected of each. */
  running: Map<string, number>
  /** ms since epoch, 0 if never. */
  lastAt: number
}

/** Without a request for this long, a user is idle and others may borrow their share. */
export const IDLE_MS = 15 * MINUTE_MS
/** Requests appear in the log at most this long after they ended. */
const LATE_MS = MINUTE_MS
/** How long the pool's capacity is cached. Usage and resets change it. */
const POOL_MS = 1000

export class Shares {
  readonly #deps: SharesDeps
  #accounts = new Map<string, Account>()
  /** IDs of recent requests that are already counted → when they ended. */
  readonly #counted = new Map<string, number>()
  #pool: { revision: number; until: number; windows: readonly PoolWindow[] } = { revision: -1, until: 0, windows: [] }

  private constructor(deps: SharesDeps) {
    this.#deps = deps
  }

  static async open(deps: SharesDeps): Promise<Shares> {
    const shares = new Shares(deps)
    await shares.reload()
    return shares
  }

  /** Whether any user has a share. */
  get isOn(): boolean {
    return this.#accounts.size > 0
  }

  /** Reads the shares again. For users with a new share, reads their past use from the log. */
  async reload(): Promise<void> {
    const holders = await listHolders(this.#deps.db)
    const before = this.#accounts
    this.#accounts = new Map(
      holders.map((holder) => {
        const account = before.get(holder.userId)
        return [holder.userId, account ? Object.assign(account, { holder }) : newAccount(holder)]
      }),
    )
    const added = new Set(holders.map(({ userId }) => userId).filter((userId) => !before.has(userId)))
    if (added.size > 0) await this.#load(added)
  }

  /** Counts recent requests of other processes, and updates the rates from units to credits. */
  async refresh(): Promise<void> {
    if (!this.isOn) return
    const { clock, reads, rates, isShared } = this.#deps
    const now = clock.now()
    if (isShared()) this.#countLogged(await reads.recentUse(now - LATE_MS), () => true)
    for (const [id, endedAt] of this.#counted) if (endedAt < now - 2 * LATE_MS) this.#counted.delete(id)
    await rates.refresh()
  }

  /**
   * Throws `share_used_up` for a new conversation of a user who cannot borrow now. Returns whether the request borrows.
   */
  begin(userId: string | null, request: { id: string; units: number; isNew: boolean }): boolean {
    const account = this.#accounts.get(userId ?? '')
    if (!account) return false
    const now = this.#deps.clock.now()
    const over = this.#windowsOver(account, now)
    if (request.isNew) for (const { window, ...known } of over) this.#requireSpare(account, window, known, now)
    account.lastAt = now
    account.running.set(request.id, request.units)
    return over.length > 0
  }

  /** Ends a request. `units` is null if it used nothing. */
  end(userId: string | null, { id, at, units }: { id: string; at: number; units: number | null }): void {
    const account = this.#accounts.get(userId ?? '')
    if (!account) return
    account.running.delete(id)
    if (units !== null) this.#count(account, { id, at, units })
  }

  /** The error that a new conversation of this user would get now, and whether it would borrow. */
  foresee(userId: string | null): { isBorrowing: boolean; error: AppError | null } {
    const account = this.#accounts.get(userId ?? '')
    if (!account) return { isBorrowing: false, error: null }
    const now = this.#deps.clock.now()
    const over = this.#windowsOver(account, now)
    try {
      for (const { window, ...known } of over) this.#requireSpare(account, window, known, now)
      return { isBorrowing: over.length > 0, error: null }
    } catch (err) {
      return { isBorrowing: true, error: AppError.from(err) }
    }
  }

  /** The share and its use for each user who has one, ordered by user name. */
  describe(): { holder: Holder; windows: ShareUse[] }[] {
    const now = this.#deps.clock.now()
    const byWindow = WINDOW_NAMES.map((window) => {
      const { capacity } = this.#poolOf(window, now)
      const positions = this.#positions(window, capacity, now)
      const lent = lentCredits(positions, capacity)
      const percent = (credits: number) => (capacity === 0 ? 0 : Math.round((credits / capacity) * 10_000) / 100)
      return new Map(
        positions.map(({ userId, share, used }) => [
          userId,
          {
            window,
            share: percent(share),
            used: percent(used),
            borrowed: percent(Math.max(0, used - share)),
            lent: percent(lent.get(userId) ?? 0),
          },
        ]),
      )
    })
    return [...this.#accounts.values()].map(({ holder }) => ({
      holder,
      windows: byWindow.flatMap((uses, n) => {
        const use = uses.get(holder.userId)
        const given = holder.share[SHARE_WINDOWS[WINDOW_NAMES[n]!].percent]
        return use && given !== null ? [{ ...use, share: given }] : []
      }),
    }))
  }

  /** The windows in which the user has used up their share. */
  #windowsOver(account: Account, now: number) {
    return WINDOW_NAMES.flatMap((window) => {
      const { percent } = SHARE_WINDOWS[window]
      const pool = this.#poolOf(window, now)
      const given = account.holder.share[percent]
      if (given === null || pool.capacity === 0) return []
      const share = (pool.capacity * given) / 100
      return this.#usedCredits(account, window, now) >= share ? [{ window, pool, share, given }] : []
    })
  }

  #requireSpare(
    account: Account,
    window: ShareWindow,
    { pool, share, given }: { pool: Known; share: number; given: number },
    now: number,
  ): void {
    const { userId } = account.holder
    const positions = this.#positions(window, pool.capacity, now)
    if (!hasLender(positions, userId) || spareCredits(positions, userId, pool.remaining) > 0) return
    const { rate, text } = SHARE_WINDOWS[window]
    const resetAt = account.use[window].fallsBelow(share / this.#deps.rates.current[rate], now)
    const waitMs = Math.min(IDLE_MS, resetAt === null ? IDLE_MS : resetAt - now)
    throw new AppError('share_used_up', {
      message: `You have used your share of the pool, ${given}% of its ${text} capacity, and other users need theirs now. Running conversations continue. You can start new ones when the others are idle or when your own use leaves the window.`,
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
      ...(resetAt !== null && { envelope: resetMembers(resetAt, now) }),
    })
  }

  #positions(window: ShareWindow, capacity: number, now: number): Position[] {
    const { percent, rate } = SHARE_WINDOWS[window]
    return [...this.#accounts.values()].flatMap((account) => {
      const given = account.holder.share[percent]
      if (given === null) return []
      const { running, lastAt, holder } = account
      const reserved = running.values().reduce((sum, units) => sum + units, 0) * this.#deps.rates.current[rate]
      return {
        userId: holder.userId,
        share: (capacity * given) / 100,
        used: this.#usedCredits(account, window, now),
        reserved,
        isActive: running.size > 0 || now - lastAt < IDLE_MS,
      }
    })
  }

  #usedCredits({ use }: Account, window: ShareWindow, now: number): number {
    return use[window].total(now) * this.#deps.rates.current[SHARE_WINDOWS[window].rate]
  }

  /** Zero until an account has reported its windows. Until then, no requests are rejected. */
  #poolOf(window: ShareWindow, now: number): Known {
    const name: PoolWindow['window'] = SHARE_WINDOWS[window].pool
    const { pool } = this.#deps
    if (this.#pool.revision !== pool.revision || now >= this.#pool.until)
      this.#pool = { revision: pool.revision, until: now + POOL_MS, windows: poolWindows(pool.all(), null, now) }
    const found = this.#pool.windows.find((each) => each.window === name)
    if (!found) return { capacity: 0, remaining: 0 }
    return { capacity: found.capacityCredits, remaining: found.capacityCredits - found.usedCredits }
  }

  async #load(added: ReadonlySet<string>): Promise<void> {
    const { clock, log, reads, flush } = this.#deps
    const now = clock.now()
    try {
      await flush()
      const { windowMs } = SHARE_WINDOWS.weekly
      const { stepMs } = SHARE_WINDOWS.five_hour
      const sums = await reads.summedUse({ from: now - windowMs, until: now - LATE_MS, stepMs })
      for (const used of sums) {
        const account = added.has(used.userId) && this.#accounts.get(used.userId)
        if (account) addTo(account, used)
      }
      this.#countLogged(await reads.recentUse(now - LATE_MS), ({ userId }) => added.has(userId))
    } catch (err) {
      log.warn('use of shares could not be read from the log', { err })
    }
  }

  #countLogged(requests: readonly (Used & { id: string })[], isMeant: (used: Used) => boolean): void {
    for (const request of requests) {
      const account = isMeant(request) && this.#accounts.get(request.userId)
      if (account) this.#count(account, request)
    }
  }

  #count(account: Account, { id, at, units }: { id: string; at: number; units: number }): void {
    if (this.#counted.has(id)) return
    this.#counted.set(id, this.#deps.clock.now())
    addTo(account, { at, units })
  }
}

interface Known {
  /** The pool's capacity in credits. 0 if unknown. */
  capacity: number
  remaining: number
}

const newAccount = (holder: Holder): Account => ({
  holder,
  use: { five_hour: new RollingUse(SHARE_WINDOWS.five_hour), weekly: new RollingUse(SHARE_WINDOWS.weekly) },
  running: new Map(),
  lastAt: 0,
})

const addTo = (account: Account, { at, units }: { at: number; units: number }): void => {
  for (const window of WINDOW_NAMES) account.use[window].add(at, units)
  account.lastAt = Math.max(account.lastAt, at)
}
