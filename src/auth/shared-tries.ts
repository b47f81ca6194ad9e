/** Attempts per client over all processes that serve together, kept in the database. */
import { and, like, lt } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../db/commit.ts'
import { facts } from '../../db/schema/system.ts'
import type { Clock } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import { readFact, writeFact } from '../model/facts.ts'

const WINDOW_MS = 60_000
const NAME = 'tries_'

export class SharedTries {
  readonly #db: Db
  readonly #clock: Pick<Clock, 'now'>

  constructor(db: Db, clock: Pick<Clock, 'now'>) {
    this.#db = db
    this.#clock = clock
  }

  /** Charges an attempt, unless there were `limit` in the last minute: then returns the time until the next. */
  async take(client: string, limit: number): Promise<{ at: number } | { waitMs: number }> {
    return commit(this.#db, async (tx) => {
      const at = this.#clock.now() // after waiting for other processes
      const recent = await recentOf(tx, client, at)
      const oldest = recent.at(-1)
      if (recent.length >= limit && oldest !== undefined) return { waitMs: oldest + WINDOW_MS - at }
      await forgetOld(tx, at)
      await write(tx, client, [at, ...recent])
      return { at }
    })
  }

  async giveBack(client: string, at: number): Promise<void> {
    await commit(this.#db, async (tx) => {
      const recent = await recentOf(tx, client, this.#clock.now())
      const index = recent.indexOf(at)
      if (index !== -1) await write(tx, client, recent.toSpliced(index, 1))
    })
  }
}

/** Newest first. A time far in the future was written by a wrong clock. */
const recentOf = async (tx: Tx, client: string, now: number): Promise<number[]> => {
  const stored = parseJson((await readFact(tx, nameOf(client))) ?? '[]') as number[] // as: only `write` writes it
  return stored.filter((at) => Math.abs(now - at) < WINDOW_MS)
}

const write = (tx: Tx, client: string, tries: readonly number[]): Promise<void> =>
  writeFact(tx, nameOf(client), JSON.stringify(tries))

const nameOf = (client: string): string => `${NAME}${client}`

/** The lists begin with their newest attempt, and times have equally many digits. */
const forgetOld = async (tx: Tx, now: number): Promise<void> => {
  await tx
    .delete(facts)
    .where(and(like(facts.name, `${NAME}%`), lt(facts.value, `[${now - WINDOW_MS}`)))
    .run()
}
