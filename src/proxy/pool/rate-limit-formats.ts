/** The native formats of `ClientLimits`: response headers, the socket event and the usage document. */

import type { Credits } from '../../model/accounts/usage-windows.ts'
import type { ClientLimits, ShownLimit, ShownWindow } from '../../model/keys/client-limits.ts'

const SLOTS = ['primary', 'secondary', 'monthly'] as const

/** `x-codex-*` headers, without the plan (Codex CLI 0.169). */
export const rateHeaders = (limits: ClientLimits): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const slot of SLOTS) {
    const window = limits[slot]
    if (window === null) continue
    headers[`x-codex-${slot}-used-percent`] = String(window.usedPercent)
    headers[`x-codex-${slot}-window-minutes`] = String(window.windowMinutes)
    if (window.resetAt !== null) headers[`x-codex-${slot}-reset-at`] = String(seconds(window.resetAt))
  }
  const { credits } = limits
  if (credits === null) return headers
  headers['x-codex-credits-has-credits'] = String(credits.hasCredits)
  headers['x-codex-credits-unlimited'] = String(credits.unlimited)
  if (credits.balance !== null) headers['x-codex-credits-balance'] = String(credits.balance)
  return headers
}

/** The `codex.rate_limits` event, without the plan. */
export const rateLimitsEvent = (limits: ClientLimits) => ({
  type: 'codex.rate_limits' as const,
  rate_limits: {
    allowed: limits.allowed,
    limit_reached: limits.limitReached,
    primary: eventWindow(limits.primary),
    secondary: eventWindow(limits.secondary),
    ...(limits.monthly && { monthly: eventWindow(limits.monthly) }),
  },
  credits: limits.credits && getCredits(limits.credits),
})

interface UsageFacts {
  /** `api_key` for keys; the plan of an account is only for its owner. */
  planType: string
  /** null: hidden. */
  limits: ClientLimits | null
  /** Reset credits that can be used. */
  resetCredits: number
  now: number
}

/** The document of `/wham/usage`. */
export const usageDocument = ({ planType, limits, resetCredits, now }: UsageFacts) => ({
  plan_type: planType,
  rate_limit: limits && rateLimit(limits, now),
  credits: limits?.credits
    ? { ...getCredits(limits.credits), approx_local_messages: null, approx_cloud_messages: null }
    : null,
  rate_limit_reset_credits: { available_count: resetCredits },
  additional_rate_limits: (limits?.additional ?? []).map((limit) => ({
    limit_name: limit.name,
    metered_feature: limit.meteredFeature,
    rate_limit: rateLimit(limit, now),
  })),
})

const rateLimit = (limit: ShownLimit, now: number) => ({
  allowed: limit.allowed,
  limit_reached: limit.limitReached,
  primary_window: documentWindow(limit.primary, now),
  secondary_window: documentWindow(limit.secondary, now),
  monthly_window: documentWindow(limit.monthly, now),
})

/** Native clients require a reset. A window without use has none yet: it would end one length after its first use. */
const documentWindow = (window: ShownWindow | null, now: number) => {
  if (window === null) return null
  const length = window.windowMinutes * 60
  const resetAt = window.resetAt === null ? seconds(now) + length : seconds(window.resetAt)
  return {
    used_percent: window.usedPercent,
    limit_window_seconds: length,
    reset_after_seconds: Math.max(0, resetAt - seconds(now)),
    reset_at: resetAt,
  }
}

const eventWindow = (window: ShownWindow | null) =>
  window && {
    used_percent: window.usedPercent,
    window_minutes: window.windowMinutes,
    reset_at: window.resetAt === null ? null : seconds(window.resetAt),
  }

const getCredits = ({ hasCredits, unlimited, balance }: Credits) => ({
  has_credits: hasCredits,
  unlimited,
  balance: balance === null ? null : String(balance),
})

const seconds = (ms: number): number => Math.floor(ms / 1000)
