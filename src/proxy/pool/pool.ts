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
  mergeUsageAt,
  type UsageSnapshot,
  usedNow,
} from '../../model/accounts/usage-windows.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import type { Selection } from '../../model/log/skip-reasons.ts'
import type { Settings } from '../../settings/schema.ts'
import { describeAccounts, ORDINARY } from './describe.ts'
import { canServe, isForeground, isUnlisted, isUpstreamFailing, reservedUntil } from './eligibility.ts'
import {
  countRunning,
  fromRow,
  type Granted,
  Lease,
  type LiveAccount,
  newAccount,
  rejectModel,
  untimed,
} from './live-account.ts'
import { getLimit, type PolicyContext, toPolicy } from './policies.ts'
import { select } from './select.ts'
import { selectionError, uncountedStreams } from './selection-error.ts'
import { COSTS_NO_ALLOWANCE, type SelectionNeeds, type Surface } from './selection-needs.ts'
import { StateWriter } from './state-writer.ts'
import type { StreamSlots } from './stream-slots.ts'
import { WaitQueue } from './wait-queue.ts'

interface PoolDeps {
  db: Db
  clock: Clock
  log: Log
  random: () => number
  settings: () => Readonly<Settings>
  /** Slugs the account offers, null while unknown. */
  getModels: (accountId: string) => ReadonlySet<string> | null
  /** Stores a usage snapshot and its meter readings asynchronously; `running` as in `MeterReading`. */
  saveUsage: (accountId: string, snapshot: UsageSnapshot, running: number) => void
  whyNoRoute: PolicyContext['whyNoRoute']
  rates: () => PolicyContext['rates']
  /** Absent when only this process uses the accounts. */
  slots?: StreamSlots
}

/** How long an account counts as full after other processes had all of its slots. */
const FULL_ELSEWHERE_MS = 100
const REJECTED_MODEL_MS = HOUR_MS

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

  private constructor(deps: PoolDeps) {
    this.#deps = deps
    this.#writer = new StateWriter(deps)
    this.#waiting = new WaitQueue(deps.clock)
  }

  static async open(deps: PoolDeps): Promise<Pool> {
    const pool = new Pool(deps)
    await pool.reload(await getUsage(deps.db))
    const uses = await foregroundUses(deps.db, deps.clock.now() - JUST_USED_MS)
    for (const account of pool.all()) account.lastForegroundAt = uses.get(account.id) ?? 0
    return pool
  }

  /** Reloads the rows; live state (leases, health, newer usage, pending writes) is kept. */
  async reload(usage: ReadonlyMap<string, UsageSnapshot> = new Map()): Promise<void> {
    const { db } = this.#deps
    const [rows, tags] = await this.#writer.consistent(async () => [await listAccounts(db), await allTags(db)] as const)
    const next = new Map<string, LiveAccount>()
    for (const row of rows) {
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
    const chosen = this.#choose(needs, signal)
    return chosen instanceof Lease ? chosen : this.#leaseLater(chosen, needs, signal)
  }

  /** Null while only caps prevent a choice; an account that needs a slot of other processes. */
  #choose(needs: Omit<SelectionNeeds, 'streamCap'>, signal: AbortSignal): Lease | LiveAccount | null {
    if (signal.aborted) throw signal.reason
    const { clock, settings, slots } = this.#deps
    const streamCap = settings().proxyAccountStreamLimit
    const selection = this.explain({ ...needs, streamCap })
    if (selection.kind === 'none') throw selectionError(selection.failure, clock.now())
    if (selection.kind !== 'chosen') return null
    const account = this.#accounts.get(selection.id)! // always a candidate
    const needsSlot = !COSTS_NO_ALLOWANCE.has(needs.surface ?? 'turn') // the others may exceed the limit
    if (needsSlot && slots?.covers(account, streamCap) === false) return account
    return this.#grant(account, selection, isForeground(needs))
  }

  /** A slot of the account for this process. Otherwise it counts as full for a moment. */
  async #takeSlot(account: LiveAccount): Promise<boolean> {
    const { slots, settings, clock } = this.#deps
    const streamCap = settings().proxyAccountStreamLimit
    if (await slots?.take(account, streamCap)) return true
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
  async leaseAccount(
    id: string,
    needs: Pick<SelectionNeeds, 'scope' | 'keyOwnerId' | 'isOpportunistic'>,
  ): Promise<Lease | null> {
    for (;;) {
      const account = this.#leasable(id, needs)
      if (account === null) return null
      if (this.#deps.slots?.covers(account, this.#deps.settings().proxyAccountStreamLimit) !== false)
        return this.#grant(account, { considered: [], moveAvoidable: false }, isForeground(needs))
      if (!(await this.#takeSlot(account))) return null
    }
  }

  #leasable(id: string, needs: Pick<SelectionNeeds, 'scope' | 'keyOwnerId'>): LiveAccount | null {
    const account = this.#accounts.get(id)
    const { clock, settings } = this.#deps
    const limit = settings().proxyAccountStreamLimit
    if (!account || !isInScope(needs.scope, account) || !isInUse(account.state)) return null
    if (this.#deps.whyNoRoute(account.egressPoolId) !== null) return null
    if (reservedUntil(account, needs.keyOwnerId, clock.now()) !== undefined) return null
    if (limit > 0 && account.inFlight >= limit) return null
    return account
  }

  async #leaseLater(
    first: LiveAccount | null,
    needs: Omit<SelectionNeeds, 'streamCap'>,
    signal: AbortSignal,
  ): Promise<Lease> {
    const { clock, settings } = this.#deps
    const deadline = clock.monotonic() + settings().capacityWaitSeconds * 1000
    for (let chosen: Lease | LiveAccount | null = first; ; chosen = this.#choose(needs, signal)) {
      if (chosen instanceof Lease) return chosen
      const left = deadline - clock.monotonic()
      if (chosen) await this.#takeSlot(chosen)
      else if (left > 0 && this.#waiting.size < settings().capacityQueueLimit) await this.#waiting.wait(left, signal)
      else throw this.#getFullError(needs)
    }
  }

  #getFullError(needs: Omit<SelectionNeeds, 'streamCap'>): AppError {
    const { settings, slots } = this.#deps
    const streamCap = settings().proxyAccountStreamLimit
    const { considered } = this.explain({ ...needs, streamCap })
    const full = considered.flatMap(({ id, skipped }) => (skipped === 'at_cap' ? [this.#accounts.get(id)!] : []))
    const isUncounted = full.some(({ id, inFlight }) => inFlight < streamCap && slots?.hasFailed(id))
    return isUncounted ? uncountedStreams() : new AppError('account_stream_cap', { retryAfterSeconds: 5 })
  }

  #grant(account: LiveAccount, granted: Granted, isForegroundUse: boolean): Lease {
    account.inFlight++
    account.lastSelectedAt = this.#deps.clock.now()
    if (isForegroundUse) account.lastForegroundAt = account.lastSelectedAt
    return new Lease(account, granted, this)
  }

  /** A successor serves from now on; the streams that run here count towards its limits. */
  async handOver(): Promise<void> {
    await this.#deps.slots?.handOver(this.#all)
  }

  /** Called by a lease, once. */
  give(account: LiveAccount): void {
    account.inFlight--
    account.lastEndedAt = this.#deps.clock.now()
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
    const account = this.#accounts.get(id)
    if (account) rejectModel(account, model, this.#deps.clock.now() + REJECTED_MODEL_MS)
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
    const usage = mergeUsageAt(this.#deps.clock.now(), account.usage, snapshot)
    if (!isSameUsage(account.usage, usage)) this.revision++
    account.usage = usage
    this.#deps.saveUsage(id, usage, countRunning(account, this.#deps.clock.now()))
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
      if (at < this.#lastTickAt) Object.assign(account, untimed())
      this.apply(account.id, { kind: 'tick', at })
      this.#observeHealth(account, at)
    }
    this.#lastTickAt = at
    this.#waiting.call()
  }

  /** Writes pending states; nothing is written afterwards. */
  async stop(): Promise<void> {
    await this.#writer.stop()
    await this.#deps.slots?.stop()
  }

  #context(): PolicyContext {
    const { settings, clock, random, whyNoRoute, rates } = this.#deps
    return { ...toPolicy(settings()), now: clock.now(), random, whyNoRoute, rates: rates() }
  }
}
