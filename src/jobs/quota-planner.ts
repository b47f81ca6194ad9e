/** The quota planner: plans starts of five-hour windows once an hour and, in the mode `act`, makes them. */
import { commit } from '../../db/commit.ts'
import { commitResult } from '../../db/commit-again.ts'
import { HOUR_MS, MINUTE_MS } from '../lib/durations.ts'
import type { Work } from '../lib/schedule.ts'
import { startWindow } from '../model/accounts/start-window.ts'
import {
  cycleKey,
  type Decision,
  dropPlans,
  dueDecisions,
  endDecision,
  LATE_MS,
  storePlan,
} from '../model/planner/decisions.ts'
import { failureText, gainText, startProblem } from '../model/planner/starts.ts'
import { getWorkingDay, getWorkingTime } from '../model/planner/working-time.ts'
import type { Replayer } from '../threads/replayer.ts'
import { isOpen, untilStopped, type WindowStartDeps } from './window-starts.ts'

export const QUOTA_PLANNER_BEAT_MS = MINUTE_MS

export interface QuotaPlannerDeps extends WindowStartDeps {
  random: { id(prefix: string): string }
  replayer: Pick<Replayer, 'ask'>
}

/** A start is claimed as a window start before its request, so it is made once, also across restarts. */
export const quotaPlannerJob = (deps: QuotaPlannerDeps): Work => {
  let planned: { at: number; version: string } | null = null
  return async (signal) => {
    const { db, clock, settings } = deps
    const { plannerMode } = settings.current()
    if (plannerMode === 'off') {
      planned = null
      if ((await dueDecisions(db, Number.MAX_SAFE_INTEGER - 1)).length > 0) await commit(db, dropPlans)
      return
    }
    for (const decision of await dueDecisions(db, clock.now())) await makePlannedStart(deps, decision, signal)
    const version = JSON.stringify(settings.current())
    if (planned?.version === version && clock.now() - planned.at < HOUR_MS) return
    await plan(deps, signal)
    planned = { at: clock.now(), version }
  }
}

const plan = async (
  { db, clock, settings, random, replayer }: QuotaPlannerDeps,
  signal: AbortSignal,
): Promise<void> => {
  const now = clock.now()
  const { proposals } = await replayer.ask('plan', { now }, signal)
  const current = settings.current()
  const working = getWorkingTime(current)
  if (current.plannerMode === 'off') return
  const mode = current.plannerMode
  const decisions = proposals.map(({ accountId, at, gainPercent, from, to }) => ({
    id: random.id('plan'),
    createdAt: now,
    mode,
    accountId,
    scheduledAt: at,
    gainPercent,
    gainFrom: from,
    gainTo: to,
    status: 'planned' as const,
    reason: gainText({ gainPercent, from, to }, working.zone),
    idempotencyKey: cycleKey(accountId, getWorkingDay(working, at).date),
  }))
  await commit(db, (tx) => storePlan(tx, decisions, now))
}

const makePlannedStart = async (deps: QuotaPlannerDeps, decision: Decision, signal: AbortSignal): Promise<void> => {
  const { clock, pool, settings } = deps
  const { id, scheduledAt, accountId } = decision
  const end = (how: Parameters<typeof endDecision>[2]) => commitResult(deps, (tx) => endDecision(tx, id, how))
  const skip = (reason: string) => end({ status: 'skipped', reason })
  const now = clock.now()
  if (decision.mode !== 'act' || settings.current().plannerMode !== 'act')
    return skip('The planner only advised this start.')
  if (now - scheduledAt >= LATE_MS) return skip('Sluice was not running at that time.')
  if (!isOpen(deps)) return // tried again at the next beat
  const account = pool.all().find((other) => other.id === accountId)
  const problem = account
    ? account.row.windowStartEnabled
      ? startProblem(account, pool.all(), now)
      : 'Window starts are off for this account.'
    : 'The account was deleted.'
  if (!account || problem !== null) return skip(problem ?? '')
  const model = settings.current().windowStartModel
  const start = { accountId: account.id, resetAt: scheduledAt, model }
  const result = await startWindow(deps, start, untilStopped(deps, signal))
  if (result.kind === 'failed') return skip(failureText(result.error))
  await end({
    status: 'executed',
    reason: decision.reason,
    executedAt: clock.now(),
    model: result.kind === 'started' ? result.model : null,
  })
}
