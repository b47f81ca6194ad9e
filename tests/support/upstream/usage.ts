/** Usage of a stand-in account in its three wire forms: the usage document, response headers and the stream event. */
import type { Account, Usage, UsageWindow } from './accounts.ts'

const FIVE_HOURS_MINUTES = 300
const WEEK_MINUTES = 10_080
const NO_CREDITS = { hasCredits: false, unlimited: false, balance: '0' }

/** The body of `GET /wham/usage` (client-protocol §8). */
export function usageDocument(account: Account, now: number): Record<string, unknown> {
  const usage = account.usage
  const primary = usage ? usage.primary : untouched(FIVE_HOURS_MINUTES, now)
  const secondary = usage ? usage.secondary : untouched(WEEK_MINUTES, now)
  const limitReached = [primary, secondary].some((window) => window !== undefined && isExhausted(window, now))
  const credits = usage?.credits ?? NO_CREDITS
  return {
    user_id: account.userId,
    account_id: account.chatgptAccountId,
    email: account.email,
    plan_type: account.plan,
    rate_limit: {
      allowed: usage?.allowed ?? !limitReached,
      limit_reached: usage?.limitReached ?? limitReached,
      primary_window: documentWindow(primary, now),
      secondary_window: documentWindow(secondary, now),
    },
    code_review_rate_limit: null,
    additional_rate_limits: null,
    credits: {
      has_credits: credits.hasCredits,
      unlimited: credits.unlimited,
      balance: credits.balance,
      approx_local_messages: [0, 0],
      approx_cloud_messages: [0, 0],
    },
    spend_control: spendControl(usage?.spendControl, now),
    rate_limit_reached_type: usage?.reachedType ? { type: usage.reachedType } : null,
    promo: null,
    rate_limit_reset_credits: { available_count: availableCount(account) },
  }
}

/** The body of `GET /wham/rate-limit-reset-credits` (client-protocol §8). */
export function resetCreditsDocument(account: Account): Record<string, unknown> {
  const credits = account.resetCredits.map(({ id, status = 'available', grantedAt, expiresAt, redeemedAt }) => ({
    id,
    reset_type: 'codex_rate_limits',
    status,
    granted_at: iso(grantedAt),
    expires_at: iso(expiresAt),
    title: 'Full reset',
    description: 'Resets all limits of the account.',
    redeem_started_at: iso(redeemedAt),
    redeemed_at: iso(redeemedAt),
  }))
  return { credits, available_count: availableCount(account) }
}

/** The `x-codex-*` rate headers of a response; empty for an account without usage. */
export function rateHeaders(account: Account, now: number): Record<string, string> {
  if (!account.usage) return {}
  const credits = account.usage.credits ?? NO_CREDITS
  return {
    'x-codex-plan-type': account.plan,
    'x-codex-active-limit': 'premium',
    ...windowHeaders('primary', account.usage.primary, now),
    ...windowHeaders('secondary', account.usage.secondary, now),
    'x-codex-credits-has-credits': credits.hasCredits ? 'True' : 'False',
    'x-codex-credits-unlimited': credits.unlimited ? 'True' : 'False',
    'x-codex-credits-balance': credits.balance,
    ...(account.usage.reachedType && { 'x-codex-rate-limit-reached-type': account.usage.reachedType }),
  }
}

/** The `codex.rate_limits` event of a stream. */
export function rateLimitsEvent(account: Account): { type: string } & Record<string, unknown> {
  const usage: Usage = account.usage ?? {}
  const credits = usage.credits ?? NO_CREDITS
  return {
    type: 'codex.rate_limits',
    plan_type: account.plan,
    rate_limits: {
      ...(usage.allowed !== undefined && { allowed: usage.allowed }),
      ...(usage.limitReached !== undefined && { limit_reached: usage.limitReached }),
      primary: eventWindow(usage.primary),
      secondary: eventWindow(usage.secondary),
    },
    ...(usage.spendControl && { spend_control: { reached: usage.spendControl.reached } }),
    ...(usage.reachedType && { rate_limit_reached_type: usage.reachedType }),
    credits: { has_credits: credits.hasCredits, unlimited: credits.unlimited, balance: credits.balance },
  }
}

function spendControl(control: Usage['spendControl'], now: number): Record<string, unknown> {
  if (!control?.reached) return { reached: false }
  const { resetAt } = control
  if (resetAt === undefined) return { reached: true }
  const individual = {
    source: 'workspace_spend_controls',
    limit: '100.00',
    used: '100.00',
    remaining: '0.00',
    used_percent: 100,
    remaining_percent: 0,
    reset_after_seconds: secondsUntil(resetAt, now),
    reset_at: Math.floor(resetAt / 1000),
  }
  return { reached: true, individual_limit: individual }
}

function availableCount(account: Account): number {
  return account.resetCredits.filter(({ status = 'available' }) => status === 'available').length
}

function iso(ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString()
}

function untouched(windowMinutes: number, now: number): UsageWindow {
  return { usedPercent: 0, windowMinutes, resetAt: now + windowMinutes * 60_000 }
}

function isExhausted(window: UsageWindow, now: number): boolean {
  return window.usedPercent >= 100 && window.resetAt > now
}

function documentWindow(window: UsageWindow | undefined, now: number): unknown {
  if (!window) return null
  return {
    used_percent: window.usedPercent,
    limit_window_seconds: window.windowMinutes * 60,
    reset_after_seconds: secondsUntil(window.resetAt, now),
    reset_at: Math.floor(window.resetAt / 1000),
  }
}

function windowHeaders(name: string, window: UsageWindow | undefined, now: number): Record<string, string> {
  if (!window) return {}
  return {
    [`x-codex-${name}-used-percent`]: String(window.usedPercent),
    [`x-codex-${name}-window-minutes`]: String(window.windowMinutes),
    [`x-codex-${name}-reset-at`]: String(Math.floor(window.resetAt / 1000)),
    [`x-codex-${name}-reset-after-seconds`]: String(secondsUntil(window.resetAt, now)),
  }
}

function eventWindow(window: UsageWindow | undefined): unknown {
  if (!window) return null
  return {
    used_percent: window.usedPercent,
    window_minutes: window.windowMinutes,
    reset_at: Math.floor(window.resetAt / 1000),
  }
}

function secondsUntil(at: number, now: number): number {
  return Math.max(0, Math.ceil((at - now) / 1000))
}
