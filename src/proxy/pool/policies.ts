/**
 * The selection strategies: pure orderings of available accounts by what is left, what is in flight, and seeded
 * randomness.
 */
import type { RoutingPolicy } from '../../../db/schema/accounts.ts'
import { DAY_MS } from '../../lib/durations.ts'
import type { Health } from '../../model/accounts/account-health.ts'
import { byPosition } from '../../model/accounts/account-order.ts'
import { type AccountState, isBlocked, nextState } from '../../model/accounts/account-state.ts'
import {
  capacityCredits,
  isExhausted,
  nextReset,
  type UsageSnapshot,
  type UsageWindow,
  usedNow,
} from '../../model/accounts/usage-windows.ts'
import type { EgressReason } from '../../model/egress/route.ts'
import type { CreditRates } from '../../model/log/request-units.ts'
import type { Settings } from '../../settings/schema.ts'

export type { RoutingPolicy }
export type Strategy = Settings['routingStrategy']

export interface Candidate {
  id: string
  planType: string
  routingPolicy: RoutingPolicy
  state: AccountState
  health: Health
  usage: UsageSnapshot | null
  /** Turns running on the account. */
  inFlight: number
  /** Other processes use up its limit of parallel streams. */
  isFullElsewhere?: boolean
  /** ms since epoch, 0 if never */
  lastSelectedAt: number
  /** When a foreground request last used it; ms since epoch, 0 if never. */
  lastForegroundAt: number
  securityWorkAuthorized: boolean
  /** Percent used of the 5-hour window from which the account is skipped; null: no cap. */
  maxUsedPercentPrimary: number | null
  /** The same for the weekly or monthly window. */
  maxUsedPercentSecondary: number | null
  /** Keys of this user are exempt from the caps; null: no key is. */
  exemptOwnerId: string | null
  tags: readonly string[]
  /** The pool of outbound proxies; null: as the settings say. */
  egressPoolId: string | null
  /** Place in the order of `fill_first` and `sequential_drain`; null: after those that have one. */
  position: number | null
  /** Model slugs the account offers; null while its catalog is unknown, which excludes none. */
  models: ReadonlySet<string> | null
  /** Models whose own allowance was used up → the block, which may have ended. */
  limitedModels: ReadonlyMap<string, AccountState>
  /** Models the upstream rejected for this account → until when that is remembered (ms). */
  rejectedModels: ReadonlyMap<string, number>
  /** Surfaces whose route the account does not have → until when that is remembered (ms). */
  missingRoutes: ReadonlyMap<string, number>
}

/** The account's block for `model` alone; null when its allowance is not known to be used up. */
export const getLimit = ({ limitedModels }: Candidate, model: string | null, now: number): AccountState | null => {
  const last = limitedModels.get(model ?? '')
  const state = last && nextState(last, { kind: 'tick', at: now })
  return state && isBlocked(state) ? state : null
}

export interface PolicyContext {
  strategy: Strategy
  /** ms since epoch */
  now: number
  /** in [0,1) */
  random: () => number
  singleAccountId: string | null
  /** relative_availability: how strongly better accounts are favoured. */
  relativePower: number
  /** relative_availability: how many accounts share the traffic. */
  relativeTopK: number
  /** Why accounts with this pool of outbound proxies are skipped, and until when (ms); null: they have a route. */
  whyNoRoute: (egressPoolId: string | null) => { reason: EgressReason; until: number | null } | null
  /** Spend allowances that reset sooner first, by whole days. */
  preferEarlierReset: boolean
  /** When accounts whose included quota is used up may use paid credits. */
  paidCredits: Settings['paidCredits']
  /** Percent of an account's allowance counted for each running turn. */
  inFlightPenaltyPercent: number
  /** What requests use of the windows. */
  rates: Pick<CreditRates, 'short' | 'long'>
}

/** Percent of an allowance counted per running turn. */
const IN_FLIGHT_PENALTY_PERCENT = 2.5

/** What the settings decide. */
export const toPolicy = (
  settings: Readonly<Settings>,
): Omit<PolicyContext, 'now' | 'random' | 'whyNoRoute' | 'rates'> => ({
  strategy: settings.routingStrategy,
  singleAccountId: settings.singleAccountId,
  relativePower: settings.relativeAvailabilityPower,
  relativeTopK: settings.relativeAvailabilityTopK,
  preferEarlierReset: settings.preferEarlierResetAccounts,
  paidCredits: settings.paidCredits,
  inFlightPenaltyPercent: IN_FLIGHT_PENALTY_PERCENT,
})

export interface Ranked {
  id: string
  /** In the strategy's own unit: credits, percent, ms or days. Comparable within one ranking only. */
  score: number
  /** Whole days until the allowance resets, when earlier resets come first whatever the score; null: not used, or unknown. */
  resetDays: number | null
}

/**
 * Orders `candidates` best first; the first is chosen. Accounts known to be used up come last. Only `single_account`
 * with a configured account leaves others out.
 */
export const rank = (candidates: readonly Candidate[], ctx: PolicyContext): readonly Ranked[] =>
  candidates.length === 0 ? [] : ORDERINGS[ctx.strategy](measureAll(candidates, ctx), ctx)

/** Strategies that sort by `bucket` first. */
const BY_RESET: readonly Strategy[] = ['capacity_weighted', 'usage_weighted', 'fill_first']

/** Strategies to which health tiers, routing policies and budget thresholds do not apply. */
export const bypassesTiers = (strategy: Strategy): boolean =>
  strategy === 'single_account' || strategy === 'sequential_drain' || strategy === 'reset_drain'

interface Measured extends Ranked {
  /**
   * Percent used as reported; the long window is the weekly or monthly one. A missing window equals the other one, and
   * an account without any gets the average of the others: unknown is not unused.
   */
  shortUsed: number
  longUsed: number
  isUnknown: boolean
  /** The same plus running turns, in percent. */
  shortPressure: number
  longPressure: number
  /** Credits of the long window: in total, and left after pressure. */
  capacity: number
  remaining: number
  longResetAt: number | null
  lastSelectedAt: number
  inFlight: number
  position: number | null
  isSpent: boolean
  /** Whole days until the reset if earlier resets are preferred, otherwise 0. */
  bucket: number
  /** Key of the weighted draw, smaller first. */
  draw: number
}

type Ordering = (measured: Measured[], ctx: PolicyContext) => Measured[]

const UNKNOWN_RESET_DAYS = 10_000
const UNKNOWN_RESET_SECONDS = 7 * 86_400
const MIN_RESET_SECONDS = 300
const MIN_RELATIVE_WEIGHT = 0.1

const measureAll = (candidates: readonly Candidate[], ctx: PolicyContext): Measured[] => {
  const reports = candidates.map(({ usage }) => reportedUse(usage, ctx.now))
  const known = reports.filter((report) => report !== null)
  const average = (of: (report: ReportedUse) => number) =>
    known.reduce((sum, report) => sum + of(report), 0) / Math.max(1, known.length)
  const typical =
    known.length === reports.length ? NOTHING_USED : { short: average((r) => r.short), long: average((r) => r.long) }
  return candidates.map((candidate, i) => measure(candidate, { ctx, report: reports[i] ?? null, typical }))
}

interface ReportedUse {
  short: number
  long: number
}

const NOTHING_USED: ReportedUse = { short: 0, long: 0 }

/** Null: no window was reported. */
const reportedUse = (usage: UsageSnapshot | null, now: number): ReportedUse | null => {
  const short = usedNow(usage?.windows.fiveHour ?? null, now)
  const long = usedNow(longWindow(usage), now)
  const either = long ?? short
  return either === null ? null : { short: short ?? either, long: either }
}

/** The weekly window, or the monthly one of plans without it. */
export const longWindow = (usage: UsageSnapshot | null): UsageWindow | null =>
  usage?.windows.weekly ?? usage?.windows.monthly ?? null

const measure = (
  candidate: Candidate,
  { ctx, report, typical }: { ctx: PolicyContext; report: ReportedUse | null; typical: ReportedUse },
): Measured => {
  const { usage, planType } = candidate
  const { short: shortUsed, long: longUsed } = report ?? typical
  const pressure = ctx.inFlightPenaltyPercent * candidate.inFlight
  const capacity = capacityCredits(planType, 'weekly')
  const longResetAt = nextReset(longWindow(usage), ctx.now)
  const resetAt = longResetAt ?? usage?.windows.fiveHour?.resetAt ?? null
  const bucket = ctx.preferEarlierReset ? resetDays(resetAt, ctx.now) : 0
  const isByReset = ctx.preferEarlierReset && BY_RESET.includes(ctx.strategy)
  return {
    id: candidate.id,
    shortUsed,
    longUsed,
    isUnknown: report === null,
    shortPressure: shortUsed + pressure,
    longPressure: longUsed + pressure,
    capacity,
    remaining: (capacity * (100 - Math.min(100, longUsed + pressure))) / 100,
    longResetAt,
    lastSelectedAt: candidate.lastSelectedAt,
    inFlight: candidate.inFlight,
    position: candidate.position,
    isSpent: isExhausted(usage, ctx.now).exhausted,
    bucket,
    resetDays: isByReset && bucket < UNKNOWN_RESET_DAYS ? bucket : null,
    draw: 0,
    score: 0,
  }
}

const resetDays = (resetAt: number | null, now: number): number =>
  resetAt === null || resetAt <= now ? UNKNOWN_RESET_DAYS : Math.floor((resetAt - now) / DAY_MS)

const byId = (a: Measured, b: Measured): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

const bySpent = (a: Measured, b: Measured): number => Number(a.isSpent) - Number(b.isSpent)

const byRecency = (a: Measured, b: Measured): number =>
  // Requests within one millisecond have the same time; in-flight counts tell them apart.
  a.lastSelectedAt - b.lastSelectedAt || a.inFlight - b.inFlight || byId(a, b)

const byKnown = (a: Measured, b: Measured): number => Number(a.isUnknown) - Number(b.isUnknown)

const byUsage = (a: Measured, b: Measured): number =>
  byKnown(a, b) || a.longPressure - b.longPressure || a.shortPressure - b.shortPressure || byRecency(a, b)

const sorted = (
  measured: Measured[],
  score: (m: Measured) => number,
  compare: (a: Measured, b: Measured) => number,
): Measured[] => {
  for (const m of measured) m.score = score(m)
  return measured.sort((a, b) => bySpent(a, b) || compare(a, b))
}

/** Weighted random order without replacement: exponential draws with the weight as rate (Efraimidis and Spirakis, 2006). */
const getDraw = (weight: number, random: () => number): number =>
  weight > 0 ? -Math.log(1 - random()) / weight : Number.POSITIVE_INFINITY

const byDraw = (a: Measured, b: Measured): number => (a.draw === b.draw ? byUsage(a, b) : a.draw - b.draw)

const capacityWeighted: Ordering = (measured, { random }) => {
  for (const m of measured) m.draw = getDraw(m.remaining, random)
  return sorted(
    measured,
    (m) => m.remaining,
    // A fully used allowance must not win only because it resets soon.
    (a, b) => Number(a.remaining === 0) - Number(b.remaining === 0) || a.bucket - b.bucket || byDraw(a, b),
  )
}

const relativeAvailability: Ordering = (measured, { now, random, relativePower, relativeTopK }) => {
  const ratePerSecond = (m: Measured) => {
    const seconds = m.longResetAt === null ? UNKNOWN_RESET_SECONDS : (m.longResetAt - now) / 1000
    return m.isSpent ? 0 : m.remaining / Math.max(MIN_RESET_SECONDS, seconds)
  }
  const best = Math.max(...measured.map(ratePerSecond))
  const ordered = sorted(
    measured,
    (m) => (best > 0 ? (ratePerSecond(m) / best) ** relativePower : 0),
    (a, b) => b.score - a.score || byUsage(a, b),
  )
  ordered.forEach((m, place) => {
    m.draw =
      place < relativeTopK && m.score >= MIN_RELATIVE_WEIGHT ? getDraw(m.score, random) : Number.POSITIVE_INFINITY
  })
  // Stable: accounts outside the draw stay in score order.
  return ordered.sort((a, b) => (a.draw === b.draw ? 0 : a.draw - b.draw))
}

const singleAccount: Ordering = (measured, { singleAccountId }) =>
  singleAccountId === null ? measured.sort(byId) : measured.filter(({ id }) => id === singleAccountId)

const ORDERINGS: Record<Strategy, Ordering> = {
  capacity_weighted: capacityWeighted,
  usage_weighted: (measured) =>
    sorted(
      measured,
      (m) => Math.max(0, 100 - m.longPressure),
      (a, b) => a.bucket - b.bucket || byUsage(a, b),
    ),
  round_robin: (measured, { now }) => sorted(measured, (m) => now - m.lastSelectedAt, byRecency),
  relative_availability: relativeAvailability,
  fill_first: (measured) =>
    sorted(
      measured,
      (m) => m.shortUsed,
      (a, b) =>
        byPosition(a, b) ||
        a.bucket - b.bucket ||
        byKnown(a, b) ||
        b.shortUsed - a.shortUsed ||
        b.longUsed - a.longUsed ||
        byId(a, b),
    ),
  sequential_drain: (measured) =>
    sorted(
      measured,
      (m) => m.capacity,
      (a, b) => byPosition(a, b) || a.capacity - b.capacity || byId(a, b),
    ),
  reset_drain: (measured, { now }) =>
    sorted(
      measured,
      (m) => resetDays(m.longResetAt, now),
      (a, b) =>
        resetDays(a.longResetAt, now) - resetDays(b.longResetAt, now) ||
        byKnown(a, b) ||
        a.shortUsed - b.shortUsed ||
        a.longUsed - b.longUsed ||
        (a.longResetAt ?? Number.MAX_SAFE_INTEGER) - (b.longResetAt ?? Number.MAX_SAFE_INTEGER) ||
        byId(a, b),
    ),
  single_account: singleAccount,
}
