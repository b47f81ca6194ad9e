/**
 * Writes account states from turns and polls to the database in the background. Failed writes are retried, so no turn
 * waits for the database or fails because of it.
 */
import { eq } from 'drizzle-orm'
import { commit, type Db, notice, onCommitted, type Tx } from '../../../db/commit.ts'
import { accounts } from '../../../db/schema/accounts.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log.ts'
import { recordAccountEvent } from '../../model/accounts/account-events.ts'
import { type AccountEvent, type AccountState, nextState } from '../../model/accounts/account-state.ts'
import { recoveryText } from '../../model/accounts/account-words.ts'
import { type AccountRow, getState, savePlan, saveState } from '../../model/accounts/accounts.ts'

interface StateWriterDeps {
  db: Db
  clock: Clock
  log: Log
}

interface Pending {
  events: AccountEvent[]
  planType: string | null
}

const RETRY_MS = 1000
/** Per account; during a long failure only the latest matter. */
const MAX_EVENTS = 50

export class StateWriter {
  readonly #deps: StateWriterDeps
  #pending = new Map<string, Pending>()
  /** What a commit is writing, until it has. */
  #underWay: ReadonlyMap<string, Pending> = new Map()
  /** Resolves when the running COMMIT is answered. Until then, the rows may or may not include its changes. */
  #committing: Promise<void> | null = null
  #writing: Promise<void> = Promise.resolve()
  /** Increases when what was pending is in the rows. */
  #version = 0
  #isHealthy = true
  #cancelBeat: (() => void) | null = null

  constructor(deps: StateWriterDeps) {
    this.#deps = deps
  }

  /** Only touches memory and never throws; neither does `plan`. */
  event(accountId: string, event: AccountEvent): void {
    const { events } = this.#of(accountId)
    events.push(event)
    if (events.length > MAX_EVENTS) events.shift()
    this.#arm()
  }

  plan(accountId: string, planType: string): void {
    this.#of(accountId).planType = planType
    this.#arm()
  }

  /** The account's row with pending changes applied. */
  present(row: AccountRow): { state: AccountState; planType: string } {
    const pending = joined(this.#underWay.get(row.id), this.#pending.get(row.id))
    if (!pending) return { state: getState(row), planType: row.planType }
    return {
      state: replay(row, pending.events, this.#deps.clock.now()).at(-1)?.state ?? getState(row),
      planType: pending.planType ?? row.planType,
    }
  }

  /**
   * Returns the result of `read`. Reads again if pending changes were stored in between, because the rows may or may not
   * include them.
   */
  async consistent<T>(read: () => Promise<T>): Promise<T> {
    while (true) {
      await this.#committing
      const version = this.#version
      const rows = await read()
      if (version === this.#version && !this.#committing) return rows
    }
  }

  /** Writes everything pending. Does not throw: failed writes stay pending. */
  flush(): Promise<void> {
    this.#disarm()
    this.#writing = this.#writing.then(() => this.#write())
    return this.#writing
  }

  /** Writes what is pending for the last time. */
  async stop(): Promise<void> {
    await this.flush()
    this.#disarm()
    if (this.#pending.size > 0)
      this.#deps.log.error('the last account states were lost', { accounts: [...this.#pending.keys()].join(', ') })
  }

  #of(accountId: string): Pending {
    return this.#pending.getOrInsertComputed(accountId, () => ({ events: [], planType: null }))
  }

  #arm(): void {
    if (this.#pending.size === 0) return
    this.#cancelBeat ??= this.#deps.clock.after(this.#isHealthy ? 0 : RETRY_MS, async () => {
      this.#cancelBeat = null
      await this.flush()
    })
  }

  #disarm(): void {
    this.#cancelBeat?.()
    this.#cancelBeat = null
  }

  /** The commit notifies listeners, who must not find the same events still pending when they read the rows. */
  async #write(): Promise<void> {
    if (this.#pending.size === 0) return
    const batch = this.#pending
    this.#pending = new Map()
    this.#underWay = batch
    const now = this.#deps.clock.now()
    const answered = Promise.withResolvers<void>()
    try {
      await commit(this.#deps.db, async (tx) => {
        for (const [id, pending] of batch) await store(tx, id, { ...pending, now })
        onCommitted(tx, () => {
          this.#underWay = new Map()
          this.#version++
          this.#committing = null
          answered.resolve()
        })
        this.#committing = answered.promise
      })
    } catch (error) {
      this.#committing = null
      answered.resolve()
      this.#takeBack(batch)
      if (this.#isHealthy) this.#deps.log.error('account states cannot be stored and are kept in memory', { error })
      this.#isHealthy = false
      this.#arm()
      return
    }
    if (!this.#isHealthy) this.#deps.log.info('account states can be stored again')
    this.#isHealthy = true
    this.#arm()
  }

  /** Puts it before what has come in since. */
  #takeBack(batch: ReadonlyMap<string, Pending>): void {
    this.#underWay = new Map()
    for (const [id, failed] of batch) {
      const { events, planType } = joined(failed, this.#pending.get(id)) ?? failed
      this.#pending.set(id, { events: events.slice(-MAX_EVENTS), planType })
    }
  }
}

const joined = (first: Pending | undefined, then: Pending | undefined): Pending | undefined =>
  first && then
    ? { events: [...first.events, ...then.events], planType: then.planType ?? first.planType }
    : (then ?? first)

/**
 * The row may have changed since, for example by a pause, which wins. The new state is returned in any case, because
 * memory may differ from the row.
 */
const store = async (tx: Tx, id: string, { events, planType, now }: Pending & { now: number }): Promise<void> => {
  const row = await tx.select().from(accounts).where(eq(accounts.id, id)).get()
  if (!row) return
  const states = replay(row, events, now)
  await saveState(tx, id, states.at(-1)?.state ?? getState(row))
  for (const change of getChanges(states)) await recordStateChange(tx, id, change)
  if (planType !== null) {
    await savePlan(tx, id, planType)
    await recordAccountEvent(tx, {
      accountId: id,
      at: now,
      kind: 'plan',
      result: planType,
      detail: `Before: ${row.planType}.`,
    })
  }
  notice(tx, 'accounts')
}

interface StateAfter {
  before: AccountState
  state: AccountState
  event: AccountEvent
}

/** Only changes of status; a continued block is not logged. */
const getChanges = (states: readonly StateAfter[]): StateAfter[] =>
  states.filter(({ before, state }) => state.status !== before.status)

const recordStateChange = (tx: Tx, accountId: string, { before, state, event }: StateAfter): Promise<void> =>
  recordAccountEvent(tx, {
    accountId,
    at: event.at,
    kind: 'state',
    result: state.status,
    detail: state.status === 'active' ? recoveryText(before, event) : (state.evidence ?? state.cause),
  })

/** The state after each event. */
const replay = (row: AccountRow, events: readonly AccountEvent[], now: number): StateAfter[] => {
  let state = getState(row)
  return events
    .filter((event) => !isOfOldTokens(row, event, now))
    .map((event) => {
      const before = state
      state = step(state, event)
      return { before, state, event }
    })
}

/**
 * The account was signed in again after the rejection. A `lastRefreshAt` in the future comes from a wrong clock and is
 * ignored.
 */
const isOfOldTokens = ({ lastRefreshAt }: AccountRow, { kind, at }: AccountEvent, now: number): boolean =>
  kind === 'auth_failed' && at < lastRefreshAt && lastRefreshAt <= now

/** Events that the row's state no longer allows are ignored. */
const step = (state: AccountState, event: AccountEvent): AccountState => {
  try {
    return nextState(state, event)
  } catch (err) {
    if (err instanceof AppError) return state
    throw err
  }
}
