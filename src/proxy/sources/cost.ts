/** What a request costs by the prices of a source's model. */
import type { TokenUsage } from '../../model/catalog/pricing.ts'
import type { SourceModel } from '../../model/sources/sources.ts'

export type Prices = Pick<SourceModel, 'inputPer1m' | 'cachedInputPer1m' | 'outputPer1m' | 'audioPerMinute'>

interface Used {
  usage: Pick<TokenUsage, 'inputTokens' | 'cachedInputTokens' | 'outputTokens'> | null
  audioSeconds: number | null
}

/** Micro-dollars, rounded down; null: the model has no price for what was used. USD per million is micro-dollars per token. */
export const sourceCostMicros = (prices: Prices, { usage, audioSeconds }: Used): number | null => {
  if (audioSeconds !== null && prices.audioPerMinute !== null)
    return Math.floor((audioSeconds / 60) * prices.audioPerMinute * 1_000_000)
  const { inputPer1m, outputPer1m } = prices
  if (usage === null || (inputPer1m === null && outputPer1m === null)) return null
  const input = inputPer1m ?? 0
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens)
  const fresh = usage.inputTokens - cached
  return Math.floor(
    fresh * input + cached * (prices.cachedInputPer1m ?? input) + usage.outputTokens * (outputPer1m ?? 0),
  )
}
