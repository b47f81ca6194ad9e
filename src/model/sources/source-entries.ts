/** The models of sources in the two lists that clients get. */
import { complete, type ModelEntry, type PublicModel, toPublicModel } from '../catalog/catalog-entry.ts'
import { CAPABILITIES, type Capability, type Source, type SourceModel } from './sources.ts'

/** A model as its first source lists it. */
export interface ListedModel {
  readonly source: Source
  readonly model: SourceModel
}

/** Each name once: sources with the same model are used in their order. `scope` null: every source. */
export const listedBySources = (sources: readonly Source[], scope: ReadonlySet<string> | null): ListedModel[] => {
  const byName = new Map<string, ListedModel>()
  for (const source of sources) {
    if (scope?.has(source.id) === false) continue
    for (const model of source.models.values()) if (!byName.has(model.model)) byName.set(model.model, { source, model })
  }
  return [...byName.values()]
}

/** The native client uses Responses streams with tools. */
export const isForNativeClients = ({ source, model }: ListedModel): boolean =>
  source.supports.responses && model.supportsStreaming && model.supportsTools

/** After those of the accounts. */
const PRIORITY = 1000
const INSTRUCTIONS =
  'You are a coding agent in a terminal. Work on the task of the user with the tools you have, check your work, and answer briefly.'

/** Members of a catalog entry that the metadata of the model may set. */
const SETTABLE = [
  'base_instructions',
  'supported_reasoning_levels',
  'default_reasoning_level',
  'supports_reasoning_summaries',
  'shell_type',
  'apply_patch_tool_type',
  'experimental_supported_tools',
  'supports_search_tool',
  'truncation_policy',
  'effective_context_window_percent',
] as const

/** In the form that native clients demand. */
export const sourceEntry = ({ source, model }: ListedModel): ModelEntry => {
  const { metadata, contextWindow } = model
  const set = SETTABLE.flatMap((name) => (metadata?.[name] === undefined ? [] : [[name, metadata[name]] as const]))
  return complete({
    slug: model.model,
    display_name: model.displayName ?? model.model,
    description: `Served by ${source.name}.`,
    priority: PRIORITY,
    base_instructions: INSTRUCTIONS,
    supports_reasoning_summaries: false,
    supports_parallel_tool_calls: model.supportsTools,
    input_modalities: model.supportsVision ? ['text', 'image'] : ['text'],
    ...(contextWindow !== null && { context_window: contextWindow, max_context_window: contextWindow }),
    ...(model.maxOutputTokens !== null && { max_output_tokens: model.maxOutputTokens }),
    ...Object.fromEntries(set),
  })
}

const API_TYPES: Record<Capability, string> = {
  chat: 'chat_completions',
  responses: 'responses',
  audio: 'audio_transcriptions',
  embeddings: 'embeddings',
}

/** As in `GET /v1/models`; `owned_by` is the name of the source. */
export const sourcePublicModel = (listed: ListedModel): PublicModel => {
  const { source, model } = listed
  const entry = toPublicModel(sourceEntry(listed))
  return {
    ...entry,
    owned_by: source.name,
    api_types: CAPABILITIES.filter((capability) => source.supports[capability]).map(
      (capability) => API_TYPES[capability],
    ),
    capabilities: {
      ...entry.capabilities,
      supports_tool_use: model.supportsTools,
      supports_streaming: model.supportsStreaming,
    },
  }
}
