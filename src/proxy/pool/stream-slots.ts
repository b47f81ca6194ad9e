/**
 * Lets several processes share the limit of parallel streams of an account: each takes slots in the account's row and
 * runs no more streams than it has slots. Slots that are not used are returned after a second. A single process needs
 * slots only during a reload, while it and its successor both have streams.
 */
import { eq } from 'drizzle-orm'
import { commit, type Db, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'

interface SlotDeps {
  db: Db
  clock: Clock
  log: Log
  /** Of this process. */
  number: number
  /** Whether a process with this number runs. */
  isAlive: (number: number) => boolean
  /** Whether other processes run streams, too. */
  isShared: () => boolean
}

interface Streams {
  readonly id: string
  readonly inFlight: number
}

const IDLE_MS = 1000
/** A commit that waits for another process's lock blocks the event loop, so failed ones are not repeated more often. */
const BUSY_PAUSE_MS = 1000

export class StreamSlots {
  readonly #deps: SlotDeps
  /** Account → slots of this process. */
  readonly #held = new Map<string, number>()
  #cancelReturn: (() => void) | null = null
  #hasHandedOver = false
  /** Monotonic milliseconds. */
  #busyUntil = 0

  constructor(deps: SlotDeps) {
    this.#deps = deps
  }

  /** Whether one more stream may run on the account, if need be with a new slot. `cap` 0: any number. */
  cover({ id, inFlight }: Streams, cap: number): boolean {
    if (cap === 0 || !(this.#hasHandedOver || this.#deps.isShared())) return true
    const held = this.#held.get(id) ?? 0
    if (inFlight < held) return true
    if (this.isBusy) return false
    const taken = this.#take(id, inFlight + 1 - held, cap)
    this.#held.set(id, held + taken)
    return inFlight < held + taken
  }

  /** Whether the database could not be written a moment ago, so that `cover` gives out no new slots. */
  get isBusy(): boolean {
    return this.#deps.clock.monotonic() < this.#busyUntil
  }

  /** Takes slots for the streams that run, beyond the limit if need be: from now on a successor serves, too. */
  handOver(all: Iterable<Streams>): void {
    this.#hasHandedOver = true
    for (const { id, inFlight } of all) {
      const wanted = inFlight - (this.#held.get(id) ?? 0)
      if (wanted <= 0) continue
      this.#take(id, wanted, Number.POSITIVE_INFINITY)
      this.#held.set(id, inFlight)
    }
  }

  /** A stream has ended. `all` gives the accounts when it is time to return unused slots. */
  noteEnd(all: () => Iterable<Streams>): void {
    if (this.#held.size === 0) return
    this.#cancelReturn ??= this.#deps.clock.after(IDLE_MS, () => {
      this.#cancelReturn = null
      this.#returnIdle(all())
    })
  }

  stop(): void {
    this.#cancelReturn?.()
    this.#returnIdle([])
  }

  /** How many of the wanted slots were free. */
  #take(id: string, wanted: number, cap: number): number {
    const { db, clock, log, number } = this.#deps
    try {
      return commit(db, (tx) => {
        const row = getRow(tx, id)
        if (!row) return wanted // the account was deleted: nothing to share
        const slots = sum(row) < cap ? row : this.#ofLiving(row)
        const taken = Math.max(0, Math.min(wanted, cap - sum(slots)))
        if (taken > 0) write(tx, id, { ...slots, [number]: (slots[number] ?? 0) + taken })
        return taken
      })
    } catch (err) {
      log.warn('no stream slot could be taken', { account: id, err })
      this.#busyUntil = clock.monotonic() + BUSY_PAUSE_MS
      return 0
    }
  }

  #ofLiving(slots: Slots): Slots {
    const { number, isAlive } = this.#deps
    return Object.fromEntries(
      Object.entries(slots).filter(([name]) => Number(name) === number || isAlive(Number(name))),
    )
  }

  /** What is not given here has no stream. */
  #returnIdle(streams: Iterable<Streams>): void {
    const { db, log, number } = this.#deps
    const used = new Map([...streams].map(({ id, inFlight }) => [id, inFlight]))
    const idle = [...this.#held].filter(([id, held]) => held > (used.get(id) ?? 0))
    if (idle.length === 0) return
    try {
      commit(db, (tx) => {
        for (const [id, held] of idle) {
          const slots = getRow(tx, id)
          const kept = used.get(id) ?? 0
          if (slots) write(tx, id, { ...slots, [number]: Math.max(0, (slots[number] ?? 0) - (held - kept)) })
        }
      })
      for (const [id] of idle) {
        if (used.get(id)) this.#held.set(id, used.get(id)!)
        else this.#held.delete(id)
      }
    } catch (err) {
      log.warn('unused stream slots could not be returned', { err })
    }
  }
}

type Slots = Readonly<Record<string, number>>

const sum = (slots: Slots): number => Object.values(slots).reduce((total, count) => total + count, 0)

const getRow = (tx: Tx, id: string): Slots | null => {
  const row = tx.select({ slots: accounts.streamSlots }).from(accounts).where(eq(accounts.id, id)).get()
  return row ? (row.slots ?? {}) : null
}

const write = (tx: Tx, id: string, slots: Slots): void => {
  const held = Object.entries(slots).filter(([, count]) => count > 0)
  tx.update(accounts)
    .set({ streamSlots: held.length > 0 ? Object.fromEntries(held) : null })
    .where(eq(accounts.id, id))
    .run()
}
