/** The pool: chooses among the live accounts, records what happens to each, and grants the lease that a turn holds. */
import type { Db } from '../../../db/commit.ts'
import { AppError } from '../../errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/durations.ts'
import type { Log } from '../../lib/log.ts'
import { type HealthEvent, nextHealth } from '../../model/accounts/account-health.ts'
import { ACTIVE, type AccountEvent, isInUse, nextState } from '../../model/accounts/account-state.ts'
import { allTags } from '../../model/accounts/account-tags.ts'
import type { AccountView } from '../../model/accounts/account-view.ts'
import { getUsage, listAccounts } from '../../model/accounts/accounts.ts'
import { foregroundUses } from '../../model/accounts/foreground-uses.ts'
import { JUST_USED_MS } from '../../model/accounts/preserve-floors.ts'
import {
  isQuotaUsedUp,
  isSameUsage,
  mergeUsage,
  type UsageSnapshot,
  usedNow,
} from '../../model/accounts/usage-windows.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import type { Considered, Selection } from '../../model/log/skip-reasons.ts'
import type { Settings } from '../../settings/schema.ts'
import { reservedUntil } from './caps.ts'
import { describeAccounts, ORDINARY } from './describe.ts'
import { canServe, isForeground, isUnlisted, isUpstreamFailing } from './eligibility.ts'
import { fromRow, type LiveAccount, newAccount, UNTIMED } from './live-account.ts'
import { getLimit, IN_FLIGHT_PENALTY_PERCENT, type PolicyContext } from './policies.ts'
import { select } from './select.ts'
import { selectionError } from './selection-error.ts'
import type { SelectionNeeds, Surface } from './selection-needs.ts'
import { StateWriter } from './state-writer.ts'
import type { StreamSlots } from './stream-slots.ts'
import { WaitQueue } from './wait-queue.ts'

export class Lease {
  readonly account: LiveAccount
  readonly considered: readonly Considered[]
  #pool: Pick<Pool, 'give'> | null

  constructor(account: LiveAccount, considered: readonly Considered[], pool: Pick<Pool, 'give'>) {
    this.account = account
    this.considered = considered
    this.#pool = pool
  }

  /** Releases the slot; repeated calls do nothing. */
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
  /** Slugs the account offers, null while unknown. */
  getModels: (accountId: string) => ReadonlySet<string> | null
  /** Stores a usage snapshot asynchronously. */
  saveUsage: (accountId: string, snapshot: UsageSnapshot) => void
  whyNoRoute: PolicyContext['whyNoRoute']
  /** Absent when only this process uses the accounts. */
  slots?: StreamSlots
}

/** How long an account counts as full after other processes had all of its slots. */
const FULL_ELSEWHERE_MS = 100
const REJECTED_MODEL_MS = HOUR_MS
/** Clients can send made-up names, so the number is limited; the oldest are dropped. */
const MAX_REJECTED_MODELS = 100

export class Pool {
  readonly #deps: PoolDeps
  readonly #writer: StateWriter
  #accounts = new Map<string, LiveAccount>()
  /** The same as a list, for selection. */
  #all: readonly LiveAccount[] = []
  /** Turns waiting for a slot. */
  readonly #waiting: WaitQueue
  /** Overloaded model → until when that is remembered (ms). */
  readonly #overloaded = new Map<string, number>()
  /** Accounts whose health may have `failing` set. */
  readonly #failing = new Set<string>()
  /** ms since epoch */
  #lastTickAt = 0
  /** Increases when an account or the figures clients see of it change. */
  revision = 0

  constructor(deps: PoolDeps) {
    this.#deps = deps
    this.#writer = new StateWriter(deps)
    this.#waiting = new WaitQueue(deps.clock)
    this.reload(getUsage(deps.db))
    const uses = foregroundUses(deps.db, deps.clock.now() - JUST_USED_MS)
    for (const account of this.#all) account.lastForegroundAt = uses.get(account.id) ?? 0
  }

  /** Reloads the rows; live state (leases, health, newer usage, pending writes) is kept. */
  reload(usage: ReadonlyMap<string, UsageSnapshot> = new Map()): void {
    const next = new Map<string, LiveAccount>()
    const tags = allTags(this.#deps.db)
    for (const row of listAccounts(this.#deps.db)) {
      const seen = { ...fromRow(row, tags.get(row.id) ?? []), ...this.#writer.present(row) }
      const live = this.#accounts.get(row.id) ?? newAccount(row.id, { seen, usage: usage.get(row.id) ?? null })
      const models = this.#deps.getModels(row.id)
      if (models !== live.models) live.rejectedModels.clear() // a newer catalog replaces earlier rejections
      next.set(row.id, Object.assign(live, seen, { models }))
    }
    this.#accounts = next
    this.#all = [...next.values()]
    this.revision++
    this.#waiting.call()
  }

  get(id: string): LiveAccount | null {
    return this.#accounts.get(id) ?? null
  }

  /** Whether connections may stay signed in to the account: it is neither deleted nor disabled. */
  isInUse(id: string): boolean {
    const state = this.#accounts.get(id)?.state
    return state !== undefined && isInUse(state)
  }

  /** In order of creation; a new list after each `reload`. */
  all(): readonly LiveAccount[] {
    return this.#all
  }

  byTag(tag: string): LiveAccount | null {
    return this.all().find((account) => account.tag === tag) ?? null
  }

  /** Whether any account's catalog lists the model. */
  offers(model: string | null): boolean {
    return model !== null && this.all().some(({ models }) => models?.has(model))
  }

  /** Whether catalogs are known and none lists the model, so that trying one account is enough. */
  isUnlisted(model: string | null): boolean {
    return isUnlisted(this.all(), model)
  }

  /** Whether more attempts for these needs would only repeat the failures of earlier requests. */
  isUpstreamFailing(needs: SelectionNeeds): boolean {
    return this.#failing.size > 0 && isUpstreamFailing(this.all(), needs, this.#context())
  }

  /** Remembers for a minute that the model is overloaded on several accounts, so that each request makes one attempt only. */
  noteOverload(model: string): void {
    const now = this.#deps.clock.now()
    for (const [name, until] of this.#overloaded) if (until <= now) this.#overloaded.delete(name)
    this.#overloaded.set(model, now + MINUTE_MS)
  }

  isOverloaded(model: string | null): boolean {
    return (this.#overloaded.get(model ?? '') ?? 0) > this.#deps.clock.now()
  }

  /** The accounts as shown in the dashboard. */
  describe(): AccountView[] {
    return describeAccounts(this, { now: this.#deps.clock.now(), settings: this.#deps.settings() })
  }

  /** Whether an account has quota for an ordinary request of such a key. */
  canServe(key: Pick<SelectionNeeds, 'scope' | 'keyOwnerId'>): boolean {
    return canServe(this.all(), { ...ORDINARY, ...key, streamCap: 0 }, this.#context())
  }

  /** What would be chosen now and why. Uses the same function as `lease`, without leasing. */
  explain(needs: SelectionNeeds): Selection {
    return select(this.all(), needs, this.#context())
  }

  /**
   * A slot on the account the policy chooses. A promise if only caps prevent it: the turn then waits in a bounded
   * queue. Throws the error of the failed selection, `account_stream_cap` after the wait, or the signal's reason.
   */
  lease(needs: Omit<SelectionNeeds, 'streamCap'>, signal: AbortSignal): Lease | Promise<Lease> {
    return this.#choose(needs, signal) ?? this.#queued(needs, signal)
  }

  /** Null while only caps prevent a choice. */
  #choose(needs: Omit<SelectionNeeds, 'streamCap'>, signal: AbortSignal): Lease | null {
    if (signal.aborted) throw signal.reason
    const { clock, settings } = this.#deps
    for (;;) {
      const selection = this.explain({ ...needs, streamCap: settings().proxyAccountStreamLimit })
      if (selection.kind === 'none') throw selectionError(selection.failure, clock.now())
      if (selection.kind !== 'chosen') return null
      const account = this.#accounts.get(selection.id)! // always a candidate
      if (this.#hasSlot(account)) return this.#grant(account, selection.considered, isForeground(needs))
    }
  }

  /** Otherwise the account counts as full for a moment. */
  #hasSlot(account: LiveAccount): boolean {
    const { slots, settings, clock } = this.#deps
    if (!slots || slots.cover(account, settings().proxyAccountStreamLimit)) return true
    account.isFullElsewhere = true
    clock.after(FULL_ELSEWHERE_MS, () => {
      account.isFullElsewhere = false
      this.#waiting.call()
    })
    return false
  }

  /**
   * A slot on this account, also when ChatGPT has reported that its quota is used up. Null if it is out of scope, not in
   * use, reserved, without a route, or at its limit of streams.
   */
  leaseAccount(id: string, needs: Pick<SelectionNeeds, 'scope' | 'keyOwnerId' | 'isOpportunistic'>): Lease | null {
    const account = this.#accounts.get(id)
    const { clock, settings } = this.#deps
    const limit = settings().proxyAccountStreamLimit
    if (!account || !isInScope(needs.scope, account) || !isInUse(account.state)) return null
    if (this.#deps.whyNoRoute(account.egressPoolId) !== null) return null
    if (reservedUntil(account, needs.keyOwnerId, clock.now()) !== undefined) return null
    if (limit > 0 && account.inFlight >= limit) return null
    return this.#hasSlot(account) ? this.#grant(account, [], isForeground(needs)) : null
  }

  async #queued(needs: Omit<SelectionNeeds, 'streamCap'>, signal: AbortSignal): Promise<Lease> {
    const { clock, settings } = this.#deps
    const deadline = clock.monotonic() + settings().capacityWaitSeconds * 1000
    for (;;) {
      const left = deadline - clock.monotonic()
      if (left <= 0 || this.#waiting.size >= settings().capacityQueueLimit)
        throw new AppError(this.#deps.slots?.isBusy ? 'busy' : 'account_stream_cap', { retryAfterSeconds: 5 })
      await this.#waiting.wait(left, signal)
      const lease = this.#choose(needs, signal)
      if (lease) return lease
    }
  }

  #grant(account: LiveAccount, considered: readonly Considered[], isForegroundUse: boolean): Lease {
    account.inFlight++
    account.lastSelectedAt = this.#deps.clock.now()
    if (isForegroundUse) account.lastForegroundAt = account.lastSelectedAt
    return new Lease(account, considered, this)
  }

  /** A successor serves from now on; the streams that run here count towards its limits. */
  handOver(): void {
    this.#deps.slots?.handOver(this.#all)
  }

  /** Called by a lease, once. */
  give(account: LiveAccount): void {
    account.inFlight--
    account.isFullElsewhere = false
    this.#deps.slots?.noteEnd(() => this.#all)
    this.#waiting.call()
  }

  /** Applies an event to an account's state: in memory immediately, on disk soon after. */
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
    this.revision++
    this.#writer.event(id, event)
  }

  /** In memory only: after a restart the upstream reports it again. */
  limitModel(id: string, model: string, event: AccountEvent): void {
    const account = this.#accounts.get(id)
    account?.limitedModels.set(model, nextState(getLimit(account, model, event.at) ?? ACTIVE, event))
  }

  /** In memory only, for an hour or until the account's next catalog. */
  rejectModel(id: string, model: string): void {
    const rejected = this.#accounts.get(id)?.rejectedModels
    if (!rejected) return
    rejected.delete(model) // the newest is last
    rejected.set(model, this.#deps.clock.now() + REJECTED_MODEL_MS)
    if (rejected.size > MAX_REJECTED_MODELS) rejected.delete(rejected.keys().next().value!) // it is not empty
  }

  /** The account does not have the route of this surface. In memory only, for an hour. */
  rejectRoute(id: string, surface: Surface): void {
    this.#accounts.get(id)?.missingRoutes.set(surface, this.#deps.clock.now() + REJECTED_MODEL_MS)
  }

  health(id: string, event: HealthEvent): void {
    const account = this.#accounts.get(id)
    if (!account) return
    const { failing } = account.health
    account.health = nextHealth(account.health, event)
    if (event.kind === 'unserved') this.#failing.add(id)
    if (event.kind === 'success') this.#settleFailing(event.at, failing?.lostConnection != null)
  }

  /**
   * After an account has served a request, earlier failures count against the accounts they happened on, unless this
   * account had lost its connection too.
   */
  #settleFailing(at: number, isShared: boolean): void {
    const ids = [...this.#failing]
    this.#failing.clear()
    for (const id of ids) this.health(id, { kind: 'served_elsewhere', at, isShared })
  }

  /** Records the usage an upstream reported, by poll or in a response. */
  observe(id: string, snapshot: UsageSnapshot): void {
    const account = this.#accounts.get(id)
    if (!account) return
    const usage = mergeUsage(beforeNow(account.usage, this.#deps.clock.now()), snapshot)
    if (!isSameUsage(account.usage, usage)) this.revision++
    account.usage = usage
    this.#deps.saveUsage(id, usage)
    if (snapshot.additional && !snapshot.additional.some((quota) => isQuotaUsedUp(quota, snapshot.at)))
      account.limitedModels.clear()
    if (snapshot.planType && snapshot.planType !== account.planType) this.#changePlan(account, snapshot.planType)
    // Whether a limit applies depends on credits, which not every report includes.
    const judged = snapshot.limit ? { ...snapshot, credits: usage.credits } : snapshot
    this.apply(id, { kind: 'usage', at: snapshot.at, snapshot: judged })
    this.#observeHealth(account, snapshot.at)
  }

  /** Usage that another process has stored. */
  learnUsage(usage: ReadonlyMap<string, UsageSnapshot>): void {
    for (const [id, snapshot] of usage) {
      const account = this.#accounts.get(id)
      if (!account || snapshot.at <= (account.usage?.at ?? 0)) continue
      if (!isSameUsage(account.usage, snapshot)) this.revision++
      account.usage = snapshot
    }
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

  /** Ends expired blocks and advances draining accounts. Call at least once per check interval. */
  tick(): void {
    const at = this.#deps.clock.now()
    for (const account of this.all()) {
      // The clock was set back: these times would last until it catches up.
      if (at < this.#lastTickAt)
        Object.assign(account, UNTIMED, {
          limitedModels: new Map(),
          rejectedModels: new Map(),
          missingRoutes: new Map(),
        })
      this.apply(account.id, { kind: 'tick', at })
      this.#observeHealth(account, at)
    }
    this.#lastTickAt = at
    this.#waiting.call()
  }

  /** Writes pending states; nothing is written afterwards. */
  stop(): void {
    this.#writer.stop()
    this.#deps.slots?.stop()
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
      whyNoRoute: this.#deps.whyNoRoute,
      preferEarlierReset: settings.preferEarlierResetAccounts,
      inFlightPenaltyPercent: IN_FLIGHT_PENALTY_PERCENT,
    }
  }
}

/** A snapshot newer than `now` dates from before the clock was set back, so it counts as older than any new report. */
const beforeNow = (usage: UsageSnapshot | null, now: number): UsageSnapshot | null =>
  usage && usage.at > now ? { ...usage, at: 0 } : usage
