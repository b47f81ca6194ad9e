/** Converts an Anthropic Messages request to the equivalent Responses request. */
import { getObject, getObjects, getText, isObject, type JsonObject, parseJson } from '../../lib/json.ts'
import { EFFORTS } from '../../model/catalog/efforts.ts'
import { sha256 } from '../pool/affinity.ts'
import { hasInstruction, NEUTRAL_INSTRUCTIONS } from './instructions.ts'
import { invalid } from './invalid-request.ts'
import { messagesInput } from './messages-items.ts'
import { messagesToolChoice, messagesTools, type ToolNames } from './messages-tools.ts'
import { type NormalisedRequest, withCiphertext } from './v1-responses.ts'

/** The model that serves the request. */
export interface MessagesModel {
  slug: string
  /** Its reasoning efforts that the key allows, lowest first. Empty if unknown. */
  efforts: readonly string[]
  /** Replaces the effort of the request. Null keeps it. */
  effort: string | null
}

export interface MessagesOptions {
  stream: boolean
  /** The model name as the client sent it. The response repeats it. */
  model: string
  names: ToolNames
  stopSequences: readonly string[]
  showsThinking: boolean
  /** Null: unlimited. */
  maxTextChars: number | null
}

interface MessagesRequest extends NormalisedRequest {
  options: MessagesOptions
}

/** Members that are converted, or have no meaning for the upstream. Others are dropped and reported. */
const TRANSLATED: ReadonlySet<string> = new Set([
  'model',
  'messages',
  'system',
  'tools',
  'tool_choice',
  'thinking',
  'output_config',
  'stream',
  'stop_sequences',
  'speed',
  // The next two are never sent upstream: the whole history is sent anyway, and safeguards describe the user's machine.
  'context_management',
  'safeguards',
])

/** `session` is the client's session id from its headers. Throws `invalid_request_error` with `param`. */
export const messagesToResponses = (
  body: JsonObject,
  { slug, efforts, effort }: MessagesModel,
  session: string | null,
): MessagesRequest => {
  const messages = requireMessages(body)
  const { items, found, dropped: blocks } = messagesInput(body.system, messages)
  if (items.length === 0) throw invalid('messages', 'The messages have no content.')
  const { tools, names, dropped } = messagesTools(body.tools, found)
  const wanted = wantedReasoning(body)
  const maxTextChars = probeChars(body.max_tokens)
  const honoured = maxTextChars === null ? TRANSLATED : TRANSLATED.union(MAX_TOKENS)
  const cacheKey = session ?? sessionOf(body.metadata)
  const request: JsonObject = {
    model: slug,
    ...(!hasInstruction(items) && { instructions: NEUTRAL_INSTRUCTIONS }),
    ...(tools.length > 0 && { tools }),
    ...messagesToolChoice(body.tool_choice, tools),
    ...reasoningMember(effort === null ? wanted : { ...wanted, effort }, efforts),
    ...format(body.output_config),
    ...(body.speed === 'fast' && { service_tier: 'priority' }),
    ...(tools.some(({ type }) => type === 'web_search') && { include: [SOURCES] }),
    ...(cacheKey !== null && { prompt_cache_key: sha256(`messages\0${cacheKey}`) }),
    input: items,
    store: false,
    stream: true,
  }
  return {
    body: withCiphertext(request),
    dropped: [...Object.keys(body).filter((name) => !honoured.has(name) && body[name] != null), ...blocks, ...dropped],
    options: {
      stream: body.stream === true,
      model: getText(body.model),
      names,
      showsThinking: wanted.isShown,
      maxTextChars,
      stopSequences: stopSequences(body.stop_sequences),
    },
  }
}

/** Throws `invalid_request_error`. */
export const requireMessages = ({ messages }: JsonObject): unknown[] => {
  if (!Array.isArray(messages) || messages.length === 0) throw invalid('messages', 'At least one message is required.')
  return messages
}

/** Makes ChatGPT list the pages of a web search. */
const SOURCES = 'web_search_call.action.sources'

const MAX_TOKENS: ReadonlySet<string> = new Set(['max_tokens'])

/**
 * The upstream has no limit of output tokens. Claude Code checks a model with 1 token and a command with 64 (2.1.332),
 * and expects a short answer. Larger limits are only a precaution, so we don't cut answers by an estimate.
 */
const MOST_PROBED_TOKENS = 64
const CHARS_PER_TOKEN = 4

const probeChars = (maxTokens: unknown): number | null =>
  typeof maxTokens === 'number' && maxTokens >= 1 && maxTokens <= MOST_PROBED_TOKENS
    ? Math.floor(maxTokens) * CHARS_PER_TOKEN
    : null

/** Each sequence is searched for in every piece of the answer, so more or longer ones would slow down other requests. */
const MOST_STOP_SEQUENCES = 64
const MAX_STOP_CHARS = 1024

const stopSequences = (value: unknown): string[] => {
  const sequences = Array.isArray(value) ? value.filter(isFilled) : []
  if (sequences.length > MOST_STOP_SEQUENCES || sequences.some(({ length }) => length > MAX_STOP_CHARS))
    throw invalid('stop_sequences', 'Use at most 64 stop sequences of up to 1,024 characters each.')
  return sequences
}

const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== ''

/**
 * The session of a coding client, in one of Claude Code's two formats. Other user IDs identify people, not sessions.
 */
const sessionOf = (metadata: unknown): string | null => {
  const userId = getText(getObject(metadata).user_id)
  const document = parseJson(userId)
  if (isObject(document)) return getText(document.session_id) || null
  return /_session_([\w-]+)$/.exec(userId)?.[1] ?? null
}

const format = (config: unknown): JsonObject => {
  const { format } = getObject(config)
  if (!isObject(format) || format.type !== 'json_schema') return {}
  return { text: { format: { type: 'json_schema', name: 'answer', schema: getObject(format.schema), strict: false } } }
}

const ORDER: readonly string[] = EFFORTS

interface WantedReasoning {
  /** Whether the client shows or keeps thinking. */
  isShown: boolean
  /** `lowest` means the lowest effort of the model, or its default if its efforts are unknown. Null means its default. */
  effort: string | null
}

/**
 * A later system message may change the effort for the rest of the conversation. Without thinking, the lowest effort is
 * used: Claude Code sends its effort also with session titles and web searches, which do not need it (2.1.332).
 */
const wantedReasoning = (body: JsonObject): WantedReasoning => {
  const said = getObjects(body.messages).flatMap(({ role, output_config }) =>
    role === 'system' ? getText(getObject(output_config).effort) || [] : [],
  )
  const effort = said.at(-1) ?? (getText(getObject(body.output_config).effort) || null)
  const { type, budget_tokens: budget } = getObject(body.thinking)
  if (type === 'adaptive') return { isShown: true, effort }
  if (type === 'enabled') return { isShown: true, effort: effort ?? budgetEffort(budget) }
  return { isShown: false, effort: LOWEST }
}

const LOWEST = 'lowest'

const budgetEffort = (budget: unknown): string | null => {
  if (typeof budget !== 'number') return null
  if (budget <= 1024) return 'low'
  if (budget <= 8192) return 'medium'
  return budget <= 24_576 ? 'high' : 'xhigh'
}

/**
 * The `reasoning` member. `efforts` are those of the model, lowest first, or empty if unknown: models of sources may not
 * reason at all and reject an effort. Summaries are requested even if the client does not display them, because they
 * keep a long stream alive.
 */
const reasoningMember = ({ isShown, effort }: WantedReasoning, efforts: readonly string[]): JsonObject => {
  const chosen = effort === null ? null : fittingEffort(effort, efforts)
  const reasoning = { ...(chosen !== null && { effort: chosen }), ...(isShown && { summary: 'auto' }) }
  return Object.keys(reasoning).length > 0 ? { reasoning } : {}
}

/** The model's highest effort that is not above the wanted one. */
const fittingEffort = (wanted: string, efforts: readonly string[]): string | null => {
  if (wanted === LOWEST) return efforts[0] ?? null
  if (efforts.length === 0 || efforts.includes(wanted)) return wanted
  if (!ORDER.includes(wanted)) return null
  return efforts.findLast((effort) => ORDER.indexOf(effort) <= ORDER.indexOf(wanted)) ?? efforts[0] ?? null
}
