/** What a comparison of the routing strategies returns. */
import type { Settings } from '../../settings/schema.ts'

export type Range = readonly [lowest: number, highest: number]

export interface StrategyResult {
  name: Settings['routingStrategy']
  /** Averages over the runs; their lowest and highest values are in `spread`. */
  rejected: number
  moves: number
  /** Percent of the weekly quota that was unused at its reset. Null: no reset was replayed. */
  unusedPercent: number | null
  spread: { rejected: Range; moves: Range; unusedPercent: Range | null }
}

/** What a rule for moves would have done with the strategy in use; averages of 5 runs. */
export interface MoveRuleResult {
  moves: number
  /** Cached tokens that had to be read again. */
  movedTokens: number
  rejected: number
}

export interface StrategyReport {
  days: number
  seed: number
  /** Requests in the log that were replayed. */
  requests: number
  /** Whether the log covers at least seven days. */
  sufficient: boolean
  /** Days from the first replayed request until now. */
  coveredDays: number
  /** Whether the use of a request was compared with the accounts' meters; otherwise it is assumed. */
  isMeasured: boolean
  strategies: StrategyResult[]
  /** Conversations move only if it pays (`priced`, the rule in use), or always at 95 % of the five-hour window (`fixed`). */
  moveRules: { priced: MoveRuleResult; fixed: MoveRuleResult }
}
