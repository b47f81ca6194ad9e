/**
 * Lets several processes share the limit of parallel streams of an account: each takes slots in the account's row and
 * runs no more streams than it has slots. Slots that are not used are returned after a second. A single process needs
 * slots only during a reload, while it and its successor both have streams.
 */
import { eq } from 'drizzle-orm'
import { commit, type Db, onCommitted, type Tx } from '../../../db/commit.ts'
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
/** After the database could not be written. */
const BUSY_PAUSE_MS = 1000

export class StreamSlots {
  readonly #deps: SlotDeps
  /** Account → slots of this process. */
  readonly #held = new Map<string, number>()
  /** Account → streams that wait for `take`. */
  readonly #waiting = new Map<string, number>()
  /** Accounts whose row may count more slots than this process has. */
  readonly #outdated = new Set<string>()
  #cancelReturn: (() => void) | null = null
  #hasHandedOver = false
  /** Monotonic milliseconds. */
  #busyUntil = 0

  constructor(deps: SlotDeps) {
    this.#deps = deps
  }

  /** Whether one more stream may run on the account with the slots of this process. `cap` 0: any number. */
  covers({ id, inFlight }: Streams, cap: number): boolean {
    return cap === 0 || !(this.#hasHandedOver || this.#deps.isShared()) || inFlight < this.#getHeld(id)
  }

  /** Takes slots that streams of the account wait for. Resolves to false if none was free. */
  async take(account: Streams, cap: number): Promise<boolean> {
    if (this.isBusy) return false
    const { id } = account
    const { db, clock, log } = this.#deps
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1)
    try {
      await commit(db, (tx) => {
        const wanted = account.inFlight + (this.#waiting.get(id) ?? 0) - this.#getHeld(id)
        return this.#takeIn(tx, id, wanted, cap)
      })
    } catch (err) {
      this.#outdated.add(id) // it may have been stored
      log.warn('no stream slot could be taken', { account: id, err })
      this.#busyUntil = clock.monotonic() + BUSY_PAUSE_MS
    } finally {
      this.#waiting.set(id, (this.#waiting.get(id) ?? 1) - 1)
    }
    return account.inFlight < this.#getHeld(id)
  }

  /** Whether the database could not be written a moment ago, so that `take` gives out no slots. */
  get isBusy(): boolean {
    return this.#deps.clock.monotonic() < this.#busyUntil
  }

  /** Takes slots for the streams that run, beyond the limit if need be: from now on a successor serves, too. */
  async handOver(all: Iterable<Streams>): Promise<void> {
    this.#hasHandedOver = true
    const { db, log } = this.#deps
    try {
      await commit(db, async (tx) => {
        for (const { id, inFlight } of all)
          await this.#takeIn(tx, id, inFlight - this.#getHeld(id), Number.POSITIVE_INFINITY)
      })
    } catch (err) {
      log.warn('the running streams could not be counted for the next process', { err })
    }
  }

  /** A stream has ended. `all` gives the accounts when it is time to return unused slots. */
  noteEnd(all: () => Iterable<Streams>): void {
    if (this.#held.size === 0 && this.#outdated.size === 0) return
    this.#cancelReturn ??= this.#deps.clock.after(IDLE_MS, async () => {
      this.#cancelReturn = null
      await this.#returnIdle(all())
      if (this.#outdated.size > 0) this.noteEnd(all)
    })
  }

  async stop(): Promise<void> {
    this.#cancelReturn?.()
    await this.#returnIdle([])
  }

  #getHeld(id: string): number {
    return this.#held.get(id) ?? 0
  }

  async #takeIn(tx: Tx, id: string, wanted: number, cap: number): Promise<void> {
    if (wanted <= 0) return
    const { number } = this.#deps
    const held = this.#getHeld(id)
    const stored = await getRow(tx, id)
    const row = stored && { ...stored, [number]: held }
    const slots = row && (sum(row) < cap ? row : this.#ofLiving(row))
    // a deleted account has nothing to share
    const taken = slots ? Math.max(0, Math.min(wanted, cap - sum(slots))) : wanted
    if (slots && taken > 0) await write(tx, id, { ...slots, [number]: held + taken })
    onCommitted(tx, () => this.#held.set(id, this.#getHeld(id) + taken))
  }

  #ofLiving(slots: Slots): Slots {
    const { number, isAlive } = this.#deps
    return Object.fromEntries(
      Object.entries(slots).filter(([name]) => Number(name) === number || isAlive(Number(name))),
    )
  }

  /** What is not given here has no stream. */
  async #returnIdle(streams: Iterable<Streams>): Promise<void> {
    const { db, log, number } = this.#deps
    const used = new Map([...streams].map(({ id, inFlight }) => [id, inFlight]))
    // before the commit, so that no stream begins on a slot that is being returned
    for (const [id, held] of this.#held) {
      const kept = used.get(id) ?? 0
      if (held <= kept) continue
      this.#outdated.add(id)
      if (kept > 0) this.#held.set(id, kept)
      else this.#held.delete(id)
    }
    const ids = [...this.#outdated]
    if (ids.length === 0) return
    try {
      await commit(db, async (tx) => {
        for (const id of ids) {
          const slots = await getRow(tx, id)
          if (slots) await write(tx, id, { ...slots, [number]: this.#getHeld(id) })
        }
        onCommitted(tx, () => {
          for (const id of ids) this.#outdated.delete(id)
        })
      })
    } catch (err) {
      log.warn('unused stream slots could not be returned', { err })
    }
  }
}

type Slots = Readonly<Record<string, number>>

const sum = (slots: Slots): number => Object.values(slots).reduce((total, count) => total + count, 0)

const getRow = async (tx: Tx, id: string): Promise<Slots | null> => {
  const row = await tx.select({ slots: accounts.streamSlots }).from(accounts).where(eq(accounts.id, id)).get()
  return row ? (row.slots ?? {}) : null
}

const write = async (tx: Tx, id: string, slots: Slots): Promise<void> => {
  await tx
    .update(accounts)
    .set({ streamSlots: held(slots) })
    .where(eq(accounts.id, id))
    .run()
}

const held = (slots: Slots): Slots | null => {
  const some = Object.entries(slots).filter(([, count]) => count > 0)
  return some.length > 0 ? Object.fromEntries(some) : null
}
