/**
 * Lets several processes share key limits exactly: each leases a slice of what is left of a limit in its row, and admits
 * requests from its slice without reading the database. Used plus leased never exceeds the maximum.
 */

import { eq, isNotNull, ne, sql } from 'drizzle-orm'
import { isOutcomeUnknown } from '../../../db/busy.ts'
import { commit, type Db, notice, onCommitted, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { apiKeyLimits } from '../../../db/schema/keys.ts'
import type { Clock } from '../../lib/clock.ts'
import { eachInOrder } from '../../lib/in-order.ts'
import type { Log } from '../../lib/log.ts'
import { isRunning, type LimitRow, leasedOf, limitsInUse, resetAfter } from './key-limits.ts'
import { type Estimate, type LiveLimit, type Reservation, reserve, shortages, startWindow } from './reservations.ts'

interface LeaseDeps {
  db: Db
  clock: Clock
  log: Log
  /** Processes that serve requests together, this one included. */
  processes: number
  others: OtherProcesses
  limit: (id: string) => LiveLimit | undefined
  limits: () => Iterable<LiveLimit>
  /** Writes ended turns, so that the rows count what they used. */
  flush: () => Promise<unknown>
}

/** What this process knows of the others that use the database. */
export interface OtherProcesses {
  /** The number of this process; processes that start later get other numbers. */
  number: number
  /** Whether the process with this number runs. */
  isAlive: (number: number) => boolean
  /** Whether a process that started earlier still runs. */
  hasEarlier: () => boolean
  /** Calls the listener after others may have counted this process as ended. Absent: that cannot happen. */
  onReconnect?: (listener: () => void) => void
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
  async giveBack(what: 'all' | 'excess' = 'all'): Promise<void> {
    const rows = (await limitsInUse(this.#deps.db)).filter((row) => this.#returnable(row, what) > 0)
    if (rows.length > 0) await this.#return(rows, (row) => this.#returnable(row, what))
  }

  /** Returns everything that is not reserved. Further requests of a process that is ending lease small slices. */
  async close(): Promise<void> {
    const { log, limits, limit } = this.#deps
    this.#isEnding = true
    const leased = [...limits()].filter(({ free }) => free > 0)
    if (leased.length === 0) return
    try {
      await this.#return(leased, ({ id }) => limit(id)?.free ?? 0)
    } catch (err) {
      log.warn('unused parts of key limits could not be returned', { err })
    }
  }

  #returnable(row: LimitRow, what: 'all' | 'excess'): number {
    const limit = this.#deps.limit(row.id)
    if (!limit || limit.resetAt !== row.resetAt || this.#pending.has(row.id)) return 0
    const excess = row.currentValue + leasedOf(row) - row.maxValue
    if (what === 'all') return excess >= 0 ? limit.free : 0
    return Math.min(limit.free, excess)
  }

  /** Removes the lease from memory first, so that no request uses what is being returned. */
  async #return(limits: readonly { id: string }[], amountOf: (row: LimitRow) => number): Promise<void> {
    const { db, limit, others } = this.#deps
    const taken: { live: LiveLimit; amount: number; resetAt: number }[] = []
    const inLockOrder = limits.toSorted((a, b) => (a.id < b.id ? -1 : 1))
    try {
      await commit(db, (tx) =>
        eachInOrder(inLockOrder, async ({ id }) => {
          const row = await lockRow(tx, id)
          const live = limit(id)
          const amount = row && live?.resetAt === row.resetAt ? amountOf(row) : 0
          if (!row || !live || amount <= 0) return
          live.free -= amount
          live.shortUntil = 0
          taken.push({ live, amount, resetAt: live.resetAt })
          await setLease(tx, row, others.number, (row.leases[others.number] ?? 0) - amount)
        }),
      )
    } catch (err) {
      if (!isOutcomeUnknown(err))
        // otherwise other processes may have it now
        for (const { live, amount, resetAt } of taken) if (live.resetAt === resetAt) live.free += amount
      throw err
    }
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
    if ((await this.#take(limit, amount)) !== 'short') return
    await flush() // what ended requests did not use is free again
    const deadline = clock.monotonic() + ASK_MS
    let outcome = await this.#take(limit, amount)
    if (outcome === 'short') await this.#ask()
    while (outcome === 'short' && clock.monotonic() < deadline) {
      await clock.sleep(LOOK_MS)
      outcome = await this.#take(limit, amount)
    }
    if (outcome === 'short') limit.shortUntil = clock.now() + ASK_MS
  }

  /**
   * Leases a slice of what is left. `short`: less than `amount`, but other processes hold some. If the database cannot be
   * written, a single process counts in memory; with several, nothing is leased.
   */
  async #take(limit: LiveLimit, amount: number): Promise<'done' | 'short'> {
    const { db, clock, log, processes, others } = this.#deps
    const now = clock.now()
    if (limit.free >= amount) return 'done' // returned by a request that ended
    let outcome: 'done' | 'short' = 'done'
    try {
      await commit(db, async (tx) => {
        const row = await lockRow(tx, limit.id)
        if (!row) return onCommitted(tx, () => lendAll(limit)) // deleted
        const slice = sliceOf(this.#ofLiving(row), {
          amount: amount - limit.free,
          now,
          number: others.number,
          processes: this.#isSharing() ? Math.max(2, processes) : 1,
        })
        await tx.update(apiKeyLimits).set(slice.row).where(eq(apiKeyLimits.id, limit.id)).run()
        onCommitted(tx, () => {
          outcome = lend(limit, slice, now, amount)
        })
      })
      return outcome
    } catch (err) {
      log.warn('a key limit could not be leased', { limit: limit.id, err })
      return processes > 1 ? 'short' : lendAll(limit)
    }
  }

  /** A single process shares with one that it succeeds, or that succeeds it. */
  #isSharing(): boolean {
    const { processes, others } = this.#deps
    return processes > 1 || this.#isEnding || others.hasEarlier()
  }

  /**
   * Several processes count what a dead one had leased as used: it may have sent requests that no row shows. A single one
   * drops it, as a restart does: it may be the whole rest of the limit.
   */
  #ofLiving(row: LimitRow): LimitRow {
    const { processes, others } = this.#deps
    if (processes > 1) return row
    const living = Object.entries(row.leases).filter(
      ([name]) => Number(name) === others.number || others.isAlive(Number(name)),
    )
    return { ...row, leases: Object.fromEntries(living) }
  }

  async #ask(): Promise<void> {
    const { db, log } = this.#deps
    try {
      await commit(db, async (tx) => notice(tx, 'leases'))
    } catch (err) {
      log.warn('unused parts of key limits could not be requested from other processes', { err })
    }
  }
}

interface Slice {
  amount: number
  /** The new values of the row. */
  row: Pick<LimitRow, 'currentValue' | 'leases' | 'resetAt'>
  /** What is left for others. */
  rest: number
}

const sliceOf = (
  row: LimitRow,
  { amount, now, number, processes }: { amount: number; now: number; number: number; processes: number },
): Slice => {
  const isCurrent = isRunning(now, row.resetAt, row.limitWindow)
  const { currentValue, leases } = isCurrent ? row : { currentValue: 0, leases: {} as LimitRow['leases'] }
  const resetAt = isCurrent ? row.resetAt : resetAfter(now, row.resetAt, row.limitWindow)
  const rest = Math.max(0, row.maxValue - currentValue - leasedOf({ leases }))
  const share = processes > 1 ? Math.min(Math.ceil(rest / (2 * processes)), amount * REQUESTS_A_SLICE) : rest
  const slice = Math.min(rest, Math.max(amount, share))
  const next = withLease(leases, number, (leases[number] ?? 0) + slice)
  return { amount: slice, row: { currentValue, leases: next, resetAt }, rest: rest - slice }
}

const lend = (limit: LiveLimit, { amount, row, rest }: Slice, now: number, wanted: number): 'done' | 'short' => {
  if (row.resetAt !== limit.resetAt) startWindow(limit, row.resetAt)
  limit.free += amount
  limit.settled = Math.max(limit.settled, row.currentValue)
  const isOurs = leasedOf(row) <= limit.free + limit.reserved
  if (rest === 0 && isOurs) limit.shortUntil = Number.POSITIVE_INFINITY
  const isUsedUp = limit.settled >= limit.maxValue
  return limit.free >= wanted || limit.shortUntil > now || isUsedUp ? 'done' : 'short'
}

const lendAll = (limit: LiveLimit): 'done' => {
  limit.free = Math.max(0, limit.maxValue - limit.settled - limit.reserved)
  limit.shortUntil = Number.POSITIVE_INFINITY
  return 'done'
}

/** Locks the row: on PostgreSQL, the ledgers of other nodes can update it during a commit. */
const lockRow = (tx: Tx, id: string): Promise<LimitRow | undefined> =>
  tx
    .update(apiKeyLimits)
    .set({ leases: sql`${apiKeyLimits.leases}` })
    .where(eq(apiKeyLimits.id, id))
    .returning()
    .get()

const setLease = async (tx: Tx, { id, leases }: LimitRow, number: number, amount: number): Promise<void> => {
  await tx
    .update(apiKeyLimits)
    .set({ leases: withLease(leases, number, amount) })
    .where(eq(apiKeyLimits.id, id))
    .run()
}

const withLease = (leases: LimitRow['leases'], number: number, amount: number): LimitRow['leases'] => {
  const { [number]: _, ...rest } = leases
  return amount > 0 ? { ...rest, [number]: amount } : rest
}

/** After a start with no other process: what processes that were killed had leased is free again. */
export const forgetLeases = async (tx: Tx): Promise<void> => {
  await tx.update(apiKeyLimits).set({ leases: {} }).where(ne(apiKeyLimits.leases, {})).run()
  await tx.update(accounts).set({ streamSlots: null }).where(isNotNull(accounts.streamSlots)).run()
}
