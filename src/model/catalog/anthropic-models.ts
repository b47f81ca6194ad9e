/** Models in the format of Anthropic's API. */
import type { PublicModel } from './catalog-entry.ts'
import { CLAUDE_PREFIX } from './claude-models.ts'

/** A model in Anthropic's format. OpenAI SDKs and Claude Code read it too. */
export const anthropicModel = (model: PublicModel, id: string = model.id) => {
  const name: unknown = model.metadata.display_name
  return {
    type: 'model',
    id,
    object: 'model',
    display_name: typeof name === 'string' ? name : model.id,
    created_at: new Date(model.created * 1000).toISOString(),
    created: model.created,
    owned_by: model.owned_by,
    max_input_tokens: model.context_length,
    max_tokens: model.max_output_tokens,
  }
}

/**
 * Lists each model under its own name and with the prefix `claude-`, because Claude Code shows only names with
 * "claude".
 */
export const anthropicModels = (models: readonly PublicModel[]) => {
  const data = models.flatMap((model) =>
    model.id.startsWith(CLAUDE_PREFIX)
      ? [anthropicModel(model)]
      : [anthropicModel(model), anthropicModel(model, CLAUDE_PREFIX + model.id)],
  )
  const ids = data.map(({ id }) => id)
  return { object: 'list', data, has_more: false, first_id: ids[0] ?? null, last_id: ids.at(-1) ?? null }
}
