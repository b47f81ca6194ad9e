/** The limits of API keys as rows: their windows, and replacing a list of limits. */
import { and, eq, gte, isNotNull, lt, ne, notInArray, or, type SQL, sql } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { apiKeyLimits, type LimitType, type LimitWindow } from '../../../db/schema/keys.ts'
import { requestHours, requests } from '../../../db/schema/requests.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import type { Random } from '../../lib/random.ts'
import { HOUR_SUMS, total } from '../sums.ts'
import type { LimitInput } from './key-input.ts'

export type LimitRow = typeof apiKeyLimits.$inferSelect

/** Two limits of one key with equal identity are the same limit. */
export const limitIdentity = (limit: Omit<LimitInput, 'maxValue'>): string =>
  [limit.limitType, limit.limitWindow, limit.modelFilter].join(' ')

export const LIMIT_ORDER = [apiKeyLimits.limitType, apiKeyLimits.limitWindow, apiKeyLimits.modelFilter] as const

export const WINDOW_MS: Readonly<Record<LimitWindow, number>> = {
  '5h': 5 * HOUR_MS,
  daily: DAY_MS,
  '7d': 7 * DAY_MS,
  weekly: 7 * DAY_MS,
  monthly: 30 * DAY_MS,
}

/**
 * Whether the window ending at `resetAt` (ms) is the current one at `now`. A window too far ahead comes from a wrong
 * clock; small corrections are tolerated.
 */
export const isRunning = (now: number, resetAt: number, window: LimitWindow): boolean =>
  resetAt > now && resetAt <= now + 2 * WINDOW_MS[window]

/** When the current window at `now` ends (ms), in whole periods from the stored `resetAt`. */
export const resetAfter = (now: number, resetAt: number, window: LimitWindow): number => {
  if (isRunning(now, resetAt, window)) return resetAt
  const periodMs = WINDOW_MS[window]
  return resetAt + (Math.floor((now - resetAt) / periodMs) + 1) * periodMs
}

/**
 * Replaces the key's limits. Existing ones keep their use and reset; a new one starts a window now, including what the
 * key used in the period before.
 */
export const replaceLimits = async (
  tx: Tx,
  keyId: string,
  wanted: readonly LimitInput[],
  { random, now }: { random: Random; now: number },
): Promise<void> => {
  const obsolete = new Map((await getLimits(tx, keyId)).map((row) => [limitIdentity(row), row.id]))
  for (const limit of wanted) {
    const id = obsolete.get(limitIdentity(limit))
    obsolete.delete(limitIdentity(limit))
    if (id) await tx.update(apiKeyLimits).set({ maxValue: limit.maxValue }).where(eq(apiKeyLimits.id, id)).run()
    else await insertLimit(tx, { ...limit, id: random.id('lim'), keyId }, now)
  }
  for (const id of obsolete.values()) await tx.delete(apiKeyLimits).where(eq(apiKeyLimits.id, id)).run()
}

/** A limit and its use, from another installation. */
export type KeptLimit = LimitInput & Pick<LimitRow, 'currentValue' | 'resetAt'>

/** Sets how much of each limit was used and when it resets. */
export const restoreUse = async (tx: Tx, keyId: string, limits: readonly KeptLimit[]): Promise<void> => {
  for (const { limitType, limitWindow, modelFilter, currentValue, resetAt } of limits)
    await tx
      .update(apiKeyLimits)
      .set({ currentValue, resetAt })
      .where(
        and(
          eq(apiKeyLimits.keyId, keyId),
          eq(apiKeyLimits.limitType, limitType),
          eq(apiKeyLimits.limitWindow, limitWindow),
          eq(apiKeyLimits.modelFilter, modelFilter),
        ),
      )
      .run()
}

/** Resets the key's counters to zero; windows end as before. */
export const zeroLimits = async (tx: Tx, keyId: string): Promise<void> => {
  await tx.update(apiKeyLimits).set({ currentValue: 0 }).where(eq(apiKeyLimits.keyId, keyId)).run()
}

export const getLimits = (db: Db, keyId: string): Promise<LimitRow[]> =>
  db
    .select()
    .from(apiKeyLimits)
    .where(eq(apiKeyLimits.keyId, keyId))
    .orderBy(...LIMIT_ORDER)
    .all()

/** By all processes. */
export const leasedOf = ({ leases }: Pick<LimitRow, 'leases'>): number =>
  Object.values(leases).reduce((sum, amount) => sum + amount, 0)

export const limitsInUse = (db: Db): Promise<LimitRow[]> =>
  db.select().from(apiKeyLimits).where(ne(apiKeyLimits.leases, {})).all()

type NewLimit = LimitInput & { id: string; keyId: string }

const insertLimit = async (tx: Tx, limit: NewLimit, now: number): Promise<void> => {
  const periodMs = WINDOW_MS[limit.limitWindow]
  await tx
    .insert(apiKeyLimits)
    .values({ ...limit, currentValue: await usedSince(tx, limit, now - periodMs), resetAt: now + periodMs })
    .run()
}

/**
 * The use a limit counting from `since` (ms) has now: whole hours from the hourly totals, which are kept longer and
 * fast to read, and the part of an hour before them from the log.
 */
const usedSince = async (db: Db, limit: NewLimit, since: number): Promise<number> => {
  const firstHour = Math.ceil(since / HOUR_MS) * HOUR_MS
  return (await loggedIn(db, limit, { from: since, to: firstHour })) + (await summedFrom(db, limit, firstHour))
}

/**
 * Without an account nothing was charged. Otherwise the totals are approximate: failed requests are not counted,
 * although those failing midway may have been charged; cancelled ones, resends and prewarms are.
 */
const summedFrom = async (db: Db, { keyId, limitType, modelFilter }: NewLimit, hour: number): Promise<number> => {
  const isOfModel = modelFilter === '' ? undefined : eq(requestHours.model, modelFilter)
  const wasAsked = ne(requestHours.accountId, '')
  const used = await db
    .select({ amount: SUMMED[limitType] })
    .from(requestHours)
    .where(and(eq(requestHours.keyId, keyId), gte(requestHours.hour, hour), wasAsked, isOfModel))
    .get()
  return used?.amount ?? 0
}

const loggedIn = async (
  db: Db,
  { keyId, limitType, modelFilter }: NewLimit,
  { from, to }: { from: number; to: number },
): Promise<number> => {
  const isOfModel = modelFilter === '' ? undefined : eq(requests.model, modelFilter)
  const used = await db
    .select({ amount: LOGGED[limitType] })
    .from(requests)
    .where(
      and(
        eq(requests.keyId, keyId),
        gte(requests.startedAt, from),
        lt(requests.startedAt, to),
        notInArray(requests.kind, ['prewarm', 'warmup']),
        IS_CHARGED,
        isOfModel,
      ),
    )
    .get()
  return used?.amount ?? 0
}

/** The result of the last attempt, as the upstream answered it or was still working on it. */
const WAS_WORKED_ON = sql`(
  SELECT outcome FROM attempts WHERE attempts.request_row_id = ${requests.id} ORDER BY n DESC LIMIT 1
) IN ('ok', 'cancelled')`

/**
 * A row counts if it was charged: it succeeded, or was cut off while the upstream worked on it. The latter shows in the
 * tokens of a model request, and in the attempts of a relayed one. The WebSocket of a live call was counted with the call.
 */
const IS_CHARGED = and(
  or(
    eq(requests.status, 'ok'),
    isNotNull(requests.inputTokens),
    and(eq(requests.status, 'error'), eq(requests.phase, 'stream')),
    and(eq(requests.status, 'cancelled'), isNotNull(requests.upstreamTransport), WAS_WORKED_ON),
  ),
  or(ne(requests.kind, 'live'), eq(requests.transport, 'http')),
)

/** What each kind of limit counts; the same amounts as in `reservations.ts`. */
const SUMMED: Record<LimitType, SQL<number>> = {
  requests: sql`${HOUR_SUMS.requests} - ${HOUR_SUMS.errors}`,
  total_tokens: sql`${HOUR_SUMS.inputTokens} + ${HOUR_SUMS.outputTokens}`,
  input_tokens: HOUR_SUMS.inputTokens,
  output_tokens: HOUR_SUMS.outputTokens,
  cost_usd: HOUR_SUMS.costMicros,
}

const LOGGED: Record<LimitType, SQL<number>> = {
  requests: sql`count(*)`,
  total_tokens: total(sql`coalesce(${requests.inputTokens}, 0) + coalesce(${requests.outputTokens}, 0)`),
  input_tokens: total(requests.inputTokens),
  output_tokens: total(requests.outputTokens),
  cost_usd: total(requests.costMicros),
}
