/** Replays the log against every routing strategy, so that they can be compared (`/reports/strategies`). */
import type { Db } from '../../../db/commit.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { seededFloats } from '../../lib/random.ts'
import { firstArrival } from '../../model/replay/request-units.ts'
import type { Range, StrategyReport, StrategyResult } from '../../model/replay/strategy-report.ts'
import { STRATEGIES } from '../../settings/schema.ts'
import type { Strategy } from '../pool/policies.ts'
import { type Outcome, type ReplayWorld, simulate } from './simulate.ts'
import { storedAccounts, storedArrivals, storedPolicy } from './stored-world.ts'

/** Runs per strategy, each with its own random numbers. */
export const SEEDS = 20
/** Fewer days of requests do not show a whole week. */
const ENOUGH_DAYS = 7

export interface StrategyQuestion {
  days: number
  seed: number
  /** ms since epoch */
  now: number
}

/** `onProgress` gets the finished share, 0 to 1. */
export const compareStrategies = (
  db: Db,
  { days, seed, now }: StrategyQuestion,
  onProgress: (share: number) => void = () => {},
): StrategyReport => {
  const since = now - days * DAY_MS
  const from = firstArrival(db, since) ?? now
  const { arrivals, rates, requests, each } = storedArrivals(db, from, now)
  const accounts = storedAccounts(db, { at: from, asOf: 'unused' })
  const world: ReplayWorld = { accounts, arrivals, from, to: now, ...storedPolicy(db) }
  const coveredDays = (now - from) / DAY_MS
  return {
    days,
    seed,
    requests,
    sufficient: coveredDays >= ENOUGH_DAYS,
    coveredDays: Math.floor(coveredDays * 10) / 10,
    isMeasured: rates.isMeasured,
    strategies: STRATEGIES.map((name, n) =>
      getResult(
        name,
        strategyOutcomes(world, name, { seed, onProgress: (share) => onProgress((n + share) / STRATEGIES.length) }),
        each,
      ),
    ),
  }
}

interface Seeded {
  seed: number
  onProgress: (share: number) => void
}

/** One outcome per seed. Strategies that use no random numbers have the same one for all. */
export const strategyOutcomes = (world: ReplayWorld, strategy: Strategy, { seed, onProgress }: Seeded): Outcome[] => {
  const runWorld = { ...world, policy: { ...world.policy, strategy } }
  const outcomes: Outcome[] = []
  for (let run = 0; run < SEEDS; run++) {
    let isRandom = false
    const float = seededFloats(seed * SEEDS + run)
    const random = () => {
      isRandom = true
      return float()
    }
    outcomes.push(simulate(runWorld, { random }))
    onProgress((run + 1) / SEEDS)
    if (!isRandom) return Array.from({ length: SEEDS }, () => outcomes[0]!) // just pushed
  }
  return outcomes
}

const getResult = (name: Strategy, outcomes: readonly Outcome[], each: number): StrategyResult => {
  const rejected = outcomes.map((outcome) => outcome.rejected * each)
  const moves = outcomes.map((outcome) => outcome.moves * each)
  const unused = outcomes.flatMap(({ long }) => (long.credits === 0 ? [] : (100 * long.unused) / long.credits))
  return {
    name,
    rejected: average(rejected),
    moves: average(moves),
    unusedPercent: unused.length === 0 ? null : average(unused),
    spread: {
      rejected: getRange(rejected),
      moves: getRange(moves),
      unusedPercent: unused.length === 0 ? null : getRange(unused),
    },
  }
}

const average = (values: readonly number[]): number =>
  rounded(values.reduce((sum, value) => sum + value, 0) / values.length)

const getRange = (values: readonly number[]): Range => [rounded(Math.min(...values)), rounded(Math.max(...values))]

const rounded = (value: number): number => Math.round(value * 100) / 100
