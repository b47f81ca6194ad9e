/** Parses the upstream's usage reports in all three forms, into windows identified by length. */
import { z } from 'zod'
import {
  type AdditionalQuota,
  type Credits,
  hasAnyWindow,
  isExhausted,
  MAX_RESET_AHEAD_MS,
  REPORTED_LIMITS,
  type ReportedLimit,
  type UsageSnapshot,
  type UsageWindow,
  type UsageWindows,
  type WindowLength,
} from './usage-windows.ts'

/** Parses `GET /wham/usage`; null when it reports neither a window, nor credits, nor a plan. */
export const fromWhamUsage = (payload: unknown, at: number): UsageSnapshot | null => {
  const { data } = WhamUsage.safeParse(payload)
  if (!data) return null
  const reports = [
    ofSlot('primary', data.rate_limit?.primary_window),
    ofSlot('secondary', data.rate_limit?.secondary_window),
    ofSlot('monthly', data.rate_limit?.monthly_window),
  ]
  const { allowed = null, limit_reached: limitReached = null } = data.rate_limit ?? {}
  const flags = { ...spendFlags(data), allowed, limitReached, type: data.rate_limit_reached_type }
  const snapshot = getSnapshot(reports, data, { at, flags })
  return snapshot && { ...snapshot, additional: data.additional_rate_limits.map((quota) => getAdditional(quota, at)) }
}

/**
 * Parses the `x-codex-{primary,secondary,monthly}-*` and `x-codex-credits-*` headers of any upstream response; null
 * without them. `family`: prefix of other windows than the account's own.
 */
export const fromRateHeaders = (headers: Headers, at: number, family = 'codex'): UsageSnapshot | null => {
  const field = (name: string) => Numeric.parse(headers.get(`x-${family}-${name}`))
  const reports = SLOTS.map(
    (slot): Report => ({
      slot,
      usedPercent: field(`${slot}-used-percent`),
      windowMinutes: field(`${slot}-window-minutes`),
      resetAtSeconds: field(`${slot}-reset-at`),
      resetAfterSeconds: field(`${slot}-reset-after-seconds`),
    }),
  )
  const type =
    family === 'codex' && limitFamily(headers) === null ? headers.get('x-codex-rate-limit-reached-type') : null
  const credits = CreditsReport.parse({
    has_credits: headers.get('x-codex-credits-has-credits'),
    unlimited: headers.get('x-codex-credits-unlimited'),
    balance: headers.get('x-codex-credits-balance'),
  })
  const plan_type = PlanType.parse(headers.get('x-codex-plan-type'))
  return getSnapshot(reports, { credits, plan_type }, { at, flags: { ...NO_FLAGS, type: ReachedType.parse(type) } })
}

/**
 * The family of the limit that rejected the request, if it is not the account's own and its windows are reported;
 * otherwise null.
 */
export const limitFamily = (headers: Headers): string | null => {
  const name = (headers.get('x-codex-active-limit') ?? '').toLowerCase().replaceAll('_', '-')
  const isReported = /^[a-z0-9-]+$/.test(name) && headers.has(`x-${name}-primary-used-percent`)
  return isReported && name !== 'codex' ? name : null
}

/** Parses a `codex.rate_limits` event; null for other events and for limits other than the account's own (`codex`). */
export const fromRateEvent = (event: unknown, at: number): UsageSnapshot | null => {
  const { data } = RateEvent.safeParse(event)
  if (!data) return null
  const names = [data.limit_id, data.limit_name, data.metered_limit_name]
  if (names.some((name) => typeof name === 'string' && name.toLowerCase() !== 'codex')) return null
  const { rate_limits: limits } = data
  const reports = SLOTS.map((slot) => ofSlot(slot, limits?.[slot]))
  const flags = {
    ...spendFlags({ ...limits, ...data }),
    allowed: limits?.allowed ?? null,
    limitReached: limits?.limit_reached ?? null,
    type: data.rate_limit_reached_type ?? limits?.rate_limit_reached_type ?? null,
  }
  return getSnapshot(reports, data, { at, flags })
}

const SLOTS = ['primary', 'secondary', 'monthly'] as const
type Slot = (typeof SLOTS)[number]

/** Used only when a report omits the length. */
const SLOT_MINUTES: Record<Slot, number> = { primary: 300, secondary: 10_080, monthly: 43_200 }
const DAY_MINUTES = 1_440
/** Per account. */
const MAX_ADDITIONAL = 16

/** A number or numeric string; anything else, including NaN and infinities, is null. */
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

/** Text, or an object with a `type`; the upstream uses both. */
const ReachedType = z
  .union([z.string(), z.object({ type: z.string() }).transform(({ type }) => type)])
  .nullish()
  .transform((type) => (type && /^[\w.-]{1,64}$/.test(type) ? type.toLowerCase() : null))
  .catch(null)

/** Assumed: a reached spend cap ends at the reset of its individual limit. */
const SpendControl = z
  .object({
    reached: Flag,
    individual_limit: z.object({ reset_at: Numeric, reset_after_seconds: Numeric }).nullish().catch(null),
  })
  .nullish()
  .catch(null)

const LimitReport = z
  .object({
    allowed: Flag,
    limit_reached: Flag,
    primary_window: WindowReport,
    secondary_window: WindowReport,
    monthly_window: WindowReport,
  })
  .nullish()
  .catch(null)

const QuotaName = z.string().trim().min(1).max(128)

const AdditionalReport = z.object({
  limit_name: QuotaName,
  metered_feature: QuotaName.nullish().catch(null),
  rate_limit: LimitReport,
})

/** Leaves out unreadable entries, and those beyond a plausible number. */
const AdditionalReports = z
  .array(z.unknown())
  .nullish()
  .catch(null)
  .transform((reports) =>
    (reports ?? []).slice(0, MAX_ADDITIONAL).flatMap((report) => AdditionalReport.safeParse(report).data ?? []),
  )

const WhamUsage = z.object({
  plan_type: PlanType,
  rate_limit: LimitReport,
  credits: CreditsReport,
  additional_rate_limits: AdditionalReports,
  spend_control: SpendControl,
  rate_limit_reached_type: ReachedType,
})

const RateEvent = z.object({
  type: z.literal('codex.rate_limits'),
  plan_type: PlanType,
  limit_id: z.unknown().optional(),
  limit_name: z.unknown().optional(),
  metered_limit_name: z.unknown().optional(),
  rate_limits: z
    .object({
      primary: WindowReport,
      secondary: WindowReport,
      monthly: WindowReport,
      allowed: Flag,
      limit_reached: Flag,
      rate_limit_reached_type: ReachedType,
    })
    .nullish()
    .catch(null),
  credits: CreditsReport,
  spend_control: SpendControl,
  rate_limit_reached_type: ReachedType,
})

/** The flags of a report beside its windows; null: none. */
interface Flags {
  allowed: boolean | null
  limitReached: boolean | null
  spendCapReached: boolean | null
  /** ms since epoch */
  spendResetAt: Pick<Report, 'resetAtSeconds' | 'resetAfterSeconds'>
  type: string | null
}

const NO_RESET = { resetAtSeconds: null, resetAfterSeconds: null }
const NO_FLAGS: Flags = { allowed: null, limitReached: null, spendCapReached: null, spendResetAt: NO_RESET, type: null }

const spendFlags = ({ spend_control: control }: { spend_control?: z.output<typeof SpendControl> }) => ({
  spendCapReached: control?.reached ?? null,
  spendResetAt: {
    resetAtSeconds: control?.individual_limit?.reset_at ?? null,
    resetAfterSeconds: control?.individual_limit?.reset_after_seconds ?? null,
  },
})

interface Report {
  slot: Slot
  usedPercent: number | null
  windowMinutes: number | null
  resetAtSeconds: number | null
  resetAfterSeconds: number | null
}

const ofSlot = (slot: Slot, report: z.output<typeof WindowReport> | undefined): Report => ({
  slot,
  usedPercent: report?.used_percent ?? null,
  windowMinutes:
    report?.window_minutes ?? (report?.limit_window_seconds ? Math.round(report.limit_window_seconds / 60) : null),
  resetAtSeconds: report?.reset_at ?? report?.resets_at ?? null,
  resetAfterSeconds: report?.reset_after_seconds ?? null,
})

const getAdditional = (
  { limit_name: limitName, metered_feature: feature, rate_limit: limit }: z.output<typeof AdditionalReport>,
  at: number,
): AdditionalQuota => ({
  limitName,
  meteredFeature: feature ?? null,
  primary: readWindow(ofSlot('primary', limit?.primary_window), at),
  secondary: readWindow(ofSlot('secondary', limit?.secondary_window), at),
})

const getSnapshot = (
  reports: readonly Report[],
  { credits, plan_type: planType }: { credits: Credits | null; plan_type: string | null },
  { at, flags }: { at: number; flags: Flags },
): UsageSnapshot | null => {
  const windows: UsageWindows = { fiveHour: null, weekly: null, monthly: null }
  for (const report of reports) {
    const window = readWindow(report, at)
    if (!window) continue
    const kind = getKind(window.windowMinutes)
    const rival = windows[kind]
    if (!rival || (window.resetAt ?? 0) > (rival.resetAt ?? 0)) windows[kind] = window
  }
  const limit = getLimit(flags, windows, at)
  const isEmpty = !hasAnyWindow(windows) && !credits && !planType && limit === undefined
  return isEmpty ? null : { at, windows, credits, planType, ...(limit !== undefined && { limit }) }
}

/** null: the report says that there is no limit; undefined: it does not say. */
const getLimit = (flags: Flags, windows: UsageWindows, at: number): ReportedLimit | null | undefined => {
  const { allowed, limitReached, spendCapReached, type } = flags
  const named = type === null ? null : (REACHED_TYPES[type] ?? 'limit_reached')
  const found: Record<ReportedLimit['kind'], boolean> = {
    spend_cap_reached: spendCapReached === true || named === 'spend_cap_reached',
    credits_depleted: named === 'credits_depleted',
    limit_reached: limitReached === true || named === 'limit_reached',
    not_allowed: allowed === false,
  }
  const kind = REPORTED_LIMITS.find((name) => found[name])
  if (kind === undefined)
    return allowed === null && limitReached === null && spendCapReached === null ? undefined : null
  const included = isExhausted({ at, windows, credits: null, planType: null }, at).resetAt
  const resetAt = kind === 'spend_cap_reached' ? readReset(flags.spendResetAt, at) : included
  return { kind, type, resetAt }
}

/** Types of reached limits, as known to Codex CLI 0.169, that are not about the included quota; all others are. */
const REACHED_TYPES: Readonly<Record<string, ReportedLimit['kind']>> = {
  workspace_member_usage_limit_reached: 'spend_cap_reached',
  workspace_owner_usage_limit_reached: 'spend_cap_reached',
  workspace_member_credits_depleted: 'credits_depleted',
  workspace_owner_credits_depleted: 'credits_depleted',
}

const readWindow = (report: Report, at: number): UsageWindow | null => {
  if (report.usedPercent === null) return null
  const resetAt = readReset(report, at)
  const stated = report.windowMinutes !== null && report.windowMinutes > 0 ? report.windowMinutes : null
  // The upstream fills a missing window with zeroes, which must not hide a real one.
  if (report.usedPercent === 0 && stated === null && resetAt === null) return null
  return {
    usedPercent: Math.min(100, Math.max(0, report.usedPercent)),
    windowMinutes: stated ?? guessMinutes(report.slot, resetAt, at),
    resetAt,
  }
}

const readReset = (
  { resetAtSeconds, resetAfterSeconds }: Pick<Report, 'resetAtSeconds' | 'resetAfterSeconds'>,
  at: number,
): number | null => {
  if (resetAtSeconds !== null && resetAtSeconds > 0) {
    const resetAt = Math.ceil(resetAtSeconds * 1000)
    if (resetAt <= at + MAX_RESET_AHEAD_MS) return resetAt
  }
  if (resetAfterSeconds === null || resetAfterSeconds <= 0) return null
  const resetAt = at + Math.ceil(resetAfterSeconds * 1000)
  return resetAt <= at + MAX_RESET_AHEAD_MS ? resetAt : null
}

/** A window cannot reset later than its own length, so a distant reset implies a longer window than the slot suggests. */
const guessMinutes = (slot: Slot, resetAt: number | null, at: number): number => {
  const minutesAhead = resetAt === null ? 0 : (resetAt - at) / 60_000
  return (
    Object.values(SLOT_MINUTES).find((minutes) => minutes >= SLOT_MINUTES[slot] && minutes >= minutesAhead) ?? 43_200
  )
}

const getKind = (minutes: number): WindowLength =>
  minutes <= DAY_MINUTES ? 'fiveHour' : minutes <= 14 * DAY_MINUTES ? 'weekly' : 'monthly'
