/** Turns a finished Responses object into the JSON answer of Chat Completions. */
import { getObject, getObjects, getText, type JsonObject } from '../../lib/json.ts'
import { callKind, chatCall } from './call-kinds.ts'
import { reasoningContent } from './chat-reasoning.ts'
import { upstreamFailure } from './responses-event.ts'

interface ChatJsonOptions {
  /** `chatcmpl-…`. */
  id: string
  /** Whole seconds since epoch. */
  created: number
  /** As the client wrote it. */
  model: string
  /** The client parses the whole text as JSON. */
  isJson: boolean
  /** The client sends `functions` and does not know `tool_calls`. */
  isLegacy: boolean
}

/** The `chat.completion` object. Throws `upstream_error` with the upstream's code when the status is `failed`. */
export function chatFromResponse(response: unknown, opts: ChatJsonOptions): JsonObject {
  const source = getObject(response)
  if (source.status === 'failed') throw upstreamFailure(source)
  const output = getObjects(source.output)
  const toolCalls = output.flatMap(toolCall)
  const isAlone = opts.isJson && output.some(isOtherOutput)
  const shown = output.filter(
    (item, index) => !isCommentary(item) || !(isAlone || isFollowedByAnswer(output.slice(index))),
  )
  const text = joined(shown, 'output_text', 'text')
  const refusal = joined(output, 'refusal', 'refusal')
  const usage = chatUsage(source.usage)
  const annotations = chatCitations(shown)
  const reasoning = reasoningContent(output)
  return {
    id: opts.id,
    object: 'chat.completion',
    created: opts.created,
    model: opts.model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text || (toolCalls.length > 0 || refusal ? null : ''),
          refusal: refusal || null,
          ...(reasoning && { reasoning_content: reasoning }),
          ...(annotations.length > 0 && { annotations }),
          ...(toolCalls.length > 0 &&
            (opts.isLegacy ? { function_call: toolCalls[0]?.function } : { tool_calls: toolCalls })),
        },
        logprobs: null,
        finish_reason: finishReason(source, { hasCalled: toolCalls.length > 0, isLegacy: opts.isLegacy }),
      },
    ],
    ...(usage && { usage }),
  }
}

/**
 * Newer models label text as commentary or as answer; commentary may already contain the whole answer. Chat has only
 * one text, so commentary is left out when an answer follows, and in JSON mode whenever there is anything else.
 */
export const isCommentary = ({ phase }: JsonObject): boolean => phase === 'commentary'
/** `partial_answer` or `final_answer`. */
export const isAnswer = ({ phase }: JsonObject): boolean => getText(phase).endsWith('_answer')

const isFollowedByAnswer = (items: JsonObject[]): boolean => isAnswer(items.find(isOtherOutput) ?? {})

const isOtherOutput = (item: JsonObject): boolean =>
  callKind(item) !== undefined || (!isCommentary(item) && hasContent(item))

/** An answer may be started and stay empty. */
export const hasContent = ({ content }: JsonObject): boolean =>
  getObjects(content).some(({ type, text, refusal }) => (type === 'output_text' ? text : type === 'refusal' && refusal))

type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls' | 'function_call'

/** Why generation ended. A cut-off takes precedence over tool calls. */
export function finishReason(
  response: JsonObject,
  { hasCalled, isLegacy }: { hasCalled: boolean; isLegacy: boolean },
): FinishReason {
  const cut = getObject(response.incomplete_details).reason
  if (cut === 'max_output_tokens' || cut === 'max_tokens') return 'length'
  if (cut === 'content_filter') return 'content_filter'
  if (!hasCalled) return 'stop'
  return isLegacy ? 'function_call' : 'tool_calls'
}

/** Token counts under their chat names; null when the upstream reported none. */
export function chatUsage(usage: unknown): JsonObject | null {
  const source = getObject(usage)
  const input = getObject(source.input_tokens_details)
  if (typeof source.input_tokens !== 'number' || typeof source.output_tokens !== 'number') return null
  return {
    prompt_tokens: source.input_tokens,
    completion_tokens: source.output_tokens,
    total_tokens: source.total_tokens ?? source.input_tokens + source.output_tokens,
    prompt_tokens_details: {
      cached_tokens: input.cached_tokens ?? 0,
      ...(input.cache_write_tokens != null && { cache_write_tokens: input.cache_write_tokens }),
    },
    completion_tokens_details: { reasoning_tokens: getObject(source.output_tokens_details).reasoning_tokens ?? 0 },
  }
}

/**
 * Web search citations in these items. Positions in each text become positions in the joined text, offset by `before`
 * characters. Other kinds name files, which chat does not support.
 */
export function chatCitations(output: JsonObject[], before = 0): JsonObject[] {
  let at = before
  return textParts(output).flatMap(({ text, annotations }) => {
    const moved = (place: unknown) => (typeof place === 'number' ? place + start : place)
    const start = at
    at += getText(text).length
    return getObjects(annotations)
      .filter(({ type }) => type === 'url_citation')
      .map(({ type, start_index, end_index, url, title }) => ({
        type,
        url_citation: { start_index: moved(start_index), end_index: moved(end_index), url, title },
      }))
  })
}

const textParts = (output: JsonObject[]): JsonObject[] =>
  output.flatMap((item) => getObjects(item.content)).filter(({ type }) => type === 'output_text')

const joined = (output: JsonObject[], type: string, member: string): string =>
  output
    .flatMap((item) => getObjects(item.content))
    .filter((part) => part.type === type)
    .map((part) => getText(part[member]))
    .join('')

const toolCall = (item: JsonObject): JsonObject[] => {
  const kind = callKind(item)
  return kind ? [chatCall(kind, item, getText(item[kind.text]))] : []
}
