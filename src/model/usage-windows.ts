/** How much of its allowance an account has used: reads the upstream's reports into windows told apart by length, and answers "is there room?". */
import { z } from 'zod'

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

export interface Credits {
  hasCredits: boolean
  unlimited: boolean
  balance: number | null
}

export interface UsageSnapshot {
  /** ms since epoch at which the upstream said so */
  at: number
  windows: UsageWindows
  credits: Credits | null
  planType: string | null
}

/** The furthest ahead a reset may lie; anything later is a defect or a misread unit. */
export const MAX_RESET_AHEAD_MS = 366 * 86_400_000

/** Reads the body of `GET /wham/usage`; null when it reports neither a window, nor credits, nor a plan. */
export const fromWhamUsage = (payload: unknown, at: number): UsageSnapshot | null => {
  const { data } = WhamUsage.safeParse(payload)
  if (!data) return null
  const reports = [
    ofSlot('primary', data.rate_limit?.primary_window),
    ofSlot('secondary', data.rate_limit?.secondary_window),
  ]
  return snapshotOf(reports, data.credits, data.plan_type, at)
}

/** Reads the `x-codex-{primary,secondary,monthly}-*` and `x-codex-credits-*` headers of any upstream response; null when there are none. */
export const fromRateHeaders = (headers: Headers, at: number): UsageSnapshot | null => {
  const field = (name: string) => Numeric.parse(headers.get(`x-codex-${name}`))
  const reports = SLOTS.map(
    (slot): Report => ({
      slot,
      usedPercent: field(`${slot}-used-percent`),
      windowMinutes: field(`${slot}-window-minutes`),
      resetAtSeconds: field(`${slot}-reset-at`),
      resetAfterSeconds: field(`${slot}-reset-after-seconds`),
    }),
  )
  const credits = CreditsReport.parse({
    has_credits: headers.get('x-codex-credits-has-credits'),
    unlimited: headers.get('x-codex-credits-unlimited'),
    balance: headers.get('x-codex-credits-balance'),
  })
  return snapshotOf(reports, credits, PlanType.parse(headers.get('x-codex-plan-type')), at)
}

/** Reads a `codex.rate_limits` event; null for any other event and for limits other than the account's own (`codex`). */
export const fromRateEvent = (event: unknown, at: number): UsageSnapshot | null => {
  const { data } = RateEvent.safeParse(event)
  if (!data) return null
  const names = [data.limit_id, data.limit_name, data.metered_limit_name]
  if (names.some((name) => typeof name === 'string' && name.toLowerCase() !== 'codex')) return null
  const reports = SLOTS.map((slot) => ofSlot(slot, data.rate_limits?.[slot]))
  return snapshotOf(reports, data.credits, data.plan_type, at)
}

/** One snapshot out of two: the later report wins, and what it does not mention is kept from the earlier. */
export const mergeUsage = (older: UsageSnapshot | null, newer: UsageSnapshot): UsageSnapshot => {
  if (!older) return newer
  const [before, after] = older.at > newer.at ? [newer, older] : [older, newer]
  return {
    at: after.at,
    windows: {
      fiveHour: after.windows.fiveHour ?? before.windows.fiveHour,
      weekly: after.windows.weekly ?? before.windows.weekly,
      monthly: after.windows.monthly ?? before.windows.monthly,
    },
    credits: after.credits ?? before.credits,
    planType: after.planType ?? before.planType,
  }
}

/** Percent used at `now`; a window whose reset has passed counts as 0, an unknown window is null. */
export const usedNow = (window: UsageWindow | null, now: number): number | null => {
  if (!window) return null
  return window.resetAt !== null && window.resetAt <= now ? 0 : window.usedPercent
}

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
  let exhausted = false
  let resetAt: number | null = null
  for (const window of hasUsableCredits(snapshot.credits) ? [fiveHour] : [fiveHour, weekly, monthly]) {
    if ((usedNow(window, now) ?? 0) < 100) continue
    exhausted = true
    if (window?.resetAt) resetAt = Math.max(resetAt ?? 0, window.resetAt)
  }
  return exhausted ? { exhausted, resetAt } : HAS_ROOM
}

/** Whether the account may go on past a full long window at its own expense. */
export const hasUsableCredits = (credits: Credits | null): boolean =>
  credits !== null && (credits.unlimited || credits.hasCredits || (credits.balance ?? 0) > 0)

/**
 * Size of a plan's allowance in credits, comparable between plans; 0 where the plan has no such window.
 * A plan not listed counts as the smallest, so an unknown name can neither attract nor lose all traffic.
 */
export const capacityCredits = (planType: string | null, window: 'fiveHour' | 'weekly' | 'monthly'): number =>
  (CAPACITY.get(planType?.trim().toLowerCase() ?? 'free') ?? FREE)[window]

type Capacity = Record<keyof UsageWindows, number>

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

const SLOTS = ['primary', 'secondary', 'monthly'] as const
type Slot = (typeof SLOTS)[number]

/** Used only when a report leaves its length out. */
const SLOT_MINUTES: Record<Slot, number> = { primary: 300, secondary: 10_080, monthly: 43_200 }
const DAY_MINUTES = 1_440

/** A number, or a string holding one; everything else, NaN and infinities included, is null. */
const Numeric = z
  .union([z.number(), z.string().trim().min(1).transform(Number)])
  .nullish()
  .transform((value) => (Number.isFinite(value) ? (value ?? null) : null))
  .catch(null)

/** Booleans arrive as JSON, as `True` and as `1`. */
const Flag = z
  .union([z.boolean(), z.string(), z.number()])
  .nullish()
  .transform((value) => (value === null || value === undefined ? null : /^(true|1)$/i.test(String(value))))
  .catch(null)

const PlanType = z
  .string()
  .trim()
  .min(1)
  .nullish()
  .transform((value) => value ?? null)
  .catch(null)

const CreditsReport = z
  .object({ has_credits: Flag, unlimited: Flag, balance: Numeric })
  .nullish()
  .transform((report): Credits | null => {
    if (!report || (report.has_credits === null && report.unlimited === null && report.balance === null)) return null
    return { hasCredits: report.has_credits ?? false, unlimited: report.unlimited ?? false, balance: report.balance }
  })
  .catch(null)

const WindowReport = z
  .object({
    used_percent: Numeric,
    limit_window_seconds: Numeric,
    window_minutes: Numeric,
    reset_at: Numeric,
    resets_at: Numeric,
    reset_after_seconds: Numeric,
  })
  .nullish()
  .catch(null)

const WhamUsage = z.object({
  plan_type: PlanType,
  rate_limit: z.object({ primary_window: WindowReport, secondary_window: WindowReport }).nullish().catch(null),
  credits: CreditsReport,
})

const RateEvent = z.object({
  type: z.literal('codex.rate_limits'),
  plan_type: PlanType,
  limit_id: z.unknown().optional(),
  limit_name: z.unknown().optional(),
  metered_limit_name: z.unknown().optional(),
  rate_limits: z
    .object({ primary: WindowReport, secondary: WindowReport, monthly: WindowReport })
    .nullish()
    .catch(null),
  credits: CreditsReport,
})

interface Report {
  slot: Slot
  usedPercent: number | null
  windowMinutes: number | null
  resetAtSeconds: number | null
  resetAfterSeconds: number | null
}

const ofSlot = (slot: Slot, report: z.output<typeof WindowReport>): Report => ({
  slot,
  usedPercent: report?.used_percent ?? null,
  windowMinutes:
    report?.window_minutes ?? (report?.limit_window_seconds ? Math.round(report.limit_window_seconds / 60) : null),
  resetAtSeconds: report?.reset_at ?? report?.resets_at ?? null,
  resetAfterSeconds: report?.reset_after_seconds ?? null,
})

const snapshotOf = (
  reports: readonly Report[],
  credits: Credits | null,
  planType: string | null,
  at: number,
): UsageSnapshot | null => {
  const windows: UsageWindows = { fiveHour: null, weekly: null, monthly: null }
  for (const report of reports) {
    const window = readWindow(report, at)
    if (!window) continue
    const kind = kindOf(window.windowMinutes)
    const rival = windows[kind]
    if (!rival || (window.resetAt ?? 0) > (rival.resetAt ?? 0)) windows[kind] = window
  }
  const isEmpty = !windows.fiveHour && !windows.weekly && !windows.monthly && !credits && !planType
  return isEmpty ? null : { at, windows, credits, planType }
}

const readWindow = (report: Report, at: number): UsageWindow | null => {
  if (report.usedPercent === null) return null
  const resetAt = readReset(report, at)
  const stated = report.windowMinutes !== null && report.windowMinutes > 0 ? report.windowMinutes : null
  // The upstream fills an absent window with zeroes; it must not hide or replace a real one.
  if (report.usedPercent === 0 && stated === null && resetAt === null) return null
  return {
    usedPercent: Math.min(100, Math.max(0, report.usedPercent)),
    windowMinutes: stated ?? guessMinutes(report.slot, resetAt, at),
    resetAt,
  }
}

const readReset = ({ resetAtSeconds, resetAfterSeconds }: Report, at: number): number | null => {
  if (resetAtSeconds !== null && resetAtSeconds > 0) {
    const resetAt = Math.ceil(resetAtSeconds * 1000)
    if (resetAt <= at + MAX_RESET_AHEAD_MS) return resetAt
  }
  if (resetAfterSeconds === null || resetAfterSeconds <= 0) return null
  const resetAt = at + Math.ceil(resetAfterSeconds * 1000)
  return resetAt <= at + MAX_RESET_AHEAD_MS ? resetAt : null
}

/** A window cannot reset later than its own length, so a distant reset proves a longer window than the slot suggests. */
const guessMinutes = (slot: Slot, resetAt: number | null, at: number): number => {
  const minutesAhead = resetAt === null ? 0 : (resetAt - at) / 60_000
  return (
    Object.values(SLOT_MINUTES).find((minutes) => minutes >= SLOT_MINUTES[slot] && minutes >= minutesAhead) ?? 43_200
  )
}

const kindOf = (minutes: number): keyof UsageWindows =>
  minutes <= DAY_MINUTES ? 'fiveHour' : minutes <= 14 * DAY_MINUTES ? 'weekly' : 'monthly'
