/** The token counts and stop reason of Messages: of a finished response, and estimated for a request. */
import { getObject, type JsonObject } from '../../lib/json.ts'

export const NO_USAGE = Object.freeze({
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
})

/** Subtracts cached tokens from the input. The upstream includes them, but Messages does not. */
export const messagesUsage = (usage: unknown, searches: number): JsonObject => {
  const source = getObject(usage)
  const cached = count(getObject(source.input_tokens_details).cached_tokens)
  const { reasoning_tokens } = getObject(source.output_tokens_details)
  return {
    input_tokens: Math.max(0, count(source.input_tokens) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: count(source.output_tokens),
    output_tokens_details: { thinking_tokens: count(reasoning_tokens) },
    ...(searches > 0 && { server_tool_use: { web_search_requests: searches } }),
  }
}

const count = (value: unknown): number => (typeof value === 'number' ? value : 0)

export const stopReason = (response: JsonObject, hasCalled: boolean): string => {
  const { reason } = getObject(response.incomplete_details)
  if (reason === 'max_output_tokens' || reason === 'max_tokens') return 'max_tokens' // its last tool call may be cut off
  if (reason === 'content_filter') return 'refusal'
  return hasCalled ? 'tool_use' : 'end_turn'
}

const BYTES_PER_TOKEN = 3.6
/** Tokens for an image or a document in base64. Assumed. */
const MEDIA = { bytesPerToken: 750, least: 85, most: 1600 }

/** From its size. */
export const estimateInputTokens = ({ system, messages, tools }: JsonObject): number =>
  Math.ceil(tokensOf(messages) + tokensOf(system) + jsonTokens(tools))

const jsonTokens = (value: unknown): number =>
  value == null ? 0 : Buffer.byteLength(JSON.stringify(value)) / BYTES_PER_TOKEN

const tokensOf = (value: unknown): number => {
  if (typeof value === 'string') return Buffer.byteLength(value) / BYTES_PER_TOKEN
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce<number>((sum, one) => sum + tokensOf(one), 0)
  const { type, source, signature: _, cache_control: __, ...members } = value as JsonObject // as: an object that is no list
  const isMedia = type === 'image' || type === 'document'
  return Object.values(members).reduce<number>((sum, one) => sum + tokensOf(one), isMedia ? mediaTokens(source) : 0)
}

const mediaTokens = (source: unknown): number => {
  const { type, data } = (source ?? {}) as JsonObject // as: members are checked
  if (type === 'text') return tokensOf(data)
  const bytes = typeof data === 'string' ? data.length * 0.75 : 0
  return Math.min(MEDIA.most, Math.max(MEDIA.least, bytes / MEDIA.bytesPerToken))
}
