/** Replays the log against every routing strategy, so that they can be compared (`/reports/strategies`). */
import type { Db } from '../../../db/commit.ts'
import { DAY_MS } from '../../lib/durations.ts'
import { seededFloats } from '../../lib/random.ts'
import { firstArrival } from '../../model/log/request-units.ts'
import type { MoveRuleResult, Range, StrategyReport, StrategyResult } from '../../model/replay/strategy-report.ts'
import { STRATEGIES } from '../../settings/schema.ts'
import type { Strategy } from '../pool/policies.ts'
import { type Outcome, type ReplayWorld, simulate } from './simulate.ts'
import { storedAccounts, storedArrivals, storedPolicy } from './stored-world.ts'

/** Runs per strategy, each with its own random numbers. */
export const SEEDS = 20
/** Runs for the comparison of both rules for moves, with the same random numbers. */
const RULE_SEEDS = 5
/** Fewer days of requests do not show a whole week. */
const ENOUGH_DAYS = 7

export interface StrategyQuestion {
  days: number
  seed: number
  /** ms since epoch */
  now: number
}

/** `onProgress` gets the finished share, 0 to 1. */
export const compareStrategies = async (
  db: Db,
  { days, seed, now }: StrategyQuestion,
  onProgress: (share: number) => void = () => {},
): Promise<StrategyReport> => {
  const since = now - days * DAY_MS
  const from = (await firstArrival(db, since)) ?? now
  const { arrivals, rates, requests, each } = await storedArrivals(db, from, now)
  const accounts = await storedAccounts(db, { at: from, asOf: 'unused' })
  const world: ReplayWorld = { accounts, arrivals, from, to: now, ...(await storedPolicy(db, rates)) }
  const coveredDays = (now - from) / DAY_MS
  const steps = STRATEGIES.length + 1
  const seeded = (step: number) => ({ seed, onProgress: (share: number) => onProgress((step + share) / steps) })
  const outcomes = new Map(STRATEGIES.map((name, step) => [name, strategyOutcomes(world, name, seeded(step))]))
  const { strategy } = world.policy
  const fixed = { ...world, ignoresPrices: true }
  return {
    days,
    seed,
    requests,
    sufficient: coveredDays >= ENOUGH_DAYS,
    coveredDays: Math.floor(coveredDays * 10) / 10,
    isMeasured: rates.isMeasured,
    strategies: [...outcomes].map(([name, found]) => getResult(name, found, each)),
    moveRules: {
      priced: getRuleResult(outcomes.get(strategy)!.slice(0, RULE_SEEDS), each), // every strategy was run
      fixed: getRuleResult(strategyOutcomes(fixed, strategy, { ...seeded(steps - 1), runs: RULE_SEEDS }), each),
    },
  }
}

interface Seeded {
  seed: number
  onProgress: (share: number) => void
  /** One per seed. */
  runs?: number
}

/** One outcome per seed. Strategies that use no random numbers have the same one for all. */
export const strategyOutcomes = (
  world: ReplayWorld,
  strategy: Strategy,
  { seed, onProgress, runs = SEEDS }: Seeded,
): Outcome[] => {
  const runWorld = { ...world, policy: { ...world.policy, strategy } }
  const outcomes: Outcome[] = []
  for (let run = 0; run < runs; run++) {
    let isRandom = false
    const float = seededFloats(seed * SEEDS + run)
    const random = () => {
      isRandom = true
      return float()
    }
    outcomes.push(simulate(runWorld, { random }))
    onProgress((run + 1) / runs)
    if (!isRandom) return Array.from({ length: runs }, () => outcomes[0]!) // just pushed
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

const getRuleResult = (outcomes: readonly Outcome[], each: number): MoveRuleResult => ({
  moves: average(outcomes.map(({ moves }) => moves * each)),
  movedTokens: average(outcomes.map(({ movedTokens }) => movedTokens)),
  rejected: average(outcomes.map(({ rejected }) => rejected * each)),
})

const average = (values: readonly number[]): number =>
  rounded(values.reduce((sum, value) => sum + value, 0) / values.length)

const getRange = (values: readonly number[]): Range => [rounded(Math.min(...values)), rounded(Math.max(...values))]

const rounded = (value: number): number => Math.round(value * 100) / 100
