/** Decisions of the quota planner as rows: one per account and cycle, which is a day in the planner's time zone. */
import { and, desc, eq, gt, inArray, like, lt, ne, notInArray } from 'drizzle-orm'
import type { Db, Tx } from '../../../db/commit.ts'
import { plannerDecisions } from '../../../db/schema/planner.ts'
import { AppError } from '../../errors.ts'
import { DAY_MS, MINUTE_MS } from '../../lib/durations.ts'

export type Decision = typeof plannerDecisions.$inferSelect
type NewDecision = typeof plannerDecisions.$inferInsert

/** A start that could not be made within this time is skipped. */
export const LATE_MS = 10 * MINUTE_MS
const KEPT_MS = 90 * DAY_MS

/** `date` is YYYY-MM-DD. */
export const cycleKey = (accountId: string, date: string): string => `${date}:${accountId}`

/** Keys of cycles that are decided for good. */
export const decidedCycles = async (db: Db, now: number): Promise<ReadonlySet<string>> =>
  new Set(
    (
      await db
        .select({ key: plannerDecisions.idempotencyKey })
        .from(plannerDecisions)
        .where(and(ne(plannerDecisions.status, 'planned'), gt(plannerDecisions.scheduledAt, now - 2 * DAY_MS)))
        .all()
    ).map(({ key }) => key),
  )

/** Starts of the day that were made. */
export const startsMadeOn = async (db: Db, date: string): Promise<number> =>
  (
    await db
      .select({ id: plannerDecisions.id })
      .from(plannerDecisions)
      .where(and(like(plannerDecisions.idempotencyKey, `${date}:%`), eq(plannerDecisions.status, 'executed')))
      .all()
  ).length

/** Newest start first. */
export const listDecisions = (db: Db, limit: number): Promise<Decision[]> =>
  db
    .select()
    .from(plannerDecisions)
    .orderBy(desc(plannerDecisions.scheduledAt), desc(plannerDecisions.id))
    .limit(limit)
    .all()

/**
 * Stores a new plan: decisions still ahead that it does not repeat are dropped, and times and gains are updated. What was
 * executed, skipped or canceled stays as it is.
 */
export const storePlan = async (tx: Tx, planned: readonly NewDecision[], now: number): Promise<void> => {
  const ahead = and(eq(plannerDecisions.status, 'planned'), gt(plannerDecisions.scheduledAt, now))
  const keys = planned.map(({ idempotencyKey }) => idempotencyKey)
  await tx
    .delete(plannerDecisions)
    .where(and(ahead, notInArray(plannerDecisions.idempotencyKey, keys)))
    .run()
  await tx
    .delete(plannerDecisions)
    .where(lt(plannerDecisions.scheduledAt, now - KEPT_MS))
    .run()
  for (const decision of planned) {
    const { mode, scheduledAt, gainPercent, gainFrom, gainTo, reason } = decision
    await tx
      .insert(plannerDecisions)
      .values(decision)
      .onConflictDoUpdate({
        target: plannerDecisions.idempotencyKey,
        set: { mode, scheduledAt, gainPercent, gainFrom, gainTo, reason },
        setWhere: ahead,
      })
      .run()
  }
}

/** Planned starts whose time has come, also those that are late. */
export const dueDecisions = (db: Db, now: number): Promise<Decision[]> =>
  db
    .select()
    .from(plannerDecisions)
    .where(and(eq(plannerDecisions.status, 'planned'), lt(plannerDecisions.scheduledAt, now + 1)))
    .orderBy(plannerDecisions.scheduledAt)
    .all()

/** Only a planned decision ends, and once. */
export const endDecision = async (
  tx: Tx,
  id: string,
  end: Pick<Decision, 'status' | 'reason'> & Partial<Pick<Decision, 'executedAt' | 'model'>>,
): Promise<void> => {
  await tx
    .update(plannerDecisions)
    .set(end)
    .where(and(eq(plannerDecisions.id, id), eq(plannerDecisions.status, 'planned')))
    .run()
}

/**
 * Throws `quota_planner_decision_not_found`, and `invalid_quota_planner` for a start that was made or skipped, or whose
 * time has come: its request may be running.
 */
export const cancelDecision = async (tx: Tx, id: string, now: number): Promise<Decision> => {
  const found = await tx.select().from(plannerDecisions).where(eq(plannerDecisions.id, id)).get()
  if (!found) throw new AppError('quota_planner_decision_not_found')
  if (found.status === 'executed' || found.status === 'skipped')
    throw new AppError('invalid_quota_planner', {
      message: 'Only a planned start can be canceled. This one was made or skipped.',
    })
  if (found.status === 'planned' && found.scheduledAt <= now)
    throw new AppError('invalid_quota_planner', {
      message: 'The time of this start has come, so it can no longer be canceled.',
    })
  if (found.status === 'planned') await endDecision(tx, id, { status: 'canceled', reason: 'Canceled by a user.' })
  return { ...found, status: 'canceled', reason: found.status === 'planned' ? 'Canceled by a user.' : found.reason }
}

/** A start that a user requested. */
export const addManualDecision = async (tx: Tx, decision: Omit<NewDecision, 'mode'>): Promise<void> => {
  await tx
    .insert(plannerDecisions)
    .values({ ...decision, mode: 'manual' })
    .run()
}

/** Drops plans that are still ahead: the planner was turned off. */
export const dropPlans = async (tx: Tx): Promise<void> => {
  await tx
    .delete(plannerDecisions)
    .where(and(inArray(plannerDecisions.status, ['planned']), ne(plannerDecisions.mode, 'manual')))
    .run()
}
