/** Events that end a broken stream or begin one without events, and two kinds of keepalive. */
import { type AppError, openAiError } from '../../errors.ts'
import type { JsonObject } from '../../lib/json.ts'
import { frame } from '../../lib/sse-payload.ts'
import { encodeUtf8 } from '../../lib/utf8.ts'

interface ResponseHead {
  /** The id from `response.created`, if the client got it. */
  id: string | undefined
  /** As the client wrote it. */
  model: string | null
  /** Whole seconds since epoch. */
  createdAt: number
  /** Members that are known of the response. */
  response?: JsonObject | undefined
}

export interface FailedEventOptions extends ResponseHead {
  /** One above the highest sent. The public API requires a finite integer, so it starts at 0. */
  sequenceNumber: number
}

/** SSE bytes of `response.failed` with a complete response object and the same error as an HTTP answer. */
export const responseFailedEvent = (err: AppError, opts: FailedEventOptions): Uint8Array => {
  const { sequenceNumber, response = {} } = opts
  const known = Object.fromEntries(Object.entries(response).filter(([, value]) => value != null))
  return frame({
    type: 'response.failed',
    sequence_number: sequenceNumber,
    response: { ...blankResponse(opts), error: openAiError(err), ...known, status: 'failed' },
  })
}

/** SSE bytes of the `error` event that precedes it on OpenAI's API, in its nested form, on which SDKs throw. */
export const errorEvent = (err: AppError, sequenceNumber: number): Uint8Array =>
  frame({ type: 'error', sequence_number: sequenceNumber, error: openAiError(err) })

/** SSE bytes of `response.created`, the first event of every public stream. */
export const responseCreatedEvent = (head: ResponseHead): Uint8Array =>
  frame({ type: 'response.created', sequence_number: 0, response: { ...blankResponse(head), ...head.response } })

/** Every member that SDKs declare, with OpenAI's defaults. */
const blankResponse = ({ id, model, createdAt }: ResponseHead) => ({
  id,
  object: 'response',
  created_at: createdAt,
  status: 'in_progress',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  model,
  output: [],
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: 'auto',
  store: false,
  temperature: 1,
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: 'disabled',
  usage: null,
  user: null,
})

/** For `/v1` and chat clients, which skip comments. */
export const keepaliveComment: Uint8Array = encodeUtf8(': keepalive\n\n')

/** For the native route: the client's idle timer counts only events with data, not comments. */
export const keepaliveEvent: Uint8Array = frame({ type: 'codex.keepalive' })
