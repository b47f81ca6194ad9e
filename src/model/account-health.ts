/** Short-lived health of an account, kept in memory: back-off after transient errors and the tier that decides who is asked first. */

export interface Health {
  tier: 'healthy' | 'draining' | 'probing'
  /** Transient errors since the last success. */
  errors: number
  /** `at` in ms; `evidence`: the status and words of the upstream. */
  lastError: { at: number; evidence: string } | null
  /** The errors are all that its token could not be renewed; once it is, they say nothing any more. */
  lacksToken: boolean
  /** Not to be asked before this time (ms) while others can serve. */
  backoffUntil: number | null
  /** When the present tier began (ms). */
  enteredAt: number
  /** Successes in a row while probing. */
  successes: number
}

export type HealthEvent =
  | { kind: 'error'; at: number; evidence: string; lacksToken?: boolean }
  | { kind: 'success'; at: number }
  /** Its token was renewed. */
  | { kind: 'renewed' }
  /** Percent used now, 0…100; a monthly allowance takes the place of a missing weekly one. */
  | { kind: 'observe'; at: number; fiveHourUsed: number | null; weeklyUsed: number | null }

export const HEALTHY: Health = Object.freeze({
  tier: 'healthy',
  errors: 0,
  lastError: null,
  lacksToken: false,
  backoffUntil: null,
  enteredAt: 0,
  successes: 0,
})

const DRAIN_FIVE_HOUR_PERCENT = 85
const DRAIN_WEEKLY_PERCENT = 90
const DRAIN_ERRORS = 2
const QUIET_MS = 60_000
const RECOVERY_SUCCESSES = 3
const BACKOFF_ERRORS = 3
const BACKOFF_MS = 30_000

/** The health after `event`; the same object when nothing changes. */
export const nextHealth = (health: Health, event: HealthEvent): Health => {
  switch (event.kind) {
    case 'error':
      return fail(health, event)
    case 'success':
      return succeed(health, event.at)
    case 'renewed':
      return health.lacksToken ? { ...health, ...NO_ERRORS } : health
    case 'observe':
      return observe(health, event)
  }
}

const NO_ERRORS = Object.freeze({ errors: 0, lastError: null, lacksToken: false, backoffUntil: null })

/** Turns that were under way when a back-off began fail, too, however many: that is one failure, and does not lengthen it. */
const fail = (
  health: Health,
  { at, evidence, lacksToken = false }: Extract<HealthEvent, { kind: 'error' }>,
): Health => {
  const { backoffUntil } = health
  const lastError = { at, evidence }
  if (backoffUntil !== null && backoffUntil > at) return { ...health, lastError }
  const before = backoffUntil === null ? health.errors : 0
  const errors = before + 1
  const failed: Health = {
    ...health,
    errors,
    lastError,
    lacksToken: lacksToken && (before === 0 || health.lacksToken),
    backoffUntil: errors < BACKOFF_ERRORS ? null : at + BACKOFF_MS,
    successes: 0,
  }
  return hasRecentErrors(failed, at) ? enter(failed, 'draining', at) : failed
}

const succeed = (health: Health, at: number): Health => {
  const successes = health.tier === 'probing' ? health.successes + 1 : 0
  if (health.errors === 0 && health.backoffUntil === null && successes === health.successes) return health
  const cleared: Health = { ...health, ...NO_ERRORS, successes }
  return successes >= RECOVERY_SUCCESSES ? enter(cleared, 'healthy', at) : cleared
}

const observe = (health: Health, event: Extract<HealthEvent, { kind: 'observe' }>): Health => {
  const isStrained =
    (event.fiveHourUsed ?? 0) >= DRAIN_FIVE_HOUR_PERCENT ||
    (event.weeklyUsed ?? 0) >= DRAIN_WEEKLY_PERCENT ||
    hasRecentErrors(health, event.at)
  if (isStrained) return enter(health, 'draining', event.at)
  const isRested = health.tier === 'draining' && event.at - health.enteredAt >= QUIET_MS
  return isRested ? enter(health, 'probing', event.at) : health
}

const hasRecentErrors = (health: Health, at: number): boolean =>
  health.errors >= DRAIN_ERRORS && health.lastError !== null && at - health.lastError.at < QUIET_MS

const enter = (health: Health, tier: Health['tier'], at: number): Health =>
  health.tier === tier ? health : { ...health, tier, enteredAt: at, successes: 0 }
