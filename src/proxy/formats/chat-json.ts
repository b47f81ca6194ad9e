/** Turns a finished Responses object into the JSON answer of Chat Completions. */
import { type JsonObject, objectOf, objectsOf, textOf } from '../../lib/json.ts'
import { callKind, chatCall } from './call-kinds.ts'
import { reasoningContent } from './chat-reasoning.ts'
import { upstreamFailure } from './responses-event.ts'

interface ChatJsonOptions {
  /** `chatcmpl-…`. */
  id: string
  /** Whole seconds since epoch. */
  created: number
  /** As the client asked for it. */
  model: string
  /** The client reads all text as JSON. */
  isJson: boolean
  /** The client offers `functions` and knows no `tool_calls`. */
  isLegacy: boolean
}

/**
 * The `chat.completion` object (proxy surface §14.3). Throws `upstream_error` with the upstream's own code for a response
 * whose status is `failed`.
 */
export function chatFromResponse(response: unknown, opts: ChatJsonOptions): JsonObject {
  const source = objectOf(response)
  if (source.status === 'failed') throw upstreamFailure(source)
  const output = objectsOf(source.output)
  const toolCalls = output.flatMap(toolCall)
  const isAlone = opts.isJson && output.some(isElse)
  const shown = output.filter((item, index) => !isCommentary(item) || !(isAlone || leadsToAnswer(output.slice(index))))
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
 * Newer models label what they say: as commentary on the way to a call or to their answer, which may hold all of the answer
 * already, and as the answer. Chat has one text, so commentary that leads to an answer is left out of it, and out of JSON
 * wherever there is anything else.
 */
export const isCommentary = ({ phase }: JsonObject): boolean => phase === 'commentary'
/** `partial_answer` or `final_answer`. */
export const isAnswer = ({ phase }: JsonObject): boolean => textOf(phase).endsWith('_answer')

const leadsToAnswer = (items: JsonObject[]): boolean => isAnswer(items.find(isElse) ?? {})

const isElse = (item: JsonObject): boolean =>
  callKind(item) !== undefined || (!isCommentary(item) && saysAnything(item))

/** An answer may be begun and never given. */
export const saysAnything = ({ content }: JsonObject): boolean =>
  objectsOf(content).some(({ type, text, refusal }) => (type === 'output_text' ? text : type === 'refusal' && refusal))

type FinishReason = 'stop' | 'length' | 'content_filter' | 'tool_calls' | 'function_call'

/** Why generation ended: what cut it short comes before what it called. */
export function finishReason(
  response: JsonObject,
  { hasCalled, isLegacy }: { hasCalled: boolean; isLegacy: boolean },
): FinishReason {
  const cut = objectOf(response.incomplete_details).reason
  if (cut === 'max_output_tokens' || cut === 'max_tokens') return 'length'
  if (cut === 'content_filter') return 'content_filter'
  if (!hasCalled) return 'stop'
  return isLegacy ? 'function_call' : 'tool_calls'
}

/** Token counts under their chat names; null when the upstream reported none, for none are made up. */
export function chatUsage(usage: unknown): JsonObject | null {
  const source = objectOf(usage)
  const input = objectOf(source.input_tokens_details)
  if (typeof source.input_tokens !== 'number' || typeof source.output_tokens !== 'number') return null
  return {
    prompt_tokens: source.input_tokens,
    completion_tokens: source.output_tokens,
    total_tokens: source.total_tokens ?? source.input_tokens + source.output_tokens,
    prompt_tokens_details: {
      cached_tokens: input.cached_tokens ?? 0,
      ...(input.cache_write_tokens != null && { cache_write_tokens: input.cache_write_tokens }),
    },
    completion_tokens_details: { reasoning_tokens: objectOf(source.output_tokens_details).reasoning_tokens ?? 0 },
  }
}

/**
 * What the texts of these items cite of a web search. Places in each text become places in all of them joined, `before` being
 * as many characters as stand in front. Other kinds name files, which chat does not know.
 */
export function chatCitations(output: JsonObject[], before = 0): JsonObject[] {
  let at = before
  return textParts(output).flatMap(({ text, annotations }) => {
    const moved = (place: unknown) => (typeof place === 'number' ? place + start : place)
    const start = at
    at += textOf(text).length
    return objectsOf(annotations)
      .filter(({ type }) => type === 'url_citation')
      .map(({ type, start_index, end_index, url, title }) => ({
        type,
        url_citation: { start_index: moved(start_index), end_index: moved(end_index), url, title },
      }))
  })
}

const textParts = (output: JsonObject[]): JsonObject[] =>
  output.flatMap((item) => objectsOf(item.content)).filter(({ type }) => type === 'output_text')

const joined = (output: JsonObject[], type: string, member: string): string =>
  output
    .flatMap((item) => objectsOf(item.content))
    .filter((part) => part.type === type)
    .map((part) => textOf(part[member]))
    .join('')

const toolCall = (item: JsonObject): JsonObject[] => {
  const kind = callKind(item)
  return kind ? [chatCall(kind, item, textOf(item[kind.text]))] : []
}
