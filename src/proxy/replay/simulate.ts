/**
 * Replays arrivals through the function that routes requests, with windows simulated from the capacities of the plans.
 * Pure: the same world and random give the same outcome.
 */
import { HEALTHY } from '../../model/accounts/account-health.ts'
import { ACTIVE, nextState } from '../../model/accounts/account-state.ts'
import type { UsageSnapshot } from '../../model/accounts/usage-windows.ts'
import type { KeyScope } from '../../model/keys/key-scope.ts'
import type { Considered, SkipReason } from '../../model/log/skip-reasons.ts'
import { checkEligibility } from '../pool/eligibility.ts'
import { isCacheKept } from '../pool/move-price.ts'
import type { Candidate, PolicyContext } from '../pool/policies.ts'
import { isAlwaysSticky } from '../pool/preference.ts'
import { select } from '../pool/select.ts'
import type { LastUse, SelectionNeeds } from '../pool/selection-needs.ts'
import { EndQueue } from './end-queue.ts'
import { type ReplayWindow, SimulatedWindow, type WindowTotal } from './simulated-window.ts'

/** What routing knows about an account apart from its live state. */
export type ReplayAccount = Pick<
  Candidate,
  | 'id'
  | 'planType'
  | 'routingPolicy'
  | 'securityWorkAuthorized'
  | 'maxUsedPercentPrimary'
  | 'maxUsedPercentSecondary'
  | 'exemptOwnerId'
  | 'tags'
  | 'position'
  | 'models'
> & { fiveHour: ReplayWindow | null; long: ({ length: 'weekly' | 'monthly' } & ReplayWindow) | null }

export interface ReplayKey {
  scope: KeyScope
  ownerUserId: string | null
  isOpportunistic: boolean
}

export interface Arrival {
  /** ms since epoch, ascending. */
  at: number
  durationMs: number
  /** Counted from 0; null: it names none. */
  conversation: number | null
  model: string | null
  key: ReplayKey | null
  /** Credits of the five-hour window, and of the weekly or monthly one. */
  short: number
  long: number
  /** Absent or null: nothing of it was cached. */
  cached?: CachedUse | null
}

interface CachedUse {
  tokens: number
  /** Units of the request (`model/log/request-units.ts`), and of its cached tokens without the cache. */
  units: number
  moveUnits: number
  /** Units that it uses in addition when its conversation has moved. */
  extraUnits: number
}

export interface ReplayWorld {
  accounts: readonly ReplayAccount[]
  arrivals: readonly Arrival[]
  /** ms since epoch; the windows run until `to`. */
  from: number
  to: number
  /** Replays know no outbound proxies: a route is never down. */
  policy: Omit<PolicyContext, 'now' | 'random' | 'whyNoRoute'>
  /** A conversation returns to its account for this long. */
  affinityMs: number
  /** For comparison: conversations leave a nearly used up account whatever the move costs. */
  ignoresPrices?: boolean
  /** Five-hour windows started without a request, in order of time. */
  starts?: readonly { accountId: string; at: number }[]
}

export interface Outcome {
  served: number
  rejected: number
  /** Requests whose conversation left its account, and the cached tokens that were lost. */
  moves: number
  movedTokens: number
  /** Long windows that were reset: their credits, and those not used by then. */
  long: WindowTotal
  /** The same for five-hour windows. */
  fiveHour: WindowTotal
}

interface Watch {
  random: () => number
  /** After each arrival; `accountId` null: it was rejected. */
  onArrival?: (arrival: Arrival, accountId: string | null) => void
}

/** Runs the whole world. */
export const simulate = (world: ReplayWorld, { random, onArrival }: Watch): Outcome => {
  const replay = new Replay(world, random)
  for (const arrival of world.arrivals) {
    const accountId = replay.arrive(arrival)
    onArrival?.(arrival, accountId)
  }
  return replay.end()
}

export class Replay {
  readonly outcome: Outcome = {
    served: 0,
    rejected: 0,
    moves: 0,
    movedTokens: 0,
    long: { credits: 0, unused: 0 },
    fiveHour: { credits: 0, unused: 0 },
  }
  readonly #world: ReplayWorld
  readonly #accounts: SimulatedAccount[]
  readonly #byId: ReadonlyMap<string, SimulatedAccount>
  readonly #ctx: PolicyContext
  readonly #running = new EndQueue<SimulatedAccount>()
  /** By conversation. */
  readonly #owners: { account: SimulatedAccount; usedAt: number; cached: CachedUse | null; cachedAt: number }[] = []
  /** Until when requests of a key for a model would only be rejected again (ms since epoch). */
  readonly #closed = new Map<ReplayKey | null, Map<string | null, number>>()
  #starts = 0

  readonly #looksAtAll: boolean

  /** `looksAtAll`: for tests, selection always gets all accounts. */
  constructor(world: ReplayWorld, random: () => number, { looksAtAll = false } = {}) {
    this.#world = world
    this.#looksAtAll = looksAtAll
    this.#ctx = { ...world.policy, now: world.from, random, whyNoRoute: () => null }
    this.#accounts = world.accounts.map((account) => new SimulatedAccount(account, this.#ctx, this.outcome))
    this.#byId = new Map(this.#accounts.map((account) => [account.id, account]))
  }

  /** Serves the arrival. Returns the account, or null when it is rejected. */
  arrive(arrival: Arrival): string | null {
    this.#advance(arrival.at)
    const account = this.#serve(arrival)
    if (!account) {
      this.outcome.rejected++
      return null
    }
    this.outcome.served++
    account.inFlight++
    account.lastSelectedAt = arrival.at
    if (!arrival.key?.isOpportunistic) account.lastForegroundAt = arrival.at
    this.#running.push(arrival.at + arrival.durationMs, account)
    if (arrival.conversation !== null) this.#remember(arrival.conversation, account, arrival)
    return account.id
  }

  end(): Outcome {
    this.#advance(this.#world.to)
    for (const account of this.#accounts) account.roll(this.#world.to)
    return this.outcome
  }

  /** Credits that the accounts can serve at `at`: those left in both windows. */
  creditsLeft(at: number): number {
    this.#advance(at)
    return this.#accounts.reduce((sum, account) => sum + account.creditsLeft(at), 0)
  }

  #advance(at: number): void {
    const { starts = [] } = this.#world
    for (let next = starts[this.#starts]; next && next.at <= at; next = starts[++this.#starts])
      this.#byId.get(next.accountId)?.start(next.at)
    for (let ended = this.#running.endedBy(at); ended; ended = this.#running.endedBy(at)) ended.inFlight--
    this.#ctx.now = at
  }

  /** Tries accounts as the product does until one has room for the request. */
  #serve(arrival: Arrival): SimulatedAccount | null {
    const { key, model, at } = arrival
    if (!this.#looksAtAll && (this.#closed.get(key)?.get(model) ?? 0) > at) return null
    let tried = NONE_TRIED
    for (;;) {
      const choice = this.#choose(this.#needs(arrival, tried))
      if ('closedUntil' in choice) {
        this.#closed.getOrInsertComputed(key, () => new Map()).set(model, choice.closedUntil)
        return null
      }
      if (choice.account.charge(choice.moved ? this.#withoutCache(arrival) : arrival)) {
        if (choice.moved) this.outcome.moves++
        if (choice.moved) this.outcome.movedTokens += arrival.cached?.tokens ?? 0
        return choice.account
      }
      tried = new Set([...tried, choice.account.id])
    }
  }

  /** As `pool/affinity.ts` does. */
  #remember(conversation: number, account: SimulatedAccount, { at, cached = null }: Arrival): void {
    const last = this.#owners[conversation]
    const before = last?.account === account && last.cached ? { ...last.cached, cachedAt: last.cachedAt } : null
    const isKept = before && isCacheKept(before, { moveUnits: cached?.moveUnits ?? 0, now: at })
    this.#owners[conversation] = {
      account,
      usedAt: at,
      cached: isKept ? last!.cached : cached, // `before` is from it
      cachedAt: isKept ? before.cachedAt : at,
    }
  }

  #lastUse(accountId: string, cached: CachedUse | null): LastUse | null {
    if (!cached || this.#world.ignoresPrices) return null
    return { accountId, units: cached.units, moveUnits: cached.moveUnits, cachedTokens: cached.tokens }
  }

  #withoutCache(arrival: Arrival): Arrival {
    if (!arrival.cached) return arrival
    const { rates } = this.#ctx
    const { extraUnits } = arrival.cached
    return { ...arrival, short: arrival.short + extraUnits * rates.short, long: arrival.long + extraUnits * rates.long }
  }

  #needs({ at, conversation, model, key }: Arrival, tried: ReadonlySet<string>): SelectionNeeds {
    const last = conversation === null ? undefined : this.#owners[conversation]
    const isKept = last !== undefined && at - last.usedAt <= this.#world.affinityMs
    return {
      model,
      tried,
      scope: key?.scope ?? null,
      owner: isKept ? { id: last.account.id, hard: false, lastUse: this.#lastUse(last.account.id, last.cached) } : null,
      restricted: false,
      isOpportunistic: key?.isOpportunistic ?? false,
      keyOwnerId: key?.ownerUserId ?? null,
      streamCap: 0, // waiting for a free stream is not simulated
    }
  }

  /** An available owner that keeps its conversation anyway is what `select` chooses; the other accounts need no look. */
  #choose(needs: SelectionNeeds): { account: SimulatedAccount; moved: boolean } | { closedUntil: number } {
    const isAlone = needs.owner && !needs.isOpportunistic && !this.#looksAtAll
    const kept = needs.owner && isAlone ? this.#byId.get(needs.owner.id) : undefined
    const ctx = this.#ctx
    if (kept && isAlwaysSticky(kept, ctx) && checkEligibility(kept, needs, ctx, 'listed').skipped === null)
      return { account: kept, moved: false }
    for (const account of this.#accounts) account.tick(ctx.now)
    const selection = select(this.#accounts, needs, ctx)
    if (selection.kind !== 'chosen') {
      const isListed = this.#accounts.some(({ models }) => models?.has(needs.model ?? ''))
      return { closedUntil: earliestEnd(selection.considered, isListed) }
    }
    return { account: this.#byId.get(selection.id)!, moved: selection.moved } // a candidate
  }
}

/** When the first of the reasons may end (ms); 0: that is not known. Accounts serve nothing until then. */
const earliestEnd = (considered: readonly Considered[], isListed: boolean): number => {
  // Without a catalog that lists the model, it is also the reason of blocked accounts.
  const isLasting = (skipped: SkipReason | null) =>
    skipped === 'out_of_scope' || skipped === 'policy_class' || (isListed && skipped === 'model_not_supported')
  return Math.min(
    ...considered.map(({ skipped, until }) => (isLasting(skipped) ? Number.POSITIVE_INFINITY : (until ?? 0))),
  )
}

class SimulatedAccount implements Candidate {
  readonly id
  readonly planType
  readonly routingPolicy
  readonly securityWorkAuthorized
  readonly maxUsedPercentPrimary
  readonly maxUsedPercentSecondary
  readonly exemptOwnerId
  readonly tags
  readonly position
  readonly models
  readonly health = HEALTHY
  readonly limitedModels: Candidate['limitedModels'] = NONE
  readonly rejectedModels: Candidate['rejectedModels'] = NONE
  readonly missingRoutes: Candidate['missingRoutes'] = NONE
  readonly egressPoolId = null
  readonly usage: UsageSnapshot
  state = ACTIVE
  inFlight = 0
  lastSelectedAt = 0
  lastForegroundAt = 0
  readonly #fiveHour: SimulatedWindow | null
  readonly #long: SimulatedWindow | null

  constructor(account: ReplayAccount, ctx: PolicyContext, outcome: Outcome) {
    this.id = account.id
    this.planType = account.planType
    this.routingPolicy = account.routingPolicy
    this.securityWorkAuthorized = account.securityWorkAuthorized
    this.maxUsedPercentPrimary = account.maxUsedPercentPrimary
    this.maxUsedPercentSecondary = account.maxUsedPercentSecondary
    this.exemptOwnerId = account.exemptOwnerId
    this.tags = account.tags
    this.position = account.position
    this.models = account.models
    const { fiveHour, long } = account
    this.#fiveHour = fiveHour && new SimulatedWindow(fiveHour, fiveHour.resetAt, outcome.fiveHour)
    this.#long = long && new SimulatedWindow(long, long.resetAt ?? ctx.now + long.lengthMs, outcome.long)
    const longView = this.#long?.view ?? null
    this.usage = {
      get at() {
        return ctx.now // simulated figures are always fresh
      },
      windows: {
        fiveHour: this.#fiveHour?.view ?? null,
        weekly: long?.length === 'weekly' ? longView : null,
        monthly: long?.length === 'monthly' ? longView : null,
      },
      credits: null,
      planType: account.planType,
    }
  }

  /** Uses the credits. False when a window lacks them: the account is then blocked until its reset, as by ChatGPT. */
  charge({ at, short, long }: Arrival): boolean {
    this.roll(at)
    const full = [
      this.#fiveHour?.hasRoom(short) === false ? this.#fiveHour : null,
      this.#long?.hasRoom(long) === false ? this.#long : null,
    ].filter((window) => window !== null)
    this.#fiveHour?.open(at)
    if (full.length === 0) {
      this.#fiveHour?.use(short)
      this.#long?.use(long)
      return true
    }
    for (const window of full) window.view.usedPercent = 100
    const resetAt = Math.max(...full.map(({ view }) => view.resetAt ?? at))
    this.state = nextState(this.state, { kind: 'rate_limited', at, evidence: '', resetAt, retryAfterMs: null })
    return false
  }

  /** Ends a block, as the timer of the product does. */
  tick(at: number): void {
    if (this.state !== ACTIVE && (this.state.until ?? 0) <= at) this.state = ACTIVE
  }

  /** Starts the five-hour window, if it has not started. */
  start(at: number): void {
    this.roll(at)
    this.#fiveHour?.open(at)
  }

  creditsLeft(at: number): number {
    this.roll(at)
    return Math.min(this.#fiveHour?.left ?? Number.MAX_VALUE, this.#long?.left ?? Number.MAX_VALUE)
  }

  roll(at: number): void {
    this.#fiveHour?.closeAt(at)
    this.#long?.repeatUntil(at)
  }
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>()
const NONE_TRIED: ReadonlySet<string> = new Set()
