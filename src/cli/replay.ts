/** `sluice replay`: what each routing strategy would have done with the logged requests. */
import { systemClock } from '../lib/clock.ts'
import type { MoveRuleResult, StrategyReport } from '../model/replay/strategy-report.ts'
import { compareStrategies } from '../proxy/replay/compare-strategies.ts'
import { printJson, type Run, UsageError, withFolder, yieldToTurns } from './command.ts'
import { table } from './table.ts'

interface ReplayOptions {
  days?: string
  seed?: string
  json?: true
}

export const replay: Run<ReplayOptions> = (io, _args, { days = '28', seed = '1', json }) => {
  const question = {
    days: numberIn(days, { option: '--days', min: 1, max: 90 }),
    seed: numberIn(seed, { option: '--seed', min: 0, max: 1_000_000 }),
    now: systemClock.now(),
  }
  return withFolder(io, async ({ db }) => {
    yieldToTurns()
    const report = await compareStrategies(db, question)
    if (json) printJson(io, report)
    else io.stdout(inWords(report))
    return 0
  })
}

const numberIn = (text: string, { option, min, max }: { option: string; min: number; max: number }): number => {
  const number = Number(text)
  if (!Number.isInteger(number) || number < min || number > max)
    throw new UsageError(`${option} must be a whole number from ${min} to ${max}.`)
  return number
}

const inWords = ({ requests, sufficient, coveredDays, strategies, moveRules }: StrategyReport): string => {
  if (requests === 0) return 'There are no requests in the log to replay.\n'
  const note = sufficient ? '' : `The log covers only ${coveredDays} days. At least 7 days include a whole week.\n`
  const rows = strategies.map(({ name, rejected, moves, unusedPercent, spread }) => [
    name,
    withRange(rejected, spread.rejected),
    withRange(moves, spread.moves),
    withRange(unusedPercent, spread.unusedPercent),
  ])
  const rules = [getRule('if it pays (in use)', moveRules.priced), getRule('always at 95 %', moveRules.fixed)]
  return `${note}${requests} requests\n\n${table(['STRATEGY', 'REJECTED', 'MOVES', 'WEEKLY UNUSED %'], rows)}
${table(['CONVERSATIONS MOVE', 'MOVES', 'CACHED TOKENS LOST', 'REJECTED'], rules)}`
}

const getRule = (name: string, { moves, movedTokens, rejected }: MoveRuleResult): string[] => [
  name,
  ...[moves, movedTokens, rejected].map(String),
]

const withRange = (value: number | null, range: readonly [number, number] | null): string =>
  value === null || range === null ? '-' : range[0] === range[1] ? `${value}` : `${value} (${range[0]} to ${range[1]})`
