/** When to start which five-hour window, so that more of the expected requests are served: by replay. */
import type { Db } from '../../../db/commit.ts'
import { DAY_MS, HOUR_MS } from '../../lib/durations.ts'
import { listAccounts } from '../../model/accounts/accounts.ts'
import { cycleKey, decidedCycles, startsMadeOn } from '../../model/planner/decisions.ts'
import { ENOUGH_DAYS, type ForecastSlot, SLOT_MS } from '../../model/planner/demand.ts'
import { getWorkingDay, getWorkingTime, type WorkingTime } from '../../model/planner/working-time.ts'
import type { Settings } from '../../settings/schema.ts'
import { readSettings } from '../../settings/store.ts'
import { expectedWorld, type ReplayedSlots, replaySlots } from './forecast.ts'
import type { ReplayAccount, ReplayWorld } from './simulate.ts'

const HORIZON_HOURS = 36
/** Earlier than that a window would be over when work begins. */
const LEAD_MS = 5 * HOUR_MS
const STEP_MS = 2 * SLOT_MS
/** Accounts with equal windows are alike, so one of each kind is tried. */
const MAX_KINDS = 8

export interface Proposal {
  accountId: string
  /** ms since epoch */
  at: number
  /** Percent that is served more, between `from` and `to` (ms). */
  gainPercent: number
  from: number
  to: number
}

export interface StartPlan {
  sufficient: boolean
  coveredDays: number
  proposals: Proposal[]
}

/** Chooses the best start, then the best one beside it, until a gain is too small or the day has enough. */
export const planStarts = async (db: Db, { now }: { now: number }): Promise<StartPlan> => {
  const settings = (await readSettings(db)).values
  const { slots, world, coveredDays } = await expectedWorld(db, { horizonHours: HORIZON_HOURS, now })
  const plan: StartPlan = {
    sufficient: coveredDays >= ENOUGH_DAYS,
    coveredDays: Math.floor(coveredDays * 10) / 10,
    proposals: [],
  }
  if (!plan.sufficient) return plan
  const working = getWorkingTime(settings)
  const times = startTimes(working, now)
  const context = { db, settings, working, slots, times, now }
  let base = replaySlots(world, slots)
  while (base.rejectedUnits > 0) {
    const best = await bestStart(context, world, { base, chosen: plan.proposals })
    if (!best || best.proposal.gainPercent < settings.plannerMinGainPercent) break
    plan.proposals.push(best.proposal)
    base = best.replayed
  }
  return plan
}

interface Context {
  db: Db
  settings: Settings
  working: WorkingTime
  slots: readonly ForecastSlot[]
  times: readonly number[]
  now: number
}

/** Within a day: from five hours before work until its end, on working days, every half hour. */
const startTimes = (working: WorkingTime, now: number): number[] => {
  const first = Math.ceil((now + 1) / STEP_MS) * STEP_MS
  const all = Array.from({ length: DAY_MS / STEP_MS }, (_, n) => first + n * STEP_MS)
  const isWorkday = (at: number) => working.days.has((new Date(getWorkingDay(working, at).date).getUTCDay() + 6) % 7)
  return all.filter((at) =>
    [at - DAY_MS, at, at + DAY_MS].some((day) => {
      const { from, to } = getWorkingDay(working, day)
      return isWorkday(day) && at >= from - LEAD_MS && at < to
    }),
  )
}

interface PlanState {
  base: ReplayedSlots
  chosen: readonly Proposal[]
}

const bestStart = async (context: Context, world: ReplayWorld, { base, chosen }: PlanState) => {
  const { slots, times, working } = context
  let best: { proposal: Proposal; credits: number; replayed: ReplayedSlots } | null = null
  const counts = new Map<string, number>()
  for (const at of times) {
    const { date } = getWorkingDay(working, at)
    const planned = counts.get(date) ?? (await startsMadeOn(context.db, date))
    counts.set(date, planned)
    const own = chosen.filter((proposal) => getWorkingDay(working, proposal.at).date === date).length
    if (planned + own >= context.settings.plannerMaxStartsPerDay) continue
    for (const account of await getKinds(context, world.accounts, { date, chosen })) {
      const starts = [...chosen, { accountId: account.id, at }].toSorted((a, b) => a.at - b.at)
      const replayed = replaySlots({ ...world, starts }, slots)
      const gain = getGain(base, replayed, slots)
      if (gain && gain.credits > (best?.credits ?? 0)) {
        const { credits, ...figures } = gain
        best = { proposal: { accountId: account.id, at, ...figures }, credits, replayed }
      }
    }
  }
  return best
}

/** One account of each kind that may be started on the day. */
const getKinds = async (
  { db, settings, now }: Context,
  accounts: readonly ReplayAccount[],
  { date, chosen }: { date: string; chosen: readonly Proposal[] },
): Promise<ReplayAccount[]> => {
  const decided = await decidedCycles(db, now)
  const enabled = new Set(
    (await listAccounts(db)).flatMap(({ id, windowStartEnabled }) => (windowStartEnabled ? id : [])),
  )
  const usable = accounts.filter(
    ({ id, fiveHour, routingPolicy }) =>
      fiveHour !== null &&
      routingPolicy !== 'preserve' &&
      (settings.plannerMode !== 'act' || enabled.has(id)) &&
      !decided.has(cycleKey(id, date)) &&
      !chosen.some((proposal) => proposal.accountId === id),
  )
  const kind = ({ planType, routingPolicy, fiveHour, long, position }: ReplayAccount) =>
    JSON.stringify([planType, routingPolicy, fiveHour, long, position])
  return [...new Map(usable.toReversed().map((account) => [kind(account), account])).values()].slice(0, MAX_KINDS)
}

const getGain = (base: ReplayedSlots, replayed: ReplayedSlots, slots: readonly ForecastSlot[]) => {
  const more = replayed.served.map((served, n) => served - (base.served[n] ?? 0))
  const first = more.findIndex((credits) => credits > 0)
  if (first < 0) return null
  const last = more.findLastIndex((credits) => credits > 0)
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const credits = sum(more)
  const before = sum(base.served.slice(first, last + 1))
  return {
    credits,
    gainPercent: Math.round(before === 0 ? 100 : (1000 * credits) / before) / (before === 0 ? 1 : 10),
    from: slots[first]!.start, // an index of the list, as below
    to: slots[last]!.start + SLOT_MS,
  }
}
