/** Reads the list of models of a source, with what servers add to OpenAI's three members. Assumed from their docs. */
import { getObject, getObjects, getText, isObject } from '../lib/json.ts'
import type { SourceModelInput } from '../model/sources/source-input.ts'
import { type CalledSource, callModelSource, type SourceCallDeps } from './source-calls.ts'

const LIST_MS = 15_000
const MAX_MODELS = 1000

/** A model as it would be stored. */
export type ListedModel = Omit<SourceModelInput, 'rawMetadataJson'>

/** In the order of the source. Throws what `callModelSource` does. */
export const readModels = async (
  deps: SourceCallDeps,
  source: CalledSource,
  signal?: AbortSignal,
): Promise<ListedModel[]> =>
  listedIn(await callModelSource(deps, source, { path: '/models', timeoutMs: LIST_MS, ...(signal && { signal }) }))

/** `{data: [{id}]}` as OpenAI, `{models: [{name}]}`, or a list itself. Without repetitions and names that cannot be stored. */
export const listedIn = (answer: unknown): ListedModel[] => {
  const top = getObject(answer)
  const entries = [top.data, top.models, answer].find(Array.isArray) ?? []
  const found = new Map<string, ListedModel>()
  for (const entry of getObjects(entries)) {
    const model = (getText(entry.id) || getText(entry.model) || getText(entry.name)).trim()
    if (model !== '' && model.length <= 255 && !found.has(model)) found.set(model, listedModel(model, entry))
    if (found.size === MAX_MODELS) break
  }
  return [...found.values()]
}

const listedModel = (model: string, entry: Record<string, unknown>): ListedModel => {
  const meta = getObject(entry.meta)
  const top = getObject(entry.top_provider)
  const pricing = getObject(entry.pricing)
  const can = getObject(entry.capabilities)
  const parameters = getList(entry.supported_parameters)
  const inputs = getList(getObject(entry.architecture).input_modalities)
  const name = getText(entry.display_name) || (getText(entry.id) !== '' ? getText(entry.name) : '')
  return {
    model,
    displayName: name.trim().slice(0, 255) || null,
    contextWindow:
      count(entry.max_model_len) ?? // vLLM
      count(entry.context_length) ?? // OpenRouter
      count(entry.context_window) ?? // Groq
      count(entry.max_context_length) ?? // Mistral, LM Studio
      count(meta.n_ctx_train), // llama.cpp
    maxOutputTokens: count(top.max_completion_tokens) ?? count(entry.max_completion_tokens),
    supportsStreaming: true,
    supportsTools: parameters.includes('tools') || can.function_calling === true,
    supportsVision: inputs.includes('image') || can.vision === true,
    inputPer1m: perMillion(pricing.prompt),
    cachedInputPer1m: perMillion(pricing.input_cache_read),
    outputPer1m: perMillion(pricing.completion),
    audioPerMinute: null,
    isEnabled: true,
  }
}

const getList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const MAX_TOKENS = 1_000_000_000

const count = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= MAX_TOKENS ? value : null

/** OpenRouter: USD per token, as text. Negative: depends. */
const perMillion = (value: unknown): number | null => {
  if (typeof value !== 'string' || value.trim() === '' || isObject(value)) return null
  const usd = Number(value) * 1e6
  return Number.isFinite(usd) && usd >= 0 && usd <= 1e6 ? Math.round(usd * 1e6) / 1e6 : null
}
