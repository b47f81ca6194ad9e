/**
 * `GET /v1/capacity`: whether a request with this key could start now, and otherwise how long it would have to wait and
 * why.
 */
import { z } from 'zod'
import type { Ctx } from '../../boot/bindings.ts'
import { clientKey, restricted } from '../../http/gates.ts'
import { createHandlers } from '../../http/handlers.ts'
import { query } from '../../http/query.ts'
import { isoOrNull } from '../../lib/iso.ts'
import { claudeModel } from '../../model/catalog/claude-models.ts'
import type { KeyPolicy } from '../../model/keys/key-ring.ts'
import { isInScope } from '../../model/keys/key-scope.ts'
import { ownLimits, poolUsage } from '../../model/keys/key-usage.ts'
import { getMissingRoom } from '../../model/keys/limit-room.ts'
import { getLimitError } from '../../model/keys/reservations.ts'
import { dryRun } from '../../model/log/explain.ts'
import type { Selection } from '../../model/log/skip-reasons.ts'
import { poolMeters } from '../../model/overview/pool-meters.ts'
import { choicesFor } from '../../model/sources/sources.ts'
import { selectionError } from '../pool/selection-error.ts'
import { getKeyPolicy } from './key-usage.ts'

const MAX_TOKENS = 1e12
const MAX_WAIT_SECONDS = 366 * 86_400

export const CapacityQuestion = z.object({
  model: z.string().trim().min(1).max(200).optional().describe('The model of the request. Default: any.'),
  tokens: z.coerce
    .number()
    .int()
    .min(0)
    .max(MAX_TOKENS)
    .optional()
    .describe('Estimate of the tokens that the request needs.'),
  within: z.coerce
    .number()
    .int()
    .min(0)
    .max(MAX_WAIT_SECONDS)
    .default(0)
    .describe('How many seconds the request can wait. `can_start` is true if it could start by then.'),
})
export type CapacityQuestion = z.output<typeof CapacityQuestion>

export const showCapacity = createHandlers(
  clientKey('always'),
  restricted('local'),
  query(CapacityQuestion.strict()),
  (c) => c.json(getCapacity(c.env, getKeyPolicy(c), c.req.valid('query'))),
)

/**
 * Makes the same decision as routing, without calling the upstream. The pool is hidden in the same cases as in `GET
 * /v1/usage`.
 */
export const getCapacity = (
  env: Ctx['env'],
  key: KeyPolicy,
  {
    model: asked = null,
    tokens = 0,
    within = 0,
  }: Partial<Record<'tokens' | 'within', number>> & { model?: string | null },
) => {
  const now = env.clock.now()
  const named = key.enforcedModel ?? asked
  const rules = { policy: key, claudeModels: env.settings.current().claudeModels }
  const model = named === null ? null : (claudeModel(env.catalog, named, rules)?.slug ?? named)
  const account = getAccountObstacle(env, { key, model, now })
  const obstacle = getLongest([
    getKeyObstacle(key, { model, tokens, now }),
    account,
    getShareObstacle(env, { key, model, now }),
  ])
  const waits = obstacle === null ? 0 : obstacle.at === null ? null : Math.max(1, Math.ceil((obstacle.at - now) / 1000))
  return {
    can_start: waits !== null && waits <= within,
    account_available: account === null,
    waits_seconds: waits,
    why: obstacle?.why ?? null,
    pool: getPool(env, key, now),
    key: { limits: ownLimits(key, now) },
  }
}

/** Why a request cannot start now. */
interface Obstacle {
  /** When to try again (ms since epoch). Null if waiting does not help or the time is unknown. */
  at: number | null
  why: string
}

/** All of them must end before work can start. */
const getLongest = (obstacles: readonly (Obstacle | null)[]): Obstacle | null =>
  obstacles.reduce((longest, one) => {
    if (one === null || longest?.at === null) return longest
    return longest === null || one.at === null || one.at > longest.at ? one : longest
  }, null)

const getShareObstacle = (env: Ctx['env'], { key, model, now }: Asked): Obstacle | null => {
  if (hasSource(env, key, model)) return null
  const { error } = env.shares.foresee(key.ownerUserId)
  const wait = error?.extra.retryAfterSeconds
  return error && { at: wait === undefined ? null : now + wait * 1000, why: error.message }
}

interface Asked {
  key: KeyPolicy
  model: string | null
  now: number
}

const getKeyObstacle = (
  key: KeyPolicy,
  work: { model: string | null; tokens: number; now: number },
): Obstacle | null => {
  const { model, now } = work
  if (model !== null && key.allowedModels && !key.allowedModels.has(model))
    return { at: null, why: `This key is not allowed to use the model ${model}.` }
  const full = getLimitError(key, model, now)
  if (full) return { at: now + (full.extra.retryAfterSeconds ?? 0) * 1000, why: full.message }
  const missing = getMissingRoom(key, work)
  return missing && { at: missing.resetAt, why: missing.message }
}

const hasSource = (env: Ctx['env'], key: KeyPolicy, model: string | null): boolean =>
  choicesFor(env, { model, key, capability: 'responses', isStreamed: true }).length > 0

/** Null if an account or a model source would serve it. */
const getAccountObstacle = (env: Ctx['env'], { key, model, now }: Asked): Obstacle | null => {
  if (hasSource(env, key, model)) return null
  const selection = dryRun(env.pool, { model, key, settings: env.settings.current() })
  if (selection.kind === 'none' && selection.failure.kind === 'exhausted' && env.overflow.choiceFor(model, key))
    return null
  return toObstacle(selection, now)
}

/** The message of the error that the request would get. */
const toObstacle = (selection: Selection, now: number): Obstacle | null => {
  if (selection.kind === 'chosen') return null
  if (selection.kind === 'wait')
    return { at: now + BUSY_MS, why: 'Every available account is at its limit of parallel requests.' }
  const { failure } = selection
  return {
    at: failure.needsOperator ? null : (failure.resetsAt ?? failure.nextAt),
    why: selectionError(failure, now).message,
  }
}

/** A running request may end soon. */
const BUSY_MS = 5000

const getPool = ({ pool, clientLimits }: Ctx['env'], key: KeyPolicy, now: number) => {
  if (clientLimits.hidesPool(key) || !key.usageSections.has('account_pool_usage')) return null
  const left = poolUsage(clientLimits.forScope(key.scope).windows)
  const accounts = pool.describe().filter(({ accountId, tags }) => isInScope(key.scope, { id: accountId, tags }))
  const ends = poolMeters(accounts, now).flatMap(({ usedUpAt }) => usedUpAt ?? [])
  return {
    five_hour_left_percent: left?.primary ?? null,
    weekly_left_percent: left?.secondary ?? null,
    used_up_at: isoOrNull(ends.length === 0 ? null : Math.min(...ends)),
  }
}
