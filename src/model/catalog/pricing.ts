/** The cost of a request at the upstream's list prices: one versioned table, calculated in whole micro-dollars. */
import { TRANSCRIPTION_MODEL } from './audio-models.ts'

/** Changes whenever a price does; stored costs are never recomputed. */
export const PRICES_VERSION = '2026-11.1'

/** Above this many input tokens the whole request is charged at the long-context rate (spec §1.7). */
const LONG_CONTEXT_TOKENS = 272_000

export interface TokenUsage {
  inputTokens: number
  /** Part of the input. */
  cachedInputTokens: number
  /** Reasoning included. */
  outputTokens: number
  /** Used when the upstream reports no output tokens. */
  reasoningTokens: number
}

/** Known counts; null and absent are unknown. */
type KnownUsage = { readonly [Count in keyof TokenUsage]?: TokenUsage[Count] | null }

/**
 * Micro-dollars (10⁻⁶ USD, rounded down) for `usage` on `model` at a service tier; null when the model has no known
 * price or counts are missing. Never a guess.
 */
export const costMicros = (usage: KnownUsage, model: string, tier: string | null): number | null => {
  const terms = getTerms(usage, model, tier)
  if (!terms) return null
  let picos = 0
  for (const { tokens, usdPerMillion } of terms) picos += tokens * picosPerToken(usdPerMillion)
  return Math.floor(picos / 1_000_000)
}

/** The cost of the cached input of a request if it was not cached; null when the model has no known price. */
export const uncachedCostMicros = (usage: KnownUsage, model: string, tier: string | null): number | null => {
  const [input, cached] = getTerms(usage, model, tier) ?? []
  return input && cached ? Math.floor((cached.tokens * picosPerToken(input.usdPerMillion)) / 1_000_000) : null
}

export interface CostTerm {
  kind: 'input' | 'cached_input' | 'output'
  tokens: number
  usdPerMillion: number
  usd: number
}

export interface CostFormula {
  terms: CostTerm[]
  totalUsd: number
  /** Version of the rates; a stored cost may be from an older one. */
  pricesVersion: string
}

/** The same calculation for display: tokens times rate, term by term. null when `costMicros` is. */
export const costFormula = (usage: KnownUsage, model: string, tier: string | null): CostFormula | null => {
  const terms = getTerms(usage, model, tier)
  const micros = costMicros(usage, model, tier)
  if (!terms || micros === null) return null
  return {
    terms: terms.map((term) => ({ ...term, usd: (term.tokens * term.usdPerMillion) / 1e6 })),
    totalUsd: micros / 1e6,
    pricesVersion: PRICES_VERSION,
  }
}

const getTerms = (usage: KnownUsage, model: string, tier: string | null): Omit<CostTerm, 'usd'>[] | null => {
  const price = getPrice(model)
  const input = count(usage.inputTokens)
  const output = count(usage.outputTokens) ?? count(usage.reasoningTokens)
  if (!price || input === null || output === null) return null
  const cached = Math.min(input, count(usage.cachedInputTokens) ?? 0)
  const [inputRate, cachedRate, outputRate] = ratesFor(price, tier?.trim().toLowerCase() ?? null, input)
  return [
    { kind: 'input', tokens: input - cached, usdPerMillion: inputRate },
    { kind: 'cached_input', tokens: cached, usdPerMillion: cachedRate ?? inputRate },
    { kind: 'output', tokens: output, usdPerMillion: outputRate },
  ]
}

/** USD per million tokens, equal to micro-dollars per token: input, cached input (null: as input), output. */
type Rates = readonly [input: number, cached: number | null, output: number]

interface Price {
  standard: Rates
  /** Own rates for requests of any length, or a factor on the rates of its length. */
  priority?: Rates | number
  flex?: Rates
  long?: Rates
}

const GPT_IMAGE: Price = { standard: [5, 2, 30] }
const GPT_5_1_CODEX: Price = { standard: [1.25, 0.125, 10], priority: [2.5, 0.25, 20] }
const GPT_5_CHAT: Price = { standard: [1.25, 0.125, 10] }
const GPT_5: Price = { standard: [1.25, 0.125, 10], priority: 2, flex: [0.625, 0.0625, 5] }
const GPT_5_3: Price = { standard: [1.75, 0.175, 14] }
const GPT_5_3_CODEX: Price = { standard: [1.75, 0.175, 14], priority: [3.5, 0.35, 28] }

const PRICES: ReadonlyMap<string, Price> = new Map([
  ['gpt-6-astra', { standard: [10, 1, 50], priority: 2, long: [20, 2, 75] } satisfies Price],
  ['gpt-6-sol', { standard: [2, 0.2, 10], long: [4, 0.4, 15] }],
  ['gpt-6-luna', { standard: [0.1, 0.01, 0.5], long: [0.2, 0.02, 0.75] }],
  ['gpt-5.6-sol', { standard: [5, 0.5, 30], priority: [10, 1, 60], flex: [2.5, 0.25, 15], long: [10, 1, 45] }],
  ['gpt-5.6-terra', { standard: [2, 0.2, 12], priority: [4, 0.4, 24], flex: [1, 0.1, 6], long: [4, 0.4, 18] }],
  [
    'gpt-5.6-luna',
    { standard: [0.2, 0.02, 1.2], priority: [0.4, 0.04, 2.4], flex: [0.1, 0.01, 0.6], long: [0.4, 0.04, 1.8] },
  ],
  ['gpt-5.5', { standard: [5, 0.5, 30], priority: [12.5, 1.25, 75], flex: [2.5, 0.25, 15] }],
  ['gpt-5.5-pro', { standard: [30, null, 180], flex: [15, null, 90] }],
  ['gpt-5.4', { standard: [2.5, 0.25, 15], priority: [5, 0.5, 30], flex: [1.25, 0.125, 7.5], long: [5, 0.5, 22.5] }],
  ['gpt-5.4-mini', { standard: [0.75, 0.075, 4.5], flex: [0.375, 0.0375, 2.25] }],
  ['gpt-5.4-nano', { standard: [0.2, 0.02, 1.25], flex: [0.1, 0.01, 0.625] }],
  ['gpt-5.4-pro', { standard: [30, null, 180], flex: [15, null, 90], long: [60, null, 270] }],
  ['gpt-5.3-codex', GPT_5_3_CODEX],
  ['gpt-5.2-codex', GPT_5_3_CODEX],
  ['gpt-5.3', GPT_5_3],
  ['gpt-5.3-chat-latest', GPT_5_3],
  ['gpt-5.2-chat-latest', GPT_5_3],
  ['gpt-5.2', { standard: [1.75, 0.175, 14], priority: 2, flex: [0.875, 0.0875, 7] }],
  ['gpt-5.1', GPT_5],
  ['gpt-5', GPT_5],
  ['gpt-5.1-chat-latest', GPT_5_CHAT],
  ['gpt-5-chat-latest', GPT_5_CHAT],
  ['gpt-5.1-codex-max', GPT_5_1_CODEX],
  ['gpt-5.1-codex', GPT_5_1_CODEX],
  ['gpt-5-codex', GPT_5_1_CODEX],
  ['gpt-5.1-codex-mini', { standard: [0.25, 0.025, 2] }],
  ['gpt-image-2', GPT_IMAGE],
  ['gpt-image-1.5', GPT_IMAGE],
  ['gpt-image-1', GPT_IMAGE],
  ['gpt-image-1-mini', GPT_IMAGE],
  ['gpt-image', GPT_IMAGE],
])

/** USD per minute of audio. */
const AUDIO_PRICES: ReadonlyMap<string, number> = new Map([[TRANSCRIPTION_MODEL, 0.006]])

/** Micro-dollars, rounded down, for audio of this length; null when the model has no known price. */
export const audioCostMicros = (seconds: number, model: string): number | null => {
  const usdPerMinute = AUDIO_PRICES.get(model)
  return usdPerMinute === undefined ? null : Math.floor((seconds * Math.round(usdPerMinute * 1_000_000)) / 60)
}

/** Short names of a single model. */
const ALIASES: ReadonlyMap<string, string> = new Map([['gpt-5.6', 'gpt-5.6-sol']])

/** The price of the longest known prefix, for dated and specialised variants with `-suffix`. */
const getPrice = (model: string): Price | null => {
  const name = model.trim().toLowerCase()
  let known = ALIASES.get(name) ?? name
  while (!PRICES.has(known) && known.includes('-')) known = known.slice(0, known.lastIndexOf('-'))
  return PRICES.get(known) ?? null
}

const ratesFor = (price: Price, tier: string | null, inputTokens: number): Rates => {
  const isLong = inputTokens > LONG_CONTEXT_TOKENS && price.long !== undefined
  const ordinary = (isLong && price.long) || price.standard
  if ((tier === 'priority' || tier === 'fast') && price.priority !== undefined)
    return typeof price.priority === 'number' ? scale(ordinary, price.priority, price.priority) : price.priority
  if (tier === 'flex' && price.flex) return isLong ? scale(price.flex, 2, 1.5) : price.flex
  return ordinary
}

const scale = ([input, cached, output]: Rates, inputFactor: number, outputFactor: number): Rates => [
  input * inputFactor,
  cached === null ? null : cached * inputFactor,
  output * outputFactor,
]

/** Whole numbers, so that sums are exact: the smallest rate, 0.01 USD per million, is 10,000 pico-dollars per token. */
const picosPerToken = (usdPerMillion: number): number => Math.round(usdPerMillion * 1_000_000)

const count = (tokens: number | null | undefined): number | null =>
  tokens === null || tokens === undefined || !Number.isFinite(tokens) ? null : Math.max(0, Math.floor(tokens))
