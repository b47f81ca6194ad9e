/** How much of its allowance an account has used, in windows by length, and whether there is room. */
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'

export interface UsageWindow {
  /** 0…100, as last reported; use {@link usedNow} for the current value. */
  usedPercent: number
  windowMinutes: number
  /** ms since epoch */
  resetAt: number | null
}

/** By length, not by slot: weekly plans report their only window in the first slot. */
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

/** A reported limit that blocks the account, whatever its windows say. */
export interface ReportedLimit {
  /** Also the cause of the resulting block. */
  kind: (typeof REPORTED_LIMITS)[number]
  /** The upstream's type, if any. */
  type: string | null
  /** ms since epoch; null: no end stated, so it applies until the next report. */
  resetAt: number | null
}

/** In order of precedence. */
export const REPORTED_LIMITS = ['spend_cap_reached', 'credits_depleted', 'limit_reached', 'not_allowed'] as const

export interface UsageSnapshot {
  /** When the upstream reported it, ms since epoch. */
  at: number
  windows: UsageWindows
  credits: Credits | null
  planType: string | null
  /** Other quotas than the account's own; absent in reports within responses, which do not include them. */
  additional?: readonly AdditionalQuota[]
  /** null: the report says that there is none; absent: unknown. */
  limit?: ReportedLimit | null
}

/** A quota for single models or features, with the upstream's names. */
export interface AdditionalQuota {
  limitName: string
  meteredFeature: string | null
  primary: UsageWindow | null
  secondary: UsageWindow | null
}

/** The latest plausible reset; anything later is an error or a misread unit. */
export const MAX_RESET_AHEAD_MS = 366 * DAY_MS

/**
 * Merges two snapshots: the later one wins, and keeps what it does not mention. A poll with any window has all of them:
 * a missing one belonged to a former plan.
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

/** A snapshot newer than `now` dates from before the clock was set back, so it counts as older than any new report. */
export const mergeUsageAt = (now: number, older: UsageSnapshot | null, newer: UsageSnapshot): UsageSnapshot =>
  mergeUsage(older && older.at > now ? { ...older, at: 0 } : older, newer)

/**
 * Whether both show the same whole percents and, within a minute, the same resets. Reports repeat the same figures with
 * slightly different times.
 */
export const isSameUsage = (a: UsageSnapshot | null, b: UsageSnapshot | null): boolean =>
  a === b ||
  (a !== null &&
    b !== null &&
    LENGTHS.every((length) => isSameWindow(a.windows[length], b.windows[length])) &&
    a.credits?.balance === b.credits?.balance &&
    hasUsableCredits(a.credits) === hasUsableCredits(b.credits))

const LENGTHS = ['fiveHour', 'weekly', 'monthly'] as const

const isSameWindow = (a: UsageWindow | null, b: UsageWindow | null): boolean =>
  a === null || b === null
    ? a === b
    : Math.floor(a.usedPercent) === Math.floor(b.usedPercent) &&
      Math.abs((a.resetAt ?? 0) - (b.resetAt ?? 0)) < MINUTE_MS

/** Calls `of` for each of the three lengths. */
export const perWindow = <T>(of: (length: WindowLength) => T): Record<WindowLength, T> => ({
  fiveHour: of('fiveHour'),
  weekly: of('weekly'),
  monthly: of('monthly'),
})

/** Whether any of the three was reported. */
export const hasAnyWindow = (windows: UsageWindows): boolean => Object.values(windows).some((window) => window !== null)

/** Percent used at `now`; 0 after the window's reset, null for an unknown window. */
export const usedNow = (window: UsageWindow | null, now: number): number | null => {
  if (!window) return null
  return window.resetAt !== null && window.resetAt <= now ? 0 : window.usedPercent
}

/** A five-hour window of which nothing is used: it starts with the next request. Unknown windows are none. */
export const isUnstarted = (usage: UsageSnapshot | null, now: number): boolean => {
  const window = usage?.windows.fiveHour ?? null
  return window?.windowMinutes === FIVE_HOURS && usedNow(window, now) === 0
}
const FIVE_HOURS = 300

/** Percent left at `now`; null for an unknown window. */
export const getPercentLeft = (window: UsageWindow | null, now: number): number | null => {
  const used = usedNow(window, now)
  return used === null ? null : 100 - used
}

/** When the window resets (ms); null when unknown or past. */
export const nextReset = (window: UsageWindow | null, now: number): number | null =>
  window?.resetAt && window.resetAt > now ? window.resetAt : null

/**
 * Whether nothing is left, and when the last full window resets (ms, null when unknown). Credits can replace a full
 * weekly or monthly window, but not a full five-hour one.
 */
export const isExhausted = (
  snapshot: UsageSnapshot | null,
  now: number,
): { exhausted: boolean; resetAt: number | null } => {
  if (!snapshot) return HAS_ROOM
  const { fiveHour, weekly, monthly } = snapshot.windows
  const isFull = (window: UsageWindow | null) => (usedNow(window, now) ?? 0) >= 100
  if (!isFull(fiveHour) && !isFull(weekly) && !isFull(monthly)) return HAS_ROOM // runs for every account on every turn
  const full = (hasUsableCredits(snapshot.credits) ? [fiveHour] : [fiveHour, weekly, monthly]).filter(isFull)
  const resets = full.flatMap((window) => window?.resetAt || [])
  return { exhausted: full.length > 0, resetAt: resets.length > 0 ? Math.max(...resets) : null }
}

/** Whether one of the quota's windows is full at `now`. */
export const isQuotaUsedUp = ({ primary, secondary }: AdditionalQuota, now: number): boolean =>
  [primary, secondary].some((window) => (usedNow(window, now) ?? 0) >= 100)

/** Whether this came from the usage endpoint, which always reports everything. */
export const isPoll = ({ additional }: UsageSnapshot): boolean => additional !== undefined

/**
 * The reported limit that blocks the account. Assumed: `allowed` and `limit_reached` concern only the included quota,
 * so they do not block an account that continues on paid credits.
 */
export const limitInForce = (snapshot: UsageSnapshot, now: number): ReportedLimit | null => {
  const { limit } = snapshot
  if (!limit || limit.kind === 'spend_cap_reached' || limit.kind === 'credits_depleted') return limit ?? null
  return usesPaidCredits(snapshot, now) ? null : limit
}

/** Whether a request now would use paid credits: the included weekly or monthly quota is used up, and credits are left. */
export const usesPaidCredits = (snapshot: UsageSnapshot | null, now: number): boolean =>
  snapshot !== null &&
  hasUsableCredits(snapshot.credits) &&
  !isExhausted(snapshot, now).exhausted &&
  isExhausted({ ...snapshot, credits: null }, now).exhausted

/** When the included quota resets (ms); null: unknown. */
export const includedQuotaReset = (snapshot: UsageSnapshot | null, now: number): number | null =>
  snapshot && isExhausted({ ...snapshot, credits: null }, now).resetAt

/** Whether paid credits can replace a full long window. */
export const hasUsableCredits = (credits: Credits | null): boolean =>
  credits !== null && (credits.unlimited || credits.hasCredits || (credits.balance ?? 0) > 0)

/**
 * A plan's allowance in credits, comparable between plans; 0 for windows it does not have. Unknown plans count as the
 * smallest, so that they neither attract nor lose all traffic.
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
