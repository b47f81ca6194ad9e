/** What overflow may cost in a day (UTC): the expected cost is held before a request runs, and corrected when it ends. */
import { and, eq, gte, sum } from 'drizzle-orm'
import type { Db } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import { DAY_MS } from '../../lib/durations.ts'

export class OverflowBudget {
  readonly #processes: number
  #day: number
  /** Spent by all processes when this one started or the day began. */
  #spentBefore: number
  #spentMicros: number
  #heldMicros = 0

  /**
   * `now`: ms since epoch. What was spent today before a restart still counts. Each of several processes may spend an
   * equal share of the rest.
   */
  constructor(db: Db, now: number, processes = 1) {
    this.#processes = processes
    this.#day = toDay(now)
    this.#spentBefore = spentSince(db, this.#day * DAY_MS)
    this.#spentMicros = this.#spentBefore
  }

  /**
   * Holds `micros`. Returns the function that takes the actual cost, once; null when it does not fit into the limit
   * (micro-dollars, 0: none). Checking and holding are one step, so parallel requests cannot exceed it together.
   */
  hold(micros: number, { limitMicros, now }: { limitMicros: number; now: number }): ((actual: number) => void) | null {
    this.#rollOver(now)
    const share = this.#spentBefore + (limitMicros - this.#spentBefore) / this.#processes
    if (limitMicros > 0 && this.#spentMicros + this.#heldMicros + micros > share) return null
    this.#heldMicros += micros
    let isOpen = true
    return (actual) => {
      if (!isOpen) return
      isOpen = false
      this.#heldMicros -= micros
      this.#spentMicros += actual // on the day it ends, so that a budget never loses what was spent
    }
  }

  /** Micro-dollars of ended requests. */
  spent(now: number): number {
    this.#rollOver(now)
    return this.#spentMicros
  }

  #rollOver(now: number): void {
    if (toDay(now) === this.#day) return
    this.#day = toDay(now)
    this.#spentBefore = 0
    this.#spentMicros = 0
  }
}

const toDay = (now: number): number => Math.floor(now / DAY_MS)

const spentSince = (db: Db, since: number): number => {
  const row = db
    .select({ micros: sum(requests.costMicros) })
    .from(requests)
    .where(and(gte(requests.startedAt, since), eq(requests.overflow, true)))
    .get()
  return Number(row?.micros ?? 0)
}
