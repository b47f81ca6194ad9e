/** One model of the catalog: completed for native clients, and converted for OpenAI SDKs. */
import { z } from 'zod'

/** As the upstream sent it; every entry has a `slug`. */
export type ModelEntry = { readonly slug: string; readonly [name: string]: unknown }

const CONTEXT_WINDOW = 272_000
const MAX_CONTEXT_WINDOW = 872_000

/**
 * Members a native client requires, with substitutes for missing or invalid ones: a single unreadable entry makes it
 * drop the whole catalog (Codex CLI 0.169). The last two are for clients before 0.150.
 */
const DEMANDED: Record<string, [fits: z.ZodType, substitute: unknown]> = {
  supported_reasoning_levels: [z.array(z.object({ effort: z.string(), description: z.string() })), []],
  shell_type: [z.string(), 'unified_exec'],
  visibility: [z.string(), 'list'],
  supported_in_api: [z.boolean(), true],
  priority: [z.int(), 100],
  support_verbosity: [z.boolean(), false],
  truncation_policy: [z.object({ mode: z.string(), limit: z.int() }), { mode: 'tokens', limit: 10_000 }],
  experimental_supported_tools: [z.array(z.string()), []],
  base_instructions: [z.string(), ''],
  supports_reasoning_summaries: [z.boolean(), true],
  supports_parallel_tool_calls: [z.boolean(), true],
}

/** The entry with missing required members added; the same object when none was missing. */
export const complete = (entry: ModelEntry): ModelEntry => {
  const added: Record<string, unknown> = windowsFor(entry)
  if (typeof entry.display_name !== 'string') added.display_name = entry.slug
  for (const [name, [fits, substitute]] of Object.entries(DEMANDED))
    if (!fits.safeParse(entry[name]).success) added[name] = substitute
  return Object.keys(added).length === 0 ? entry : { ...entry, ...added }
}

/** The budget never exceeds the maximum. */
const windowsFor = ({ context_window: budget, max_context_window: max }: ModelEntry): Record<string, unknown> => {
  if (isCount(budget)) return isCount(max) ? {} : { max_context_window: Math.max(budget, MAX_CONTEXT_WINDOW) }
  if (isCount(max)) return { context_window: Math.min(max, CONTEXT_WINDOW) }
  return { context_window: CONTEXT_WINDOW, max_context_window: MAX_CONTEXT_WINDOW }
}

export const isListed = ({ visibility }: ModelEntry): boolean => visibility === 'list'

/** The entry in the shape of `GET /v1/models`; its context is the default budget, not the maximum. */
export const toPublicModel = (entry: ModelEntry) => {
  const maxOutput = isCount(entry.max_output_tokens) ? entry.max_output_tokens : null
  const context = entry.context_window
  const modalities = Array.isArray(entry.input_modalities) ? entry.input_modalities : ['text']
  const seesImages = modalities.includes('image')
  const reasons = Array.isArray(entry.supported_reasoning_levels) && entry.supported_reasoning_levels.length > 0
  return {
    id: entry.slug,
    object: 'model',
    created: isCount(entry.created) ? entry.created : 0,
    owned_by: 'sluice',
    metadata: getMetadata(entry, { context, maxOutput, modalities }),
    api_types: ['chat_completions'],
    capabilities: {
      context_length: context,
      max_output_tokens: maxOutput,
      supports_reasoning: reasons,
      supports_images: seesImages,
      supportsImages: seesImages,
      supports_vision: seesImages,
      supports_tool_use: true,
      supports_streaming: true,
      input_modalities: modalities,
      output_modalities: ['text'],
    },
    context_length: context,
    contextLength: context,
    max_output_tokens: maxOutput,
    maxOutputTokens: maxOutput,
    supports_reasoning: reasons,
    supportsReasoning: reasons,
    supports_images: seesImages,
    supportsImages: seesImages,
    supports_vision: seesImages,
    supportsVision: seesImages,
  }
}

export type PublicModel = ReturnType<typeof toPublicModel>

/** Passed on under their own names; null if missing. */
const METADATA = [
  'display_name',
  'description',
  'supported_reasoning_levels',
  'default_reasoning_level',
  'supports_reasoning_summaries',
  'support_verbosity',
  'default_verbosity',
  'supports_parallel_tool_calls',
  'supported_in_api',
  'minimal_client_version',
  'priority',
] as const
/** Left out if missing. */
const TIERS = ['additional_speed_tiers', 'service_tiers', 'default_service_tier'] as const

const getMetadata = (
  entry: ModelEntry,
  { context, maxOutput, modalities }: { context: unknown; maxOutput: number | null; modalities: unknown[] },
): Record<string, unknown> => ({
  ...Object.fromEntries(METADATA.map((name) => [name, entry[name] ?? null])),
  context_window: context,
  input_context_window: context,
  max_output_tokens: maxOutput,
  input_modalities: modalities,
  prefer_websockets: entry.prefer_websockets === true,
  ...Object.fromEntries(TIERS.flatMap((name) => (entry[name] == null ? [] : [[name, entry[name]]]))),
})

const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isInteger(value) && value > 0
