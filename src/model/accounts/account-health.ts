/** Short-lived health of an account, in memory: back-off after transient errors, and the tier used for routing. */

export interface Health {
  tier: 'healthy' | 'draining' | 'probing'
  /** Transient errors since the last success. */
  errors: number
  /** `at` in ms; `evidence`: status and message of the upstream. */
  lastError: { at: number; evidence: string } | null
  /** All errors are failed token refreshes, so they no longer count once the token is refreshed. */
  lacksToken: boolean
  /** Not used before this time (ms) while others are available. */
  backoffUntil: number | null
  /** When the current tier began (ms). */
  enteredAt: number
  /** Successes in a row while probing. */
  successes: number
  /** Failed probes since it was last healthy; each doubles the pause before the next. */
  failedProbes: number
  /** Failed attempts since any account last served a request; null: none. */
  failing: Failing | null
}

interface Failing {
  /** When the last of them failed (ms). */
  at: number
  /** How many failed in a row. */
  count: number
  /** Evidence of a lost connection. It counts as an error only once another account serves a request: until then it may be the network. */
  lostConnection: string | null
}

export type HealthEvent =
  | { kind: 'error'; at: number; evidence: string; lacksToken?: boolean }
  | { kind: 'success'; at: number }
  /**
   * An attempt failed because of the connection or the server. `lostConnection`: the evidence, if only the connection
   * failed.
   */
  | { kind: 'unserved'; at: number; lostConnection: string | null }
  /** Another account served a request. `isShared`: that account had lost its connection too, so this was the network. */
  | { kind: 'served_elsewhere'; at: number; isShared: boolean }
  /** Its token was refreshed. */
  | { kind: 'renewed' }
  /** Percent used now, 0…100; a monthly allowance replaces a missing weekly one. */
  | { kind: 'observe'; at: number; fiveHourUsed: number | null; weeklyUsed: number | null }

export const HEALTHY: Health = Object.freeze({
  tier: 'healthy',
  errors: 0,
  lastError: null,
  lacksToken: false,
  backoffUntil: null,
  enteredAt: 0,
  successes: 0,
  failedProbes: 0,
  failing: null,
})

const DRAIN_FIVE_HOUR_PERCENT = 85
const DRAIN_WEEKLY_PERCENT = 90
const DRAIN_ERRORS = 2
const QUIET_MS = 60_000
const RECOVERY_SUCCESSES = 3
const BACKOFF_ERRORS = 3
const BACKOFF_MS = 30_000
/** How long a failed attempt predicts the next one, without a success in between. */
const FAILING_MS = 60_000

/** How long a lost connection may count against the account once another one serves a request. */
const BLAME_MS = 5 * 60_000

/** Whether the last attempts on the account failed and no account has served a request since. */
export const isFailing = ({ failing }: Health, now: number): boolean =>
  failing !== null && now - failing.at < FAILING_MS

/** The health after `event`; the same object when nothing changes. */
export const nextHealth = (health: Health, event: HealthEvent): Health => {
  switch (event.kind) {
    case 'error':
      return fail(health, event)
    case 'success':
      return succeed(health, event.at)
    case 'unserved':
      return probeFailed({ ...health, failing: countFailure(health, event) }, event.at)
    case 'served_elsewhere':
      return servedElsewhere(health, event)
    case 'renewed':
      return health.lacksToken ? { ...health, ...NO_ERRORS } : health
    case 'observe':
      return observe(health, event)
  }
}

const NO_ERRORS = Object.freeze({ errors: 0, lastError: null, lacksToken: false, backoffUntil: null })

/** Requests already running when a back-off began may fail too; they count as one failure and do not lengthen it. */
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
  const probed = probeFailed(failed, at)
  return hasRecentErrors(probed, at) ? enter(probed, 'draining', at) : probed
}

const countFailure = (health: Health, { at, lostConnection }: Extract<HealthEvent, { kind: 'unserved' }>): Failing => {
  const before = health.failing && at - health.failing.at < BLAME_MS ? health.failing : null
  return {
    at,
    count: (before?.count ?? 0) + 1,
    lostConnection: lostConnection ?? before?.lostConnection ?? null,
  }
}

/** Lost connections before that count as one error, because they may share a cause. */
const servedElsewhere = (
  health: Health,
  { at, isShared }: Extract<HealthEvent, { kind: 'served_elsewhere' }>,
): Health => {
  const { failing } = health
  if (failing === null) return health
  const evidence = at - failing.at < BLAME_MS && !isShared ? failing.lostConnection : null
  const settled = { ...health, failing: null }
  return evidence === null ? settled : fail(settled, { kind: 'error', at, evidence })
}

const succeed = (health: Health, at: number): Health => {
  const successes = health.tier === 'probing' ? health.successes + 1 : 0
  const isClean = health.errors === 0 && health.backoffUntil === null && health.failing === null
  if (isClean && successes === health.successes) return health
  const cleared: Health = { ...health, ...NO_ERRORS, failing: null, successes }
  return successes >= RECOVERY_SUCCESSES ? { ...enter(cleared, 'healthy', at), failedProbes: 0 } : cleared
}

const observe = (health: Health, event: Extract<HealthEvent, { kind: 'observe' }>): Health => {
  const isStrained =
    (event.fiveHourUsed ?? 0) >= DRAIN_FIVE_HOUR_PERCENT ||
    (event.weeklyUsed ?? 0) >= DRAIN_WEEKLY_PERCENT ||
    hasRecentErrors(health, event.at)
  if (isStrained) return enter(health, 'draining', event.at)
  const isRested = health.tier === 'draining' && event.at - health.enteredAt >= restMs(health)
  return isRested ? enter(health, 'probing', event.at) : health
}

const probeFailed = (health: Health, at: number): Health =>
  health.tier === 'probing' ? enter({ ...health, failedProbes: health.failedProbes + 1 }, 'draining', at) : health

/** A minute, doubled by each failed probe up to sixteen minutes, so that a broken account gets less and less traffic. */
const restMs = ({ failedProbes }: Health): number => QUIET_MS * 2 ** Math.min(failedProbes, 4)

const hasRecentErrors = (health: Health, at: number): boolean =>
  health.errors >= DRAIN_ERRORS && health.lastError !== null && at - health.lastError.at < QUIET_MS

const enter = (health: Health, tier: Health['tier'], at: number): Health =>
  health.tier === tier ? health : { ...health, tier, enteredAt: at, successes: 0 }
