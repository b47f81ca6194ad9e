/** Words about model sources. */
import type { SourceHealth } from '../../db/schema/sources.ts'
import type { ShownSource } from '../../src/model/sources/source-view.ts'
import type { Tone } from '../ui/badge.tsx'

export const HEALTH: Readonly<Record<SourceHealth, readonly [name: string, tone: Tone]>> = {
  unknown: ['Not tested', 'idle'],
  ok: ['Working', 'good'],
  failing: ['Failing', 'bad'],
}

/** Why a source fails, for users who are not shown its own words. */
export const CAUSES: Readonly<Record<string, string>> = {
  model_source_unreachable: 'could not be reached',
  model_source_credentials_error: 'rejected the API key',
  model_source_error: 'returned an error',
  invalid_upstream_response: 'did not answer with JSON',
}

export const CAPABILITY_NAMES = {
  chat: 'Chat Completions',
  responses: 'Responses',
  audio: 'Transcription',
  embeddings: 'Embeddings',
} as const

export const getCapabilities = (
  source: Pick<
    ShownSource,
    'supportsChatCompletions' | 'supportsResponses' | 'supportsAudioTranscriptions' | 'supportsEmbeddings'
  >,
): string[] => [
  ...(source.supportsChatCompletions ? [CAPABILITY_NAMES.chat] : []),
  ...(source.supportsResponses ? [CAPABILITY_NAMES.responses] : []),
  ...(source.supportsAudioTranscriptions ? [CAPABILITY_NAMES.audio] : []),
  ...(source.supportsEmbeddings ? [CAPABILITY_NAMES.embeddings] : []),
]

interface Prices {
  inputPer1m?: number | null | undefined
  cachedInputPer1m?: number | null | undefined
  outputPer1m?: number | null | undefined
  audioPerMinute?: number | null | undefined
}

/** "$0.10 in, $0.40 out per 1M tokens"; empty without a price. */
export const priceText = ({ inputPer1m, cachedInputPer1m, outputPer1m, audioPerMinute }: Prices): string => {
  const tokens = [named(inputPer1m, 'in'), named(cachedInputPer1m, 'cached'), named(outputPer1m, 'out')].filter(Boolean)
  return [
    tokens.length > 0 ? `${tokens.join(', ')} per 1M tokens` : '',
    audioPerMinute == null ? '' : `${dollars(audioPerMinute)} per minute`,
  ]
    .filter(Boolean)
    .join(', ')
}

const named = (price: number | null | undefined, what: string): string =>
  price == null ? '' : `${dollars(price)} ${what}`

const dollars = (usd: number): string => `$${usd.toFixed(Math.abs(usd * 100 - Math.round(usd * 100)) < 1e-9 ? 2 : 4)}`
