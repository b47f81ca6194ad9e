/** Converts the stop reason and token counts of a finished response to Messages. */
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
