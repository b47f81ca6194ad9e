/** Request parameters the upstream names differently, rejects or cannot honour; shared by `/v1` and chat. */
import { AppError } from '../../errors.ts'
import { getObject, isObject, type JsonObject } from '../../lib/json.ts'
import { toUpstreamEffort, toUpstreamTier } from '../ingress/key-policy.ts'
import { invalid } from './invalid-request.ts'

/**
 * Public Responses parameters that the upstream answers with "Unsupported parameter". Unknown parameters pass, so new
 * upstream parameters work immediately.
 */
export const REJECTED_UPSTREAM: ReadonlySet<string> = new Set([
  'context_management',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'max_completion_tokens',
  'max_output_tokens',
  'max_tokens',
  'max_tool_calls',
  'metadata',
  'moderation',
  'presence_penalty',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'seed',
  'stop',
  'stream_options',
  'temperature',
  'top_logprobs',
  'top_p',
  'truncation',
  'user',
])

/** Parameters that change what the client gets, with the only supported value, which is also the default. */
const ONLY_VALUES: Readonly<Record<string, { value: unknown; message: string }>> = {
  background: { value: false, message: 'Background responses are not supported. Leave out background.' },
  n: { value: 1, message: "n must be 1. Sluice can't return several answers." },
}

/** Not sent upstream and not reported as dropped: other values were rejected, this one is the default. */
export const isImplied = (name: string): boolean => Object.hasOwn(ONLY_VALUES, name)

/** Other clients' names for members of `reasoning` and `text` and for the cache key. */
const EFFORT_ALIASES = ['reasoning_effort', 'reasoningEffort', 'thinking', 'enable_thinking'] as const
const VERBOSITY_ALIASES = ['verbosity', 'textVerbosity'] as const

export const ALIASES: ReadonlySet<string> = new Set([...EFFORT_ALIASES, ...VERBOSITY_ALIASES, 'promptCacheKey'])

const INCLUDABLE: ReadonlySet<unknown> = new Set([
  'reasoning.encrypted_content',
  'web_search_call.action.sources',
  'web_search_call.results',
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  'message.output_text.logprobs',
])

/**
 * `reasoning`, `text`, `prompt_cache_key` and `service_tier` with all aliases applied; the proper name wins. Members
 * the client did not send are absent, and objects without an alias are the client's own.
 */
export function foldAliases(body: JsonObject): JsonObject {
  const verbosity = getFirst(body, VERBOSITY_ALIASES, (value) => value)
  const key = body.prompt_cache_key ?? body.promptCacheKey
  return {
    ...getReasoning(body),
    ...withMember(body, 'text', 'verbosity', verbosity),
    ...(key != null && { prompt_cache_key: key }),
    ...(typeof body.service_tier === 'string' && { service_tier: toUpstreamTier(body.service_tier) }),
  }
}

/**
 * Rejects what needs state that the upstream does not keep over HTTP. Throws `previous_response_not_found`, or
 * `unsupported_parameter` for `conversation` and stored prompts.
 */
export function rejectStateful(body: JsonObject): void {
  for (const param of ['conversation', 'prompt']) {
    if (body[param] != null) {
      throw new AppError('unsupported_parameter', {
        param,
        message: `'${param}' is not supported, because nothing is stored between requests. Send the full conversation.`,
      })
    }
  }
  if (body.previous_response_id != null) {
    throw new AppError('previous_response_not_found', { param: 'previous_response_id' })
  }
}

/**
 * Throws `invalid_request_error` for shapes and values that are always wrong, `unsupported_parameter` for features that
 * cannot be offered and must not be dropped silently.
 */
export function checkParameters(body: JsonObject): void {
  if (typeof body.model !== 'string' || body.model === '') throw invalid('model', 'A model is required.')
  if (body.instructions != null && typeof body.instructions !== 'string') {
    throw invalid('instructions', 'Instructions must be text.')
  }
  if (body.stream != null && typeof body.stream !== 'boolean') throw invalid('stream', 'stream must be true or false.')
  for (const param of ['reasoning', 'text'] as const) {
    if (body[param] != null && !isObject(body[param])) throw invalid(param, `'${param}' must be an object.`)
  }
  if (body.tools != null && !Array.isArray(body.tools)) throw invalid('tools', 'tools must be a list.')
  if (body.truncation != null && body.truncation !== 'auto' && body.truncation !== 'disabled') {
    throw invalid('truncation', "truncation must be 'auto' or 'disabled'.")
  }
  checkInclude(body.include)
  for (const [param, { value, message }] of Object.entries(ONLY_VALUES)) {
    if (body[param] == null || body[param] === value) continue
    throw new AppError('unsupported_parameter', { param, message })
  }
}

function checkInclude(include: unknown): void {
  if (include == null) return
  if (!Array.isArray(include)) throw invalid('include', 'include must be a list.')
  const unknown = include.findIndex((name) => !INCLUDABLE.has(name))
  if (unknown >= 0) throw invalid('include', `'${String(include[unknown])}' cannot be included.`)
}

function getFirst(body: JsonObject, names: readonly string[], read: (value: unknown) => unknown): unknown {
  return names.map((name) => read(body[name])).find((value) => value != null)
}

function getReasoning(body: JsonObject): JsonObject {
  const folded = withMember(body, 'reasoning', 'effort', getFirst(body, EFFORT_ALIASES, getEffort))
  const { effort } = getObject(folded.reasoning)
  if (typeof effort !== 'string' || toUpstreamEffort(effort) === effort) return folded
  return { reasoning: { ...getObject(folded.reasoning), effort: toUpstreamEffort(effort) } }
}

/** `thinking` and `enable_thinking` are switches in other APIs: on means `medium`, off the model's default. */
function getEffort(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 'medium' : undefined
  if (!isObject(value)) return value === 'enabled' ? 'medium' : value === 'disabled' ? undefined : value
  return value.effort ?? (value.type === 'enabled' || value.enabled === true ? 'medium' : undefined)
}

function withMember(body: JsonObject, name: string, member: string, value: unknown): JsonObject {
  if (body[name] == null && value == null) return {}
  const own = getObject(body[name])
  return { [name]: value == null || own[member] != null ? own : { ...own, [member]: value } }
}
