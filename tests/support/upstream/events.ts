/** Turns a response of the stand-in model into the event sequence of ChatGPT. */
import {
  type Answer,
  type AnswerItem,
  type Json,
  type TokenUsage,
  type Turn,
  wantsCiphertext,
  wantsSummary,
} from './script.ts'
import type { Mint } from './tokens.ts'

export type StreamEvent = { type: string } & Record<string, unknown>

const TERMINAL = new Set(['response.completed', 'response.failed', 'response.incomplete'])
const DELTA_CHARS = 24
/** The closing events of a bulk item repeat at most this much of its text. */
const BULK_TEXT_LIMIT = 65_536

export function isTerminal(event: StreamEvent): boolean {
  return TERMINAL.has(event.type)
}

/** Shared by the events of one response. */
export type ResponseFrame = { turn: Turn; id: string; createdAt: number; mint: Mint }

/** Starts a response at `now` (ms since epoch). */
export function openFrame(turn: Turn, now: number, mint: Mint): ResponseFrame {
  return { turn, id: mint('resp'), createdAt: Math.floor(now / 1000), mint }
}

/** The whole sequence from `response.created` to `response.completed`, without sequence numbers. */
export function* answerEvents(frame: ResponseFrame, answer: Answer): Generator<StreamEvent> {
  yield responseEvent(frame, 'response.created', 'in_progress')
  yield responseEvent(frame, 'response.in_progress', 'in_progress')
  const output: Json[] = []
  let written = 0
  for (const [index, item] of answer.items.entries()) {
    const done = yield* itemEvents(frame, item, index, answer.deltaChars ?? DELTA_CHARS)
    output.push(done)
    written += getSize(item)
  }
  const usage = getUsage(frame.turn, answer, written)
  const { account } = frame.turn
  if (account.meter) account.use(account.meter(usage))
  yield completedEvent(frame, output, usage)
}

/** A terminal `response.failed` with this error. */
export function failedEvent(frame: ResponseFrame, error: Json): StreamEvent {
  return responseEvent(frame, 'response.failed', 'failed', { error })
}

/** The terminal `response.incomplete` that replaces a `response.completed`. */
export function incompleteEvent(frame: ResponseFrame, completed: StreamEvent, reason: string): StreamEvent {
  const response = completed.response as Json // created by completedEvent
  const incomplete = { status: 'incomplete', completed_at: null, incomplete_details: { reason } }
  return { type: 'response.incomplete', response: { ...response, ...incomplete, id: frame.id } }
}

/** Numbers the events of a response in order; `codex.*` events carry no number. */
export function* numbered(events: Iterable<StreamEvent>): Generator<StreamEvent> {
  let sequence = 0
  for (const { type, ...rest } of events) {
    if (type.startsWith('codex.')) yield { type, ...rest }
    else yield { type, sequence_number: sequence++, ...rest }
  }
}

/** One event as SSE text. */
export function sseText(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}

/** Ciphertext that only this account can hand back (`judge.ts` checks it). */
export function encryptedFor(chatgptAccountId: string, mint: Mint): string {
  return `enc.${chatgptAccountId}.${mint('c')}`
}

/** Token counts as the wire has them. */
export function wireUsage(usage: TokenUsage): Json {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: { cached_tokens: usage.cachedTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  }
}

/** The usage of the response; by default a token for every four characters. */
export function getUsage(turn: Turn, answer: Answer, writtenChars: number): TokenUsage {
  return {
    inputTokens: Math.ceil(turn.bodyChars / 4),
    cachedTokens: 0,
    outputTokens: Math.max(1, Math.ceil(writtenChars / 4)),
    reasoningTokens: 0,
    ...answer.usage,
  }
}

function completedEvent(frame: ResponseFrame, output: Json[], usage: TokenUsage): StreamEvent {
  const extra = { output, usage: wireUsage(usage), completed_at: frame.createdAt }
  return responseEvent(frame, 'response.completed', 'completed', extra)
}

function responseEvent(frame: ResponseFrame, type: string, status: string, extra: Json = {}): StreamEvent {
  const body = frame.turn.body
  return {
    type,
    response: {
      id: frame.id,
      object: 'response',
      created_at: frame.createdAt,
      status,
      background: false,
      completed_at: null,
      error: null,
      incomplete_details: null,
      instructions: body.instructions ?? null,
      max_output_tokens: null,
      max_tool_calls: null,
      model: frame.turn.model,
      output: [],
      parallel_tool_calls: body.parallel_tool_calls ?? true,
      previous_response_id: body.previous_response_id ?? null,
      prompt_cache_key: body.prompt_cache_key ?? null,
      reasoning: body.reasoning ?? { effort: null, summary: null },
      safety_identifier: null,
      service_tier: body.service_tier ?? 'auto',
      store: false,
      temperature: 1,
      text: body.text ?? { format: { type: 'text' } },
      tool_choice: body.tool_choice ?? 'auto',
      tools: body.tools ?? [],
      top_logprobs: 0,
      top_p: 1,
      truncation: 'disabled',
      usage: null,
      user: null,
      metadata: {},
      ...extra,
    },
  }
}

/** The events of one output item; returns the finished item. */
function* itemEvents(
  frame: ResponseFrame,
  item: AnswerItem,
  outputIndex: number,
  deltaChars: number,
): Generator<StreamEvent, Json> {
  switch (item.kind) {
    case 'text':
      return yield* messageEvents(frame, outputIndex, pieces(item.text, deltaChars), item.text, item.phase)
    case 'bulk': {
      const delta = 'x'.repeat(item.bytes)
      const text = delta.repeat(Math.min(item.deltas, Math.floor(BULK_TEXT_LIMIT / Math.max(1, item.bytes))))
      return yield* messageEvents(frame, outputIndex, repeated(delta, item.deltas), text)
    }
    case 'reasoning':
      return yield* reasoningEvents(frame, outputIndex, item.summary)
    case 'functionCall':
      return yield* callEvents(frame, outputIndex, deltaChars, FUNCTION_CALL, item.arguments, item)
    case 'customToolCall':
      return yield* callEvents(frame, outputIndex, deltaChars, CUSTOM_CALL, item.input, item)
    case 'compaction': {
      const encrypted_content = encryptedFor(frame.turn.account.chatgptAccountId, frame.mint)
      const compaction = { type: 'compaction', id: frame.mint('cmp'), encrypted_content }
      yield { type: 'response.output_item.added', output_index: outputIndex, item: compaction }
      yield { type: 'response.output_item.done', output_index: outputIndex, item: compaction }
      return compaction
    }
  }
}

function* messageEvents(
  frame: ResponseFrame,
  output_index: number,
  deltas: Iterable<string>,
  text: string,
  phase = 'final_answer',
): Generator<StreamEvent, Json> {
  const item_id = frame.mint('msg')
  const message = { type: 'message', id: item_id, status: 'in_progress', role: 'assistant', phase, content: [] }
  const place = { item_id, output_index, content_index: 0 }
  const part = { type: 'output_text', annotations: [], logprobs: [], text }
  yield { type: 'response.output_item.added', output_index, item: message }
  yield { type: 'response.content_part.added', ...place, part: { ...part, text: '' } }
  for (const delta of deltas) yield { type: 'response.output_text.delta', ...place, delta, logprobs: [] }
  yield { type: 'response.output_text.done', ...place, text, logprobs: [] }
  yield { type: 'response.content_part.done', ...place, part }
  const item = { ...message, status: 'completed', content: [part] }
  yield { type: 'response.output_item.done', output_index, item }
  return item
}

function* reasoningEvents(frame: ResponseFrame, output_index: number, text: string): Generator<StreamEvent, Json> {
  const item_id = frame.mint('rs')
  const place = { item_id, output_index, summary_index: 0 }
  const part = { type: 'summary_text', text }
  const item = {
    type: 'reasoning',
    id: item_id,
    summary: wantsSummary(frame.turn) ? [part] : [],
    ...(wantsCiphertext(frame.turn) && {
      encrypted_content: encryptedFor(frame.turn.account.chatgptAccountId, frame.mint),
    }),
  }
  yield { type: 'response.output_item.added', output_index, item: { ...item, summary: [] } }
  if (item.summary.length > 0) {
    yield { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } }
    yield { type: 'response.reasoning_summary_text.delta', ...place, delta: text }
    yield { type: 'response.reasoning_summary_text.done', ...place, text }
    yield { type: 'response.reasoning_summary_part.done', ...place, part }
  }
  yield { type: 'response.output_item.done', output_index, item }
  return item
}

type CallShape = { type: string; prefix: string; field: 'arguments' | 'input'; event: string }

const FUNCTION_CALL: CallShape = {
  type: 'function_call',
  prefix: 'fc',
  field: 'arguments',
  event: 'response.function_call_arguments',
}
const CUSTOM_CALL: CallShape = {
  type: 'custom_tool_call',
  prefix: 'ctc',
  field: 'input',
  event: 'response.custom_tool_call_input',
}

function* callEvents(
  frame: ResponseFrame,
  output_index: number,
  deltaChars: number,
  shape: CallShape,
  payload: string,
  call: { name: string; namespace?: string },
): Generator<StreamEvent, Json> {
  const item_id = frame.mint(shape.prefix)
  const named = { name: call.name, ...(call.namespace ? { namespace: call.namespace } : {}) }
  const item = { type: shape.type, id: item_id, call_id: frame.mint('call'), ...named }
  yield {
    type: 'response.output_item.added',
    output_index,
    item: { ...item, [shape.field]: '', status: 'in_progress' },
  }
  for (const delta of pieces(payload, deltaChars)) yield { type: `${shape.event}.delta`, item_id, output_index, delta }
  yield { type: `${shape.event}.done`, item_id, output_index, [shape.field]: payload }
  const done = { ...item, [shape.field]: payload, status: 'completed' }
  yield { type: 'response.output_item.done', output_index, item: done }
  return done
}

function* pieces(text: string, chars: number): Generator<string> {
  const characters = Array.from(text)
  for (let start = 0; start < characters.length; start += chars) yield characters.slice(start, start + chars).join('')
}

function* repeated(text: string, times: number): Generator<string> {
  for (let index = 0; index < times; index += 1) yield text
}

function getSize(item: AnswerItem): number {
  switch (item.kind) {
    case 'text':
      return item.text.length
    case 'bulk':
      return item.deltas * item.bytes
    case 'reasoning':
      return item.summary.length
    case 'functionCall':
      return item.arguments.length
    case 'customToolCall':
      return item.input.length
    case 'compaction':
      return 0
  }
}
