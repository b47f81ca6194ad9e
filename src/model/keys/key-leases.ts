/**
 * Lets several processes share key limits exactly: each leases a slice of what is left of a limit in its row, and admits
 * requests from its slice without reading the database. Used plus leased never exceeds the maximum.
 */
import { and, eq, gt, gte, isNotNull, sql } from 'drizzle-orm'
import { commit, type Db, notice, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeyLimits } from '../../../db/schema/keys.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { isRunning, type LimitRow, resetAfter } from './key-limits.ts'
import { type Estimate, type LiveLimit, type Reservation, reserve, shortages, startWindow } from './reservations.ts'

interface LeaseDeps {
  db: Db
  clock: Clock
  log: Log
  /** Processes that share the database, this one included. */
  processes: number
  limit: (id: string) => LiveLimit | undefined
  limits: () => Iterable<LiveLimit>
  /** Writes ended turns, so that the rows count what they used. */
  flush: () => void
}

/** A slice is at most this many times what a request needs, so that a process that dies takes little with it. */
const REQUESTS_A_SLICE = 64
/** How long a request waits for other processes to return what they do not use. */
const ASK_MS = 1000
const LOOK_MS = 20

export class KeyLeases {
  readonly #deps: LeaseDeps
  /** By limit, so that requests that run short together lease once. */
  readonly #pending = new Map<string, Promise<void>>()
  #isEnding = false

  constructor(deps: LeaseDeps) {
    this.#deps = deps
  }

  /** A promise only when this process has too little leased. Throws or rejects with `rate_limit_exceeded`. */
  reserve(policy: { limits: readonly LiveLimit[] }, estimate: Estimate): Reservation | Promise<Reservation> {
    return reserve(policy, estimate, this.#deps.clock.now()) ?? this.#leaseFirst(policy, estimate)
  }

  /**
   * Returns what is not used of limits that are used up or leased whole, because another process needs it. With
   * `'excess'` only what exceeds a maximum that was lowered.
   */
  giveBack(what: 'all' | 'excess' = 'all'): void {
    const { db } = this.#deps
    const spent = sql`${apiKeyLimits.currentValue} + ${apiKeyLimits.leased}`
    const isSpent = what === 'all' ? gte(spent, apiKeyLimits.maxValue) : gt(spent, apiKeyLimits.maxValue)
    const rows = db
      .select()
      .from(apiKeyLimits)
      .where(and(gt(apiKeyLimits.leased, 0), isSpent))
      .all()
    if (!rows.some((row) => this.#returnable(row, what) > 0)) return
    commit(db, (tx) => {
      for (const { id } of rows) {
        const row = getRow(tx, id)
        if (row) this.#return(tx, row, this.#returnable(row, what))
      }
    })
  }

  /** Returns everything that is not reserved. Further requests of a process that is ending lease small slices. */
  close(): void {
    const { db, log, limits } = this.#deps
    this.#isEnding = true
    const leased = [...limits()].filter(({ free }) => free > 0)
    if (leased.length === 0) return
    try {
      commit(db, (tx) => {
        for (const { id, free } of leased) {
          const row = getRow(tx, id)
          if (row) this.#return(tx, row, free)
        }
      })
    } catch (err) {
      log.warn('unused parts of key limits could not be returned', { err })
    }
  }

  #returnable(row: LimitRow, what: 'all' | 'excess'): number {
    const limit = this.#deps.limit(row.id)
    if (!limit || limit.resetAt !== row.resetAt || this.#pending.has(row.id)) return 0
    return what === 'all' ? limit.free : Math.min(limit.free, row.currentValue + row.leased - row.maxValue)
  }

  #return(tx: Tx, { id, leased, resetAt }: LimitRow, amount: number): void {
    const limit = this.#deps.limit(id)
    if (!limit || limit.resetAt !== resetAt || amount <= 0) return
    limit.free -= amount
    limit.shortUntil = 0
    tx.update(apiKeyLimits)
      .set({ leased: Math.max(0, leased - amount) })
      .where(eq(apiKeyLimits.id, id))
      .run()
  }

  async #leaseFirst(policy: { limits: readonly LiveLimit[] }, estimate: Estimate): Promise<Reservation> {
    const { clock } = this.#deps
    for (;;) {
      for (const { limit, amount } of shortages(policy, estimate, clock.now())) await this.#lease(limit, amount)
      const reservation = reserve(policy, estimate, clock.now())
      if (reservation) return reservation
    }
  }

  #lease(limit: LiveLimit, amount: number): Promise<void> {
    return this.#pending.getOrInsertComputed(limit.id, () =>
      this.#find(limit, amount).finally(() => this.#pending.delete(limit.id)),
    )
  }

  /** Afterwards `amount` is leased, or the limit is marked as short. */
  async #find(limit: LiveLimit, amount: number): Promise<void> {
    const { clock, flush } = this.#deps
    if (this.#take(limit, amount) !== 'short') return
    flush() // what ended requests did not use is free again
    const deadline = clock.monotonic() + ASK_MS
    let outcome = this.#take(limit, amount)
    if (outcome === 'short') this.#ask()
    while (outcome === 'short' && clock.monotonic() < deadline) {
      await clock.sleep(LOOK_MS)
      outcome = this.#take(limit, amount)
    }
    if (outcome === 'short') limit.shortUntil = clock.now() + ASK_MS
  }

  /**
   * Leases a slice of what is left. `short`: less than `amount`, but other processes hold some. Without a database this
   * process goes on alone; otherwise nothing is leased.
   */
  #take(limit: LiveLimit, amount: number): 'done' | 'short' {
    const { db, clock, log, processes } = this.#deps
    const now = clock.now()
    if (limit.free >= amount) return 'done' // returned by a request that ended
    try {
      const taken = commit(db, (tx) => {
        const row = getRow(tx, limit.id)
        if (!row) return null
        const rest = sliceOf(row, { amount: amount - limit.free, now, processes: this.#isEnding ? 2 : processes })
        tx.update(apiKeyLimits).set(rest.row).where(eq(apiKeyLimits.id, limit.id)).run()
        return rest
      })
      if (taken === null) return lendAll(limit) // deleted
      return lend(limit, taken, now, amount)
    } catch (err) {
      log.warn('a key limit could not be leased', { limit: limit.id, err })
      return processes > 1 ? 'short' : lendAll(limit)
    }
  }

  #ask(): void {
    const { db, log } = this.#deps
    try {
      commit(db, (tx) => notice(tx, 'leases'))
    } catch (err) {
      log.warn('unused parts of key limits could not be requested from other processes', { err })
    }
  }
}

interface Slice {
  amount: number
  /** The new values of the row. */
  row: Pick<LimitRow, 'currentValue' | 'leased' | 'resetAt'>
  /** What is left for others. */
  rest: number
}

const sliceOf = (
  row: LimitRow,
  { amount, now, processes }: { amount: number; now: number; processes: number },
): Slice => {
  const isCurrent = isRunning(now, row.resetAt, row.limitWindow)
  const { currentValue, leased } = isCurrent ? row : { currentValue: 0, leased: 0 }
  const resetAt = isCurrent ? row.resetAt : resetAfter(now, row.resetAt, row.limitWindow)
  const rest = Math.max(0, row.maxValue - currentValue - leased)
  const share = processes > 1 ? Math.min(Math.ceil(rest / (2 * processes)), amount * REQUESTS_A_SLICE) : rest
  const slice = Math.min(rest, Math.max(amount, share))
  return { amount: slice, row: { currentValue, leased: leased + slice, resetAt }, rest: rest - slice }
}

const lend = (limit: LiveLimit, { amount, row, rest }: Slice, now: number, wanted: number): 'done' | 'short' => {
  if (row.resetAt !== limit.resetAt) startWindow(limit, row.resetAt)
  limit.free += amount
  limit.settled = Math.max(limit.settled, row.currentValue)
  const isOurs = row.leased <= limit.free + limit.reserved
  if (rest === 0 && isOurs) limit.shortUntil = Number.POSITIVE_INFINITY
  const isUsedUp = limit.settled >= limit.maxValue
  return limit.free >= wanted || limit.shortUntil > now || isUsedUp ? 'done' : 'short'
}

const lendAll = (limit: LiveLimit): 'done' => {
  limit.free = Math.max(0, limit.maxValue - limit.settled - limit.reserved)
  limit.shortUntil = Number.POSITIVE_INFINITY
  return 'done'
}

const getRow = (tx: Tx, id: string): LimitRow | undefined =>
  tx.select().from(apiKeyLimits).where(eq(apiKeyLimits.id, id)).get()

/** After a start with no other process: what processes that were killed had leased is free again. */
export const forgetLeases = (tx: Tx): void => {
  tx.update(apiKeyLimits).set({ leased: 0 }).where(gt(apiKeyLimits.leased, 0)).run()
  tx.update(accounts).set({ streamSlots: null }).where(isNotNull(accounts.streamSlots)).run()
}
