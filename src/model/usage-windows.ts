/** How much of its allowance an account has used, in windows told apart by length, and whether there is room. */
import { DAY_MS } from '../lib/durations.ts'

export interface UsageWindow {
  /** 0…100, as last reported; ask {@link usedNow} before believing it. */
  usedPercent: number
  windowMinutes: number
  /** ms since epoch */
  resetAt: number | null
}

/** By length, never by slot: weekly plans report their only window in the first slot. */
export interface UsageWindows {
  fiveHour: UsageWindow | null
  weekly: UsageWindow | null
  monthly: UsageWindow | null
}
export type WindowLength = keyof UsageWindows

export interface Credits {
  hasCredits: boolean
  unlimited: boolean
  balance: number | null
}

/** What a report says keeps the account from sending requests, whatever its windows say. */
export interface ReportedLimit {
  /** Named as the cause of the block it brings. */
  kind: (typeof REPORTED_LIMITS)[number]
  /** The type the upstream gave it, where it gave one. */
  type: string | null
  /** ms since epoch; null: no end was stated, so it holds until the next report. */
  resetAt: number | null
}

/** The first one that a report names counts. */
export const REPORTED_LIMITS = ['spend_cap_reached', 'credits_depleted', 'limit_reached', 'not_allowed'] as const

export interface UsageSnapshot {
  /** ms since epoch at which the upstream said so */
  at: number
  windows: UsageWindows
  credits: Credits | null
  planType: string | null
  /** Quotas beside the account's own; absent in reports that come with a turn, which do not speak of them. */
  additional?: readonly AdditionalQuota[]
  /** null: the report says that there is none; absent: it does not say. */
  limit?: ReportedLimit | null
}

/** Of single models or features, by the names the upstream gives it. */
export interface AdditionalQuota {
  limitName: string
  meteredFeature: string | null
  primary: UsageWindow | null
  secondary: UsageWindow | null
}

/** The furthest ahead a reset may lie; anything later is a defect or a misread unit. */
export const MAX_RESET_AHEAD_MS = 366 * DAY_MS

/**
 * One snapshot out of two: the later report wins, and what it does not mention is kept from the earlier. Only a poll that names
 * any window names every one there is: what it leaves out belonged to a former plan.
 */
export const mergeUsage = (older: UsageSnapshot | null, newer: UsageSnapshot): UsageSnapshot => {
  if (!older) return newer
  const [before, after] = older.at > newer.at ? [newer, older] : [older, newer]
  const additional = after.additional ?? before.additional
  return {
    at: after.at,
    windows: isWhole(after) ? after.windows : perWindow((length) => after.windows[length] ?? before.windows[length]),
    credits: after.credits ?? before.credits,
    planType: after.planType ?? before.planType,
    ...(additional && { additional }),
  }
}

/** What `of` says of each of the three. */
export const perWindow = <T>(of: (length: WindowLength) => T): Record<WindowLength, T> => ({
  fiveHour: of('fiveHour'),
  weekly: of('weekly'),
  monthly: of('monthly'),
})

/** Whether any of the three was reported. */
export const hasAnyWindow = (windows: UsageWindows): boolean => Object.values(windows).some((window) => window !== null)

/** Percent used at `now`; a window whose reset has passed counts as 0, an unknown window is null. */
export const usedNow = (window: UsageWindow | null, now: number): number | null => {
  if (!window) return null
  return window.resetAt !== null && window.resetAt <= now ? 0 : window.usedPercent
}

/** When the window resets (ms); null: unknown, or it did and nobody has told of the next one. */
export const nextReset = (window: UsageWindow | null, now: number): number | null =>
  window?.resetAt && window.resetAt > now ? window.resetAt : null

/**
 * Whether the account has nothing left, and when the last of its full windows resets (ms, null when unknown).
 * Credits pay for a full weekly or monthly window, never for a full five-hour one.
 */
export const isExhausted = (
  snapshot: UsageSnapshot | null,
  now: number,
): { exhausted: boolean; resetAt: number | null } => {
  if (!snapshot) return HAS_ROOM
  const { fiveHour, weekly, monthly } = snapshot.windows
  const isFull = (window: UsageWindow | null) => (usedNow(window, now) ?? 0) >= 100
  if (!isFull(fiveHour) && !isFull(weekly) && !isFull(monthly)) return HAS_ROOM // of every turn, each account
  const full = (hasUsableCredits(snapshot.credits) ? [fiveHour] : [fiveHour, weekly, monthly]).filter(isFull)
  const resets = full.flatMap((window) => window?.resetAt || [])
  return { exhausted: full.length > 0, resetAt: resets.length > 0 ? Math.max(...resets) : null }
}

/** Whether one of the quota's windows is full at `now`. */
export const isQuotaUsedUp = ({ primary, secondary }: AdditionalQuota, now: number): boolean =>
  [primary, secondary].some((window) => (usedNow(window, now) ?? 0) >= 100)

/** Whether this came from the usage endpoint, which reports everything there is. */
export const isPoll = ({ additional }: UsageSnapshot): boolean => additional !== undefined

/**
 * The limit of the report that keeps the account out of use. Assumed: `allowed` and `limit_reached` speak of the included
 * quota alone, so an account whose paid credits go on past a full weekly or monthly window is not kept out by them.
 */
export const limitInForce = (snapshot: UsageSnapshot, now: number): ReportedLimit | null => {
  const { limit } = snapshot
  if (!limit || limit.kind === 'spend_cap_reached' || limit.kind === 'credits_depleted') return limit ?? null
  return usesPaidCredits(snapshot, now) ? null : limit
}

/** Whether a request now would be paid for: the included weekly or monthly quota is used up, and credits are left. */
export const usesPaidCredits = (snapshot: UsageSnapshot | null, now: number): boolean =>
  snapshot !== null &&
  hasUsableCredits(snapshot.credits) &&
  !isExhausted(snapshot, now).exhausted &&
  isExhausted({ ...snapshot, credits: null }, now).exhausted

/** When the included quota of such an account is there again (ms); null: unknown. */
export const includedQuotaReset = (snapshot: UsageSnapshot | null, now: number): number | null =>
  snapshot && isExhausted({ ...snapshot, credits: null }, now).resetAt

/** Whether the account may go on past a full long window at its own expense. */
export const hasUsableCredits = (credits: Credits | null): boolean =>
  credits !== null && (credits.unlimited || credits.hasCredits || (credits.balance ?? 0) > 0)

/**
 * Size of a plan's allowance in credits, comparable between plans; 0 where the plan has no such window.
 * A plan not listed counts as the smallest, so an unknown name can neither attract nor lose all traffic.
 */
export const capacityCredits = (planType: string | null, window: WindowLength): number =>
  (CAPACITY.get(planType?.trim().toLowerCase() ?? 'free') ?? FREE)[window]

const isWhole = (snapshot: UsageSnapshot): boolean => isPoll(snapshot) && hasAnyWindow(snapshot.windows)

type Capacity = Record<WindowLength, number>

const HAS_ROOM: { exhausted: boolean; resetAt: number | null } = Object.freeze({ exhausted: false, resetAt: null })

const FREE: Capacity = { fiveHour: 0, weekly: 1_134, monthly: 1_134 }
const PLUS: Capacity = { fiveHour: 225, weekly: 7_560, monthly: 0 }
const PRO: Capacity = { fiveHour: 1_500, weekly: 50_400, monthly: 0 }

const CAPACITY: ReadonlyMap<string, Capacity> = new Map([
  ['free', FREE],
  ['plus', PLUS],
  ['business', PLUS],
  ['team', PLUS],
  ['edu', PLUS],
  ['education', PLUS],
  ['k12', PLUS],
  ['prolite', { fiveHour: 1_125, weekly: 37_800, monthly: 0 }],
  ['pro', PRO],
  ['enterprise', PRO],
])
