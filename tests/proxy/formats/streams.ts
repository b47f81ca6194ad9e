/** Upstream event sequences for the tests of this folder. */
import { getObject, type JsonObject } from '../../../src/lib/json.ts'
import type { ResponsesEvent } from '../../../src/proxy/formats/responses-event.ts'

const USAGE = {
  input_tokens: 24,
  input_tokens_details: { cached_tokens: 7 },
  output_tokens: 58,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 82,
}

export const aResponse = (extra: JsonObject = {}): JsonObject => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1795197896,
  status: 'completed',
  model: 'upstream-name',
  output: [],
  usage: USAGE,
  ...extra,
})

export const completed = (extra: JsonObject = {}): ResponsesEvent => ({
  type: 'response.completed',
  response: aResponse(extra),
})

export const aMessage = (text: string): JsonObject => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})

export const aCall = (n: number, args: string): JsonObject => ({
  type: 'function_call',
  id: `fc_${n}`,
  call_id: `call_${n}`,
  name: `tool_${n}`,
  arguments: args,
  status: 'completed',
})

/** Added, text deltas, done; as output item `index`. */
export const messageEvents = (index: number, ...pieces: string[]): ResponsesEvent[] => [
  { type: 'response.output_item.added', output_index: index, item: { ...aMessage(''), content: [] } },
  ...pieces.map((delta) => ({
    type: 'response.output_text.delta',
    item_id: 'msg_1',
    output_index: index,
    content_index: 0,
    delta,
  })),
  { type: 'response.output_text.done', output_index: index, content_index: 0, text: pieces.join('') },
  { type: 'response.output_item.done', output_index: index, item: aMessage(pieces.join('')) },
]

/** The same, labelled as newer models do. */
export const phaseEvents = (
  phase: 'commentary' | 'partial_answer' | 'final_answer',
  ...message: Parameters<typeof messageEvents>
): ResponsesEvent[] =>
  messageEvents(...message).map((event) =>
    'item' in event ? { ...event, item: { ...getObject(event.item), phase } } : event,
  )

/** Added, argument deltas, done; call `n` as output item `n`. */
export const callEvents = (n: number, ...pieces: string[]): ResponsesEvent[] => [
  { type: 'response.output_item.added', output_index: n, item: aCall(n, '') },
  ...pieces.map((delta) => ({
    type: 'response.function_call_arguments.delta',
    item_id: `fc_${n}`,
    output_index: n,
    delta,
  })),
  { type: 'response.function_call_arguments.done', item_id: `fc_${n}`, output_index: n, arguments: pieces.join('') },
  { type: 'response.output_item.done', output_index: n, item: aCall(n, pieces.join('')) },
]

export const reasoningEvents = (index: number): ResponsesEvent[] => [
  { type: 'response.output_item.added', output_index: index, item: { type: 'reasoning', id: 'rs_1', summary: [] } },
  { type: 'response.reasoning_summary_text.delta', output_index: index, summary_index: 0, delta: 'hm' },
  { type: 'response.reasoning_summary_text.done', output_index: index, summary_index: 0, text: 'hm' },
  {
    type: 'response.output_item.done',
    output_index: index,
    item: { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'x' },
  },
]

export const opening: ResponsesEvent[] = [
  { type: 'response.created', response: aResponse({ status: 'in_progress', usage: null }) },
  { type: 'codex.rate_limits', plan_type: 'plus' },
  { type: 'response.in_progress', response: aResponse({ status: 'in_progress', usage: null }) },
]
