/** The daily overflow budget (UTC). The expected cost is reserved before a request, and corrected when it ends. */
import { and, eq, gte, sum } from 'drizzle-orm'
import { z } from 'zod'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { requests } from '../../../db/schema/requests.ts'
import type { Clock } from '../../lib/clock.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { parseJson } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { dropFact, readFact, writeFact } from '../../model/facts.ts'

/** Replaces the reserved cost by the actual cost. Only the first call counts. */
type Charge = (actualMicros: number) => void

/** `limitMicros` is in micro-dollars, and 0 means unlimited. `now` is ms since epoch. */
interface Day {
  limitMicros: number
  now: number
}

export interface OverflowBudget {
  /** Reserves `micros`. Returns null if that would exceed the limit, also together with parallel requests. */
  hold(micros: number, day: Day): Promise<Charge | null>
}

/** The budget if only one process serves requests. It is kept in memory. */
export class OwnBudget implements OverflowBudget {
  #day: number
  #spentMicros: number
  #heldMicros = 0

  /** Includes the cost of earlier requests today, from the log. `now` is ms since epoch. */
  static async open(db: Db, now: number): Promise<OwnBudget> {
    const day = toDay(now)
    return new OwnBudget(day, await spentSince(db, day * DAY_MS))
  }

  private constructor(day: number, spentMicros: number) {
    this.#day = day
    this.#spentMicros = spentMicros
  }

  async hold(micros: number, { limitMicros, now }: Day): Promise<Charge | null> {
    this.#rollOver(now)
    if (limitMicros > 0 && this.#spentMicros + this.#heldMicros + micros > limitMicros) return null
    this.#heldMicros += micros
    return once((actual) => {
      this.#heldMicros -= micros
      this.#spentMicros += actual // counts on the day the request ends, so no cost is lost
    })
  }

  #rollOver(now: number): void {
    if (toDay(now) === this.#day) return
    this.#day = toDay(now)
    this.#spentMicros = 0
  }
}

const SPENT = 'overflow_spent'

/**
 * The budget for several processes, kept in the database. If a process is killed, what it reserved counts as spent
 * until the end of the day, because its requests may have been served.
 */
export class SharedBudget implements OverflowBudget {
  readonly #deps: { db: Db; clock: Pick<Clock, 'now'>; log: Log }

  constructor(deps: { db: Db; clock: Pick<Clock, 'now'>; log: Log }) {
    this.#deps = deps
  }

  async hold(micros: number, { limitMicros, now }: Day): Promise<Charge | null> {
    const { db, log } = this.#deps
    const day = toDay(now)
    try {
      const fits = await commit(db, async (tx) => {
        const spent = await spentOn(tx, day)
        if (limitMicros > 0 && spent + micros > limitMicros) return false
        await writeSpent(tx, day, spent + micros)
        return true
      })
      return fits ? once((actual) => void this.#correct({ day, micros }, actual)) : null
    } catch (err) {
      if (limitMicros === 0) return () => {}
      log.warn('could not read the budget of the overflow source', { err })
      return null
    }
  }

  /**
   * The whole cost counts on the day the request ends. A reservation from the day before is not removed, because that
   * day is over.
   */
  async #correct(held: { day: number; micros: number }, actual: number): Promise<void> {
    const { db, clock, log } = this.#deps
    const day = toDay(clock.now())
    const change = day === held.day ? actual - held.micros : actual
    try {
      await commit(db, async (tx) => writeSpent(tx, day, Math.max(0, (await spentOn(tx, day)) + change)))
    } catch (err) {
      log.warn('could not correct the cost of a request of the overflow source', { actual, err })
    }
  }
}

const once = (charge: Charge): Charge => {
  let isOpen = true
  return (actual) => {
    if (isOpen) charge(actual)
    isOpen = false
  }
}

const Spent = z.strictObject({ day: z.int(), micros: z.int() })

const spentOn = async (tx: Tx, day: number): Promise<number> => {
  const stored = Spent.safeParse(parseJson((await readFact(tx, SPENT)) ?? 'null')).data
  if (!stored) return spentSince(tx, day * DAY_MS)
  return stored.day === day ? stored.micros : 0
}

const writeSpent = (tx: Tx, day: number, micros: number): Promise<void> =>
  writeFact(tx, SPENT, JSON.stringify({ day, micros: Math.round(micros) }))

/** Deletes the stored amount. Call it when no other process is running: the log then has all costs. */
export const forgetSpent = (tx: Tx): Promise<void> => dropFact(tx, SPENT)

const toDay = (now: number): number => Math.floor(now / DAY_MS)

const spentSince = async (db: Db, since: number): Promise<number> => {
  const row = await db
    .select({ micros: sum(requests.costMicros) })
    .from(requests)
    .where(and(gte(requests.startedAt, since), eq(requests.overflow, true)))
    .get()
  return Number(row?.micros ?? 0)
}
