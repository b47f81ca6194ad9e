/** Turns a Chat Completions request into the equivalent Responses request. */
import { z } from 'zod'
import { getObject, getText, isObject, type JsonObject } from '../../lib/json.ts'
import { acceptedItems } from './accepted-items.ts'
import { withOutputKinds } from './call-kinds.ts'
import { choiceOfFunction, getFunctions, usesFunctions, withToolCalls } from './chat-functions.ts'
import { messageItems } from './chat-messages.ts'
import { responsesFormat, responsesFunctions, responsesToolChoice, responsesTools } from './chat-tools.ts'
import { type Conversation, toInstructions } from './instructions.ts'
import { invalid, parseAt } from './invalid-request.ts'
import { ALIASES, checkParameters, foldAliases, isImplied, rejectStateful } from './parameters.ts'
import { type ReasoningBefore, withReasoningBefore } from './recalled-reasoning.ts'
import { type NormalisedRequest, normaliseResponses } from './v1-responses.ts'

interface ChatOptions {
  stream: boolean
  /** Whether the client wants the extra usage chunk at the end of a stream. */
  includeUsage: boolean
  /** As the client wrote it; repeated in every chunk. */
  model: string
  /** The whole answer text must be JSON. */
  isJson: boolean
  /** Tool calls are returned as `function_call`. */
  isLegacy: boolean
}

interface ChatRequest extends NormalisedRequest {
  chat: ChatOptions
}

const Options = z.object({
  model: z.string(),
  stream: z.boolean().nullish(),
  stream_options: z
    .object({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  modalities: z.array(z.literal('text', { error: 'only text answers are supported' })).nullish(),
  messages: z.array(z.unknown()).nullish(),
  tools: z.array(z.unknown()).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
})

/** Passed under the same name. Members neither here nor translated are dropped and reported. */
const PASSED = ['parallel_tool_calls', 'include', 'service_tier', 'client_metadata'] as const

const TRANSLATED: ReadonlySet<string> = new Set([
  ...Object.keys(Options.shape),
  ...PASSED,
  ...ALIASES,
  'instructions',
  'response_format',
  'functions',
  'function_call',
  'tool_choice',
  'reasoning',
  'text',
  'prompt_cache_key',
])

/**
 * The Responses request, the dropped members, and what the response translation needs. A body with `input` and no
 * messages already has the Responses shape and is only normalised. `reasoningBefore` supplies the reasoning that chat
 * messages cannot carry. Throws `invalid_request_error`, `unsupported_parameter` or `previous_response_not_found`, each
 * with `param`.
 */
export function chatToResponses(body: JsonObject, reasoningBefore: ReasoningBefore = () => []): ChatRequest {
  const options = parseAt(Options, body)
  const request = getRequest(body, options, reasoningBefore)
  const chat = {
    stream: options.stream === true,
    includeUsage: options.stream_options?.include_usage === true,
    model: options.model,
    isJson: JSON_FORMATS.has(getObject(getObject(request.body.text).format).type),
    isLegacy: usesFunctions(body),
  }
  return { ...request, chat }
}

const JSON_FORMATS: ReadonlySet<unknown> = new Set(['json_object', 'json_schema'])

function getRequest(
  body: JsonObject,
  { messages, tools }: z.output<typeof Options>,
  reasoningBefore: ReasoningBefore,
): NormalisedRequest {
  if (!messages?.length && body.input != null) return responsesShaped(body)
  if (!messages?.length) throw invalid('messages', 'At least one message is required.')
  refuse(body)
  return translated(body, conversation(messages, reasoningBefore), tools ?? undefined)
}

function refuse(body: JsonObject): void {
  checkParameters(body)
  rejectStateful(body)
  if (body.input != null) throw invalid('input', "Send either 'messages' or 'input'.")
}

function responsesShaped({ messages: _, ...body }: JsonObject): NormalisedRequest {
  const { body: normal, dropped } = normaliseResponses(body)
  // The chat options already carry its meaning, so it is not reported as dropped.
  return { body: normal, dropped: dropped.filter((name) => name !== 'stream_options') }
}

function translated(body: JsonObject, said: Conversation, clientTools: unknown[] | undefined): NormalisedRequest {
  const functions = getFunctions(body)
  const isLegacy = functions.length > 0
  const tools = isLegacy ? responsesFunctions(functions) : clientTools && responsesTools(clientTools)
  const choice = body.tool_choice ?? choiceOfFunction(body.function_call)
  const members = withFormat(foldAliases(body), body.response_format)
  const { instructions, input } = toInstructions(getText(body.instructions), said, { text: members.text })
  return {
    body: {
      model: body.model,
      ...(instructions !== undefined && { instructions }),
      input,
      ...(tools && tools.tools.length > 0 && { tools: tools.tools }),
      ...(choice != null && { tool_choice: responsesToolChoice(choice) }),
      ...Object.fromEntries(PASSED.filter((name) => body[name] != null).map((name) => [name, body[name]])),
      ...(isLegacy && { parallel_tool_calls: false }), // a message can hold only one function call
      ...members,
      store: false,
      stream: true,
    },
    dropped: [...droppedFrom(body), ...(tools?.dropped ?? [])],
  }
}

/** System and developer messages are both instructions. */
function conversation(messages: unknown[], reasoningBefore: ReasoningBefore): Conversation {
  const said: Conversation = { items: [], system: new Set() }
  for (const [index, message] of withToolCalls(messages, 'messages').entries()) {
    const items = messageItems(message, `messages[${index}]`)
    said.items.push(...withReasoningBefore(items, reasoningBefore))
    if (isInstruction(message)) for (const item of items) said.system.add(item)
  }
  return { ...said, items: acceptedItems(withOutputKinds(said.items)) }
}

const isInstruction = (message: unknown): boolean =>
  isObject(message) && (message.role === 'system' || message.role === 'developer')

function withFormat(members: JsonObject, format: unknown): JsonObject {
  if (format == null) return members
  const text = getObject(members.text)
  if (text.format != null) throw invalid('response_format', "Send either 'response_format' or 'text.format'.")
  return { ...members, text: { ...text, format: responsesFormat(format) } }
}

function droppedFrom(body: JsonObject): string[] {
  return Object.keys(body).flatMap((name) => {
    if (name === 'store') return body.store === true ? ['store'] : []
    if (name === 'stream_options') {
      return getObject(body.stream_options).include_obfuscation === true ? ['stream_options.include_obfuscation'] : []
    }
    return TRANSLATED.has(name) || isImplied(name) || body[name] == null ? [] : [name]
  })
}
