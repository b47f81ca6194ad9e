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
  /** Used by ended turns of this window. */
  settled: number
  /** Reserved for running turns of this window. */
  reserved: number
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
  /** End of the window in which the turn was admitted (ms). */
  resetAt: number
  /** End of the current window (ms); a row ending later was written by a clock that was ahead. */
  latest: number
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

/**
 * Applies one `LimitDelta` (parameters `$limitId`, `$delta`, `$resetAt`, `$latest`). A later window starts at zero; a
 * turn that ends after its window adds nothing to the next.
 */
export const deltaStatement = `
UPDATE api_key_limits SET
  current_value = CASE
    WHEN reset_at = $resetAt THEN current_value + $delta
    WHEN reset_at < $resetAt OR reset_at > $latest THEN $delta
    ELSE current_value END,
  reset_at = CASE WHEN reset_at > $latest THEN $resetAt ELSE max(reset_at, $resetAt) END
WHERE id = $limitId`

/** One byte counts as one token, up to 8,192; settling corrects it. */
export const estimateTokens = (bodyBytes: number): Pick<Use, 'inputTokens' | 'outputTokens'> => ({
  inputTokens: Math.min(bodyBytes, INPUT_CAP_TOKENS),
  outputTokens: OUTPUT_TOKENS,
})

/**
 * Reserves in every limit for the model, or in none: checking and reserving are one synchronous step, so settled plus
 * reserved never exceeds the maximum. Throws `rate_limit_exceeded` with the time until the reset, and with `resets_at`
 * when no running turn can free room before it.
 */
export const reserve = (policy: Limited, estimate: Estimate, now: number): Reservation => {
  const limits = limitsFor(policy, estimate.model)
  if (limits.length === 0) return NOTHING_HELD
  for (const limit of limits) requireRoom(limit, now)
  const use = { ...estimate, costMicros: estimate.costMicros ?? unpricedMicros(estimate) }
  return new Holds(limits.map((limit) => hold(limit, use)))
}

/** The error `reserve` would throw for a turn of `model` at `now`, or null. Changes nothing. */
export const getLimitError = (policy: Limited, model: string | null, now: number): AppError | null => {
  const full = limitsFor(policy, model).find((limit) => isRunning(now, limit.resetAt, limit.window) && !hasRoom(limit))
  return full ? exceeded(full, now) : null
}

/** Moves the limit to the window at `now`, if it is not the current one. */
export const rollOver = (limit: LiveLimit, now: number): void => {
  if (isRunning(now, limit.resetAt, limit.window)) return
  Object.assign(limit, { resetAt: resetAfter(now, limit.resetAt, limit.window), settled: 0, reserved: 0 })
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

const requireRoom = (limit: LiveLimit, now: number): void => {
  rollOver(limit, now)
  if (!hasRoom(limit)) throw exceeded(limit, now)
}

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
  const amount = Math.min(AMOUNT[limit.type](use), limit.maxValue - limit.settled - limit.reserved)
  limit.reserved += amount
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
  if (limit.resetAt === resetAt) {
    limit.reserved -= amount
    limit.settled += delta
  }
  const isMisdated = resetAt > limit.resetAt // admitted by a clock that was ahead
  return delta > 0 && !isMisdated
    ? [{ limitId: limit.id, keyId: limit.keyId, delta, resetAt, latest: limit.resetAt }]
    : []
}
