/** API key limits: the expected use of a turn is reserved before it runs, and settled once when it ends. */
import type { LimitType, LimitWindow } from '../../../db/schema/keys.ts'
import { AppError, resetMembers } from '../../errors.ts'
import { iso } from '../../lib/iso.ts'
import { isRunning, resetAfter } from './key-limits.ts'

/** A limit in memory. Amounts are requests, tokens or micro-dollars, depending on the type. */
export interface LiveLimit {
  readonly id: string
  readonly keyId: string
  readonly type: LimitType
  readonly window: LimitWindow
  /** Exact model; empty: all models. */
  readonly modelFilter: string
  maxValue: number
  /** Used by ended turns of this window, in all processes as far as this one knows. */
  settled: number
  /** Reserved for running turns of this window, in this process. */
  reserved: number
  /** Leased by this process, and neither reserved nor used. */
  free: number
  /** No more can be leased before this time (ms), as far as is known. */
  shortUntil: number
  /** End of the window (ms); advanced by the first turn after it. */
  resetAt: number
}

export interface Use {
  inputTokens: number
  outputTokens: number
  /** null: the model has no known price. */
  costMicros: number | null
}

export interface Estimate extends Use {
  /** The model after applying the key's policy; null: none. */
  model: string | null
}

/** One turn's contribution to one limit, for `deltaStatement`. */
export interface LimitDelta {
  limitId: string
  keyId: string
  delta: number
  /** How much of `delta` was leased before; the rest is use beyond the estimate. */
  leased: number
  /** End of the window in which the turn was admitted (ms). */
  resetAt: number
}

export interface Reservation {
  /**
   * Releases the reservation and charges `actual`; null charges nothing, as the turn reached no model. Later calls
   * return no deltas.
   */
  settle(actual: Use | null): readonly LimitDelta[]
}

const INPUT_CAP_TOKENS = 8192
const OUTPUT_TOKENS = 2048
/** A model without a price reserves as if 16,384 tokens cost two dollars. */
const UNPRICED_MICROS_PER_TOKEN = 2_000_000 / 16_384
/** When only running turns block the limit: one may end soon. */
const BUSY_RETRY_SECONDS = 5

const LEASE = 'CAST(json_extract(leases, $process) AS BIGINT)'

/**
 * Applies one `LimitDelta` (parameters `$limitId`, `$delta`, `$leased`, `$resetAt`, and `$process` from `leasePath`): what
 * was leased is now used. A later window starts at zero; a turn that ends after its window adds nothing to the next.
 */
export const deltaStatement = `
UPDATE api_key_limits SET
  current_value = CASE WHEN reset_at = $resetAt THEN current_value + $delta ELSE $delta END,
  leases = CASE
    WHEN reset_at < $resetAt THEN '{}'
    WHEN ${LEASE} > $leased THEN json_set(leases, $process, ${LEASE} - $leased)
    ELSE json_remove(leases, $process) END,
  reset_at = $resetAt
WHERE id = $limitId AND reset_at <= $resetAt`

/** Where a row has the lease of the process with this number. */
export const leasePath = (process: number): string => `$."${process}"`

/** One byte counts as one token, up to 8,192; settling corrects it. */
export const estimateTokens = (bodyBytes: number): Pick<Use, 'inputTokens' | 'outputTokens'> => ({
  inputTokens: Math.min(bodyBytes, INPUT_CAP_TOKENS),
  outputTokens: OUTPUT_TOKENS,
})

/**
 * Reserves in every limit for the model, or in none: checking and reserving are one synchronous step, so no more is
 * reserved than was leased. Null: more has to be leased first (`shortages`). Throws `rate_limit_exceeded` with the time
 * until the reset, and with `resets_at` when no running turn can free room before it.
 */
export const reserve = (policy: Limited, estimate: Estimate, now: number): Reservation | null => {
  const limits = limitsFor(policy, estimate.model)
  if (limits.length === 0) return NOTHING_HELD
  for (const limit of limits) requireRoom(limit, now)
  const use = priced(estimate)
  if (limits.some((limit) => isShort(limit, use, now))) return null
  return new Holds(limits.map((limit) => hold(limit, use)))
}

/** The limits that have less leased than a turn is expected to use, and how much that is. */
export const shortages = (policy: Limited, estimate: Estimate, now: number): { limit: LiveLimit; amount: number }[] => {
  const use = priced(estimate)
  return limitsFor(policy, estimate.model)
    .filter((limit) => isShort(limit, use, now))
    .map((limit) => ({ limit, amount: wantedOf(limit, use) }))
}

/** The error of the full limit for a turn of `model` that resets last, or null. Changes nothing. */
export const getLimitError = (policy: Limited, model: string | null, now: number): AppError | null => {
  const full = limitsFor(policy, model).filter(
    (limit) => isRunning(now, limit.resetAt, limit.window) && !hasRoom(limit),
  )
  const last = full.toSorted((a, b) => b.resetAt - a.resetAt)[0]
  return last ? exceeded(last, now) : null
}

/** Moves the limit to the window at `now`, if it is not the current one. */
export const rollOver = (limit: LiveLimit, now: number): void => {
  if (isRunning(now, limit.resetAt, limit.window)) return
  startWindow(limit, resetAfter(now, limit.resetAt, limit.window))
}

/** Nothing is used, reserved or leased in a new window. */
export const startWindow = (limit: LiveLimit, resetAt: number): void => {
  Object.assign(limit, { resetAt, settled: 0, reserved: 0, free: 0, shortUntil: 0 })
}

interface Limited {
  limits: readonly LiveLimit[]
}

const limitsFor = ({ limits }: Limited, model: string | null): LiveLimit[] =>
  limits.filter(({ modelFilter }) => modelFilter === '' || modelFilter === model)

interface Hold {
  limit: LiveLimit
  amount: number
  resetAt: number
}

const NO_HOLDS: readonly Hold[] = Object.freeze([])
const NO_DELTAS: readonly LimitDelta[] = Object.freeze([])
const NOTHING_HELD: Reservation = Object.freeze({ settle: () => NO_DELTAS })

/** What each kind of limit counts. */
const AMOUNT: Record<LimitType, (use: Use) => number> = {
  requests: () => 1,
  total_tokens: (use) => use.inputTokens + use.outputTokens,
  input_tokens: (use) => use.inputTokens,
  output_tokens: (use) => use.outputTokens,
  cost_usd: (use) => use.costMicros ?? 0,
}

const unpricedMicros = ({ inputTokens, outputTokens }: Use): number =>
  Math.ceil((inputTokens + outputTokens) * UNPRICED_MICROS_PER_TOKEN)

const priced = (estimate: Estimate): Use => ({
  ...estimate,
  costMicros: estimate.costMicros ?? unpricedMicros(estimate),
})

const requireRoom = (limit: LiveLimit, now: number): void => {
  rollOver(limit, now)
  if (!hasRoom(limit) || (limit.free <= 0 && now < limit.shortUntil)) throw exceeded(limit, now)
}

/** A lowered maximum applies immediately, whatever is leased. */
const availableIn = ({ free, maxValue, settled, reserved }: LiveLimit): number =>
  Math.min(free, maxValue - settled - reserved)

/** Every turn needs some room, even if it is expected to use nothing. */
const wantedOf = ({ type }: LiveLimit, use: Use): number => Math.max(1, AMOUNT[type](use))

const isShort = (limit: LiveLimit, use: Use, now: number): boolean =>
  now >= limit.shortUntil && limit.free < wantedOf(limit, use)

const hasRoom = ({ settled, reserved, maxValue }: LiveLimit): boolean => settled + reserved < maxValue

const exceeded = (limit: LiveLimit, now: number): AppError => {
  const scope = limit.modelFilter === '' ? '' : ` for model ${limit.modelFilter}`
  const message = `API key ${limit.type} ${limit.window} limit exceeded${scope}. Usage resets at ${iso(limit.resetAt)}.`
  if (limit.settled < limit.maxValue)
    return new AppError('rate_limit_exceeded', { message, retryAfterSeconds: BUSY_RETRY_SECONDS })
  const envelope = resetMembers(limit.resetAt, now)
  return new AppError('rate_limit_exceeded', { message, retryAfterSeconds: envelope.resets_in_seconds, envelope })
}

/** The last turn before the limit is admitted with what is left. */
const hold = (limit: LiveLimit, use: Use): Hold => {
  const amount = Math.min(AMOUNT[limit.type](use), availableIn(limit))
  limit.reserved += amount
  limit.free -= amount
  return { limit, amount, resetAt: limit.resetAt }
}

class Holds implements Reservation {
  #holds: readonly Hold[]

  constructor(holds: readonly Hold[]) {
    this.#holds = holds
  }

  settle(actual: Use | null): readonly LimitDelta[] {
    const holds = this.#holds
    this.#holds = NO_HOLDS
    return holds.flatMap((held) => settleOne(held, actual))
  }
}

const settleOne = ({ limit, amount, resetAt }: Hold, actual: Use | null): LimitDelta[] => {
  const delta = actual ? AMOUNT[limit.type](actual) : 0
  let leased = delta
  if (limit.resetAt === resetAt) {
    leased = Math.min(delta, amount + limit.free)
    limit.reserved -= amount
    limit.free += amount - leased
    limit.settled += delta
  }
  const isMisdated = resetAt > limit.resetAt // admitted by a clock that was ahead
  return delta > 0 && !isMisdated ? [{ limitId: limit.id, keyId: limit.keyId, delta, leased, resetAt }] : []
}
