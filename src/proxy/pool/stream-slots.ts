/**
 * Lets several processes share the limit of parallel streams of an account: each takes slots in the account's row and
 * runs no more streams than it has slots. Slots that are not used are returned after a second, and kept while the database
 * cannot be written. After a reconnect, a node first stores the slots of its running streams, because others may have
 * dropped them. A single process needs slots only during a reload, while it and its successor both have streams.
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
  /** The number of this process. */
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
const FAILED_PAUSE_MS = 1000
/** After a reconnect. By then, processes that look once a second know that this one runs. */
const RECONNECTED_MS = 2000

export class StreamSlots {
  readonly #deps: SlotDeps
  /** Account → slots of this process. */
  readonly #held = new Map<string, number>()
  /** Account → streams that wait for `take`. */
  readonly #waiting = new Map<string, number>()
  /** Accounts whose row may count more or fewer slots than this process has. */
  readonly #outdated = new Set<string>()
  /** Accounts whose slots other processes may have taken. */
  readonly #unconfirmed = new Set<string>()
  /** Accounts whose last `take` failed. */
  readonly #failed = new Set<string>()
  #cancelReturn: (() => void) | null = null
  #hasHandedOver = false
  /** When the database could not be written (monotonic). */
  #failedAt = Number.NEGATIVE_INFINITY

  constructor(deps: SlotDeps) {
    this.#deps = deps
  }

  /** Whether one more stream may run on the account with the slots of this process. `cap` 0: any number. */
  covers({ id, inFlight }: Streams, cap: number): boolean {
    if (cap === 0 || !(this.#hasHandedOver || this.#deps.isShared())) return true
    return inFlight < this.#getHeld(id) && (!this.#unconfirmed.has(id) || this.#failed.has(id))
  }

  /** Takes slots that streams of the account wait for. Resolves to false if none was free. */
  async take(account: Streams, cap: number): Promise<boolean> {
    const { id } = account
    const { db, clock, log } = this.#deps
    if (clock.monotonic() - this.#failedAt < FAILED_PAUSE_MS) {
      this.#failed.add(id)
      return this.covers(account, cap)
    }
    this.#waiting.set(id, (this.#waiting.get(id) ?? 0) + 1)
    try {
      await commit(db, (tx) => {
        // as late as in `#returnIdle`
        if (this.#unconfirmed.has(id)) this.#keep(id, Math.min(account.inFlight, this.#getHeld(id)))
        const wanted = account.inFlight + (this.#waiting.get(id) ?? 0) - this.#getHeld(id)
        return this.#takeIn(tx, id, wanted, cap)
      })
      this.#failedAt = Number.NEGATIVE_INFINITY
      this.#failed.delete(id)
    } catch (err) {
      this.#failed.add(id)
      this.#outdated.add(id) // it may have been stored
      log.warn('no stream slot could be taken', { account: id, err })
      this.#failedAt = clock.monotonic()
    } finally {
      this.#waiting.set(id, (this.#waiting.get(id) ?? 1) - 1)
    }
    return this.covers(account, cap)
  }

  /** Whether the last `take` for the account failed because the database could not be written. */
  hasFailed(id: string): boolean {
    return this.#failed.has(id)
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
  noteEnd(all: () => Iterable<Streams>, delayMs = IDLE_MS): void {
    if (this.#held.size === 0 && this.#outdated.size === 0) return
    this.#cancelReturn ??= this.#deps.clock.after(delayMs, async () => {
      this.#cancelReturn = null
      if (!(await this.#returnIdle(all))) this.noteEnd(all)
    })
  }

  /** Other processes may have counted this one as ended. `all` as in `noteEnd`. */
  noteReconnect(all: () => Iterable<Streams>): void {
    for (const id of this.#held.keys()) {
      this.#unconfirmed.add(id)
      this.#outdated.add(id)
    }
    this.#failed.clear()
    this.#failedAt = Number.NEGATIVE_INFINITY
    this.#cancelReturn?.()
    this.#cancelReturn = null
    this.noteEnd(all, RECONNECTED_MS)
  }

  async stop(): Promise<void> {
    this.#cancelReturn?.()
    await this.#returnIdle(() => [])
  }

  #getHeld(id: string): number {
    return this.#held.get(id) ?? 0
  }

  #keep(id: string, slots: number): void {
    if (slots > 0) this.#held.set(id, slots)
    else this.#held.delete(id)
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
    if (slots && (taken > 0 || (stored?.[number] ?? 0) !== held))
      await write(tx, id, { ...slots, [number]: held + taken })
    onCommitted(tx, () => {
      this.#held.set(id, this.#getHeld(id) + taken)
      this.#unconfirmed.delete(id)
    })
  }

  #ofLiving(slots: Slots): Slots {
    const { number, isAlive } = this.#deps
    return Object.fromEntries(
      Object.entries(slots).filter(([name]) => Number(name) === number || isAlive(Number(name))),
    )
  }

  /** False if it must be repeated. What `all` does not give has no stream. */
  async #returnIdle(all: () => Iterable<Streams>): Promise<boolean> {
    const { db, log, number } = this.#deps
    if (this.#outdated.size === 0 && this.#getIdle(all()).length === 0) return true
    try {
      await commit(db, async (tx) => {
        // Not earlier, because they are needed if the database cannot be written. Not later, because a stream could begin.
        for (const [id, used] of this.#getIdle(all())) {
          this.#outdated.add(id)
          this.#keep(id, used)
        }
        const ids = [...this.#outdated]
        for (const id of ids) {
          const slots = await getRow(tx, id)
          if (slots) await write(tx, id, { ...slots, [number]: this.#getHeld(id) })
        }
        onCommitted(tx, () => {
          for (const id of ids) {
            this.#outdated.delete(id)
            this.#unconfirmed.delete(id)
          }
        })
      })
    } catch (err) {
      log.warn('unused stream slots could not be returned', { err })
      return false
    }
    return this.#outdated.size === 0
  }

  /** Accounts with more slots than streams, and their streams. */
  #getIdle(streams: Iterable<Streams>): [id: string, used: number][] {
    const used = new Map([...streams].map(({ id, inFlight }) => [id, inFlight]))
    return [...this.#held].flatMap(([id, held]) => (held > (used.get(id) ?? 0) ? [[id, used.get(id) ?? 0]] : []))
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
