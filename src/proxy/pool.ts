/** The pool: chooses among the live accounts, takes in what happens to each, and gives the lease every turn holds while one serves it. */
import type { Db } from '../../db/commit.ts'
import { AppError } from '../errors.ts'
import type { Clock } from '../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import type { Log } from '../lib/log.ts'
import type { StopSignal } from '../lib/stopper.ts'
import { type HealthEvent, nextHealth } from '../model/account-health.ts'
import { ACTIVE, type AccountEvent, isInUse, nextState } from '../model/account-state.ts'
import type { AccountView } from '../model/account-view.ts'
import { listAccounts, usageOf } from '../model/accounts.ts'
import { isQuotaUsedUp, mergeUsage, type UsageSnapshot, usedNow } from '../model/usage-windows.ts'
import type { Settings } from '../settings/schema.ts'
import { describeAccounts } from './describe.ts'
import { fromRow, type LiveAccount, newAccount, UNTIMED } from './live-account.ts'
import { limitOf, type PolicyContext } from './policies.ts'
import {
  type Considered,
  isUnlisted,
  isUpstreamFailing,
  type Selection,
  type SelectionNeeds,
  select,
  selectionError,
} from './select.ts'
import { StateWriter } from './state-writer.ts'
import { WaitingLine } from './waiting-line.ts'

export class Lease {
  readonly account: LiveAccount
  readonly considered: readonly Considered[]
  #pool: Pick<Pool, 'give'> | null

  constructor(account: LiveAccount, considered: readonly Considered[], pool: Pick<Pool, 'give'>) {
    this.account = account
    this.considered = considered
    this.#pool = pool
  }

  /** Gives the slot back; more than once is once. */
  release(): void {
    this.#pool?.give(this.account)
    this.#pool = null
  }
}

interface PoolDeps {
  db: Db
  clock: Clock
  log: Log
  random: () => number
  settings: () => Readonly<Settings>
  /** Slugs an account offers, null while unknown. */
  modelsOf: (accountId: string) => ReadonlySet<string> | null
  /** Stores a usage snapshot behind the turn. */
  saveUsage: (accountId: string, snapshot: UsageSnapshot) => void
}

/** Percent of an allowance one turn under way counts for (domain-logic §2.3). */
const IN_FLIGHT_PENALTY_PERCENT = 2.5

const REJECTED_MODEL_MS = HOUR_MS
/** Clients make up names; the oldest go first. */
const MAX_REJECTED_MODELS = 100

export class Pool {
  readonly #deps: PoolDeps
  readonly #writer: StateWriter
  #accounts = new Map<string, LiveAccount>()
  /** The same as a list, which every selection looks through. */
  #all: readonly LiveAccount[] = []
  /** Turns that wait for a slot. */
  readonly #waiting: WaitingLine
  /** Overloaded model → until when that is remembered (ms). */
  readonly #overloaded = new Map<string, number>()
  /** Accounts whose health may say `failing`. */
  readonly #failing = new Set<string>()
  /** ms since epoch */
  #lastTickAt = 0

  constructor(deps: PoolDeps) {
    this.#deps = deps
    this.#writer = new StateWriter(deps)
    this.#waiting = new WaitingLine(deps.clock)
    this.reload(usageOf(deps.db))
  }

  /** Reads the rows again; what is live (leases, health, newer usage, what is not stored yet) is kept. */
  reload(usage: ReadonlyMap<string, UsageSnapshot> = new Map()): void {
    const next = new Map<string, LiveAccount>()
    for (const row of listAccounts(this.#deps.db)) {
      const seen = { ...fromRow(row), ...this.#writer.present(row) }
      const live = this.#accounts.get(row.id) ?? newAccount(row.id, { seen, usage: usage.get(row.id) ?? null })
      const models = this.#deps.modelsOf(row.id)
      if (models !== live.models) live.rejectedModels.clear() // a newer catalog knows better
      next.set(row.id, Object.assign(live, seen, { models }))
    }
    this.#accounts = next
    this.#all = [...next.values()]
    this.#waiting.call()
  }

  get(id: string): LiveAccount | null {
    return this.#accounts.get(id) ?? null
  }

  /** Whether a connection of the account may stay signed in: it is neither gone nor set aside. */
  isInUse(id: string): boolean {
    const state = this.#accounts.get(id)?.state
    return state !== undefined && isInUse(state)
  }

  /** In the order in which they came; another list after `reload`. */
  all(): readonly LiveAccount[] {
    return this.#all
  }

  byTag(tag: string): LiveAccount | null {
    return this.all().find((account) => account.tag === tag) ?? null
  }

  /** Whether any account is known to offer the model. One that none lists is for the upstream to judge. */
  offers(model: string | null): boolean {
    return model !== null && this.all().some(({ models }) => models?.has(model))
  }

  /** Whether catalogs are known and none of them lists the model: one account's answer then speaks for all. */
  isUnlisted(model: string | null): boolean {
    return isUnlisted(this.all(), model)
  }

  /** Whether further attempts of a request with these needs would only repeat what the requests before it met. */
  isUpstreamFailing(needs: SelectionNeeds): boolean {
    return this.#failing.size > 0 && isUpstreamFailing(this.all(), needs, this.#context())
  }

  /** The model was overloaded on one account after the other; for a minute one attempt a request is enough to see whether it still is. */
  noteOverload(model: string): void {
    const now = this.#deps.clock.now()
    for (const [name, until] of this.#overloaded) if (until <= now) this.#overloaded.delete(name)
    this.#overloaded.set(model, now + MINUTE_MS)
  }

  isOverloaded(model: string | null): boolean {
    return (this.#overloaded.get(model ?? '') ?? 0) > this.#deps.clock.now()
  }

  /** The accounts as people are shown them. */
  describe(): AccountView[] {
    return describeAccounts(this, { now: this.#deps.clock.now(), settings: this.#deps.settings() })
  }

  /** What would be chosen now and why, without choosing: the same function as `lease`. */
  explain(needs: SelectionNeeds): Selection {
    return select(this.all(), needs, this.#context())
  }

  /**
   * A slot on the account the policy chooses. A promise only while nothing but caps stands in the way: it waits in a
   * bounded queue. Throws the error of the failed selection, `account_stream_cap` after the wait, or the signal's reason.
   */
  lease(needs: Omit<SelectionNeeds, 'streamCap'>, signal: StopSignal): Lease | Promise<Lease> {
    return this.#choose(needs, signal) ?? this.#queued(needs, signal)
  }

  /** Null while only caps stand in the way. */
  #choose(needs: Omit<SelectionNeeds, 'streamCap'>, signal: StopSignal): Lease | null {
    if (signal.aborted) throw signal.reason
    const { clock, settings } = this.#deps
    const selection = this.explain({ ...needs, streamCap: settings().proxyAccountStreamLimit })
    if (selection.kind === 'none') throw selectionError(selection.failure, clock.now())
    return selection.kind === 'chosen' ? this.#grant(selection) : null
  }

  async #queued(needs: Omit<SelectionNeeds, 'streamCap'>, signal: StopSignal): Promise<Lease> {
    const { clock, settings } = this.#deps
    const deadline = clock.monotonic() + settings().capacityWaitSeconds * 1000
    for (;;) {
      const left = deadline - clock.monotonic()
      if (left <= 0 || this.#waiting.size >= settings().capacityQueueLimit)
        throw new AppError('account_stream_cap', { retryAfterSeconds: 5 })
      await this.#waiting.wait(left, signal)
      const lease = this.#choose(needs, signal)
      if (lease) return lease
    }
  }

  #grant(selection: Extract<Selection, { kind: 'chosen' }>): Lease {
    const account = this.#accounts.get(selection.id)! // select() answers with a candidate it was given
    account.inFlight++
    account.lastSelectedAt = this.#deps.clock.now()
    return new Lease(account, selection.considered, this)
  }

  /** Of a lease, once. */
  give(account: LiveAccount): void {
    account.inFlight--
    this.#waiting.call()
  }

  /** Changes the state of an account when the event does change it: in memory now, on disk right after. */
  apply(id: string, event: AccountEvent): void {
    const account = this.#accounts.get(id)
    if (!account) return
    const state = nextState(account.state, event)
    if (state === account.state) return
    this.#deps.log.info('account state changed', {
      account: id,
      from: account.state.status,
      to: state.status,
      why: state.cause ?? '',
    })
    account.state = state
    this.#writer.event(id, event)
  }

  /** In memory only: after a start the upstream says it again. */
  limitModel(id: string, model: string, event: AccountEvent): void {
    const account = this.#accounts.get(id)
    account?.limitedModels.set(model, nextState(limitOf(account, model, event.at) ?? ACTIVE, event))
  }

  /** In memory only, for an hour or until the account's next catalog. */
  rejectModel(id: string, model: string): void {
    const rejected = this.#accounts.get(id)?.rejectedModels
    if (!rejected) return
    rejected.delete(model) // the newest is last
    rejected.set(model, this.#deps.clock.now() + REJECTED_MODEL_MS)
    if (rejected.size > MAX_REJECTED_MODELS) rejected.delete(rejected.keys().next().value!) // it is not empty
  }

  health(id: string, event: HealthEvent): void {
    const account = this.#accounts.get(id)
    if (!account) return
    const { failing } = account.health
    account.health = nextHealth(account.health, event)
    if (event.kind === 'unserved') this.#failing.add(id)
    if (event.kind === 'success') this.#settleFailing(event.at, failing?.lostConnection != null)
  }

  /** One account served a request, so what the others failed with is theirs, unless that one had lost its connection too. */
  #settleFailing(at: number, isShared: boolean): void {
    const ids = [...this.#failing]
    this.#failing.clear()
    for (const id of ids) this.health(id, { kind: 'served_elsewhere', at, isShared })
  }

  /** Takes in what the upstream said of an account's usage, from a poll or in passing. */
  observe(id: string, snapshot: UsageSnapshot): void {
    const account = this.#accounts.get(id)
    if (!account) return
    const usage = mergeUsage(beforeNow(account.usage, this.#deps.clock.now()), snapshot)
    account.usage = usage
    this.#deps.saveUsage(id, usage)
    if (snapshot.additional && !snapshot.additional.some((quota) => isQuotaUsedUp(quota, snapshot.at)))
      account.limitedModels.clear()
    if (snapshot.planType && snapshot.planType !== account.planType) this.#changePlan(account, snapshot.planType)
    // Whether a limit holds depends on the credits, which not every report repeats.
    const judged = snapshot.limit ? { ...snapshot, credits: usage.credits } : snapshot
    this.apply(id, { kind: 'usage', at: snapshot.at, snapshot: judged })
    this.#observeHealth(account, snapshot.at)
  }

  #changePlan(account: LiveAccount, planType: string): void {
    this.#deps.log.info('account plan changed', { account: account.id, from: account.planType, to: planType })
    account.planType = planType
    this.#writer.plan(account.id, planType)
  }

  #observeHealth(account: LiveAccount, at: number): void {
    const windows = account.usage?.windows
    const fiveHourUsed = usedNow(windows?.fiveHour ?? null, at)
    const weeklyUsed = usedNow(windows?.weekly ?? windows?.monthly ?? null, at)
    account.health = nextHealth(account.health, { kind: 'observe', at, fiveHourUsed, weeklyUsed })
  }

  /** Ends blocks that are over and moves draining accounts on. Run at least once a check interval. */
  tick(): void {
    const at = this.#deps.clock.now()
    for (const account of this.all()) {
      // Set back: these would hold until it has caught up.
      if (at < this.#lastTickAt)
        Object.assign(account, UNTIMED, { limitedModels: new Map(), rejectedModels: new Map() })
      this.apply(account.id, { kind: 'tick', at })
      this.#observeHealth(account, at)
    }
    this.#lastTickAt = at
    this.#waiting.call()
  }

  /** Stores what is not stored yet; nothing is written after it. */
  stop(): void {
    this.#writer.stop()
  }

  #context(): PolicyContext {
    const settings = this.#deps.settings()
    return {
      strategy: settings.routingStrategy,
      now: this.#deps.clock.now(),
      random: this.#deps.random,
      singleAccountId: settings.singleAccountId,
      relativePower: settings.relativeAvailabilityPower,
      relativeTopK: settings.relativeAvailabilityTopK,
      paidCredits: settings.paidCredits,
      preferEarlierReset: settings.preferEarlierResetAccounts,
      inFlightPenaltyPercent: IN_FLIGHT_PENALTY_PERCENT,
    }
  }
}

/** One ahead of `now` is of a clock that was set back: older than every report to come. */
const beforeNow = (usage: UsageSnapshot | null, now: number): UsageSnapshot | null =>
  usage && usage.at > now ? { ...usage, at: 0 } : usage
