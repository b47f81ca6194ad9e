/** Names of keys, key states and limits on pages. */
import type { ApiKey } from '../../src/model/keys/api-key-view.ts'
import type { KeyState } from '../../src/model/keys/key-list.ts'
import { dollarText, shortCount } from '../ui/amounts.ts'
import type { Tone } from '../ui/badge.tsx'

/** What the key's own rule does with requests for fast mode. */
export const FAST_MODE_NAMES: Readonly<Record<'off' | 'strip' | 'refuse', string>> = {
  off: 'allowed',
  strip: 'ignored',
  refuse: 'rejected',
}

export type { ApiKey }

type Limit = ApiKey['limits'][number]

export const STATES: Record<KeyState, [label: string, tone: Tone]> = {
  active: ['Active', 'good'],
  off: ['Off', 'idle'],
  orphaned: ['Owner disabled', 'bad'],
  expired: ['Expired', 'wait'],
}

export const LIMIT_TYPE_NAMES: Record<Limit['limitType'], string> = {
  total_tokens: 'tokens',
  input_tokens: 'input tokens',
  output_tokens: 'output tokens',
  requests: 'requests',
  cost_usd: 'dollars',
}

export const WINDOW_NAMES: Record<Limit['limitWindow'], string> = {
  '5h': 'per 5 hours',
  daily: 'per day',
  '7d': 'per 7 days',
  weekly: 'per week',
  monthly: 'per 30 days',
}

/** "tokens per week", "dollars per day for gpt-5.5". */
export const limitName = (limit: Limit): string => `${LIMIT_TYPE_NAMES[limit.limitType]} ${inWindow(limit)}`

/** Used percent; above 100 when the last request took more than was left. */
export const getPercent = ({ currentValue, maxValue }: Limit): number => (currentValue / maxValue) * 100

/** "$25.00 per week", "50 M tokens per 30 days for gpt-5.5". */
export const boundText = (limit: Limit): string => {
  const amount = amountText(limit.limitType, limit.maxValue)
  return `${amount} ${limit.limitType === 'cost_usd' ? inWindow(limit) : limitName(limit)}`
}

const inWindow = ({ limitWindow, modelFilter }: Pick<Limit, 'limitWindow' | 'modelFilter'>): string =>
  `${WINDOW_NAMES[limitWindow]}${modelFilter ? ` for ${modelFilter}` : ''}`

/** "$12.50" for micro-dollars, "3.1 M" for counts. */
export const amountText = (type: Limit['limitType'], value: number): string =>
  type === 'cost_usd' ? dollarText(value / 1e6) : shortCount(value)
