/** Request bodies as Codex sends them, and a realistic sequence of response events. */

/** The two request sizes of the speed targets: a short turn, and the first turn of a real Codex session. */
export const BODIES = { '2kb': 2_000, '56kb': 56_000 } as const
export type BodyName = keyof typeof BODIES

export const BENCH_MODEL = 'gpt-5.5'
export const RESPONSES_PATH = '/backend-api/codex/responses'

/** Size of one ordinary event on the wire, frame included, and how many make one response. */
const EVENT_BYTES = 230
const EVENTS_PER_ANSWER = 100

/** Events per write on a socket: the first, two deltas, the last. */
export const SHORT_ANSWER_EVENTS = 10

/** Number of digits of an event's send time, in nanoseconds of the machine's monotonic clock. */
export const STAMP_KEY = 'sent at '
export const STAMP_DIGITS = 20

const encoder = new TextEncoder()

/** A request body of about `BODIES[name]` bytes as the Codex CLI writes it, with its own `sessionId`. */
export function requestBody(name: BodyName, sessionId: string): string {
  const fixed = codexBody(sessionId, '').length
  return codexBody(sessionId, filler(Math.max(0, BODIES[name] - fixed)))
}

/** The headers the Codex CLI sends with the body; `authorization` is the proxy's API key or a placeholder. */
export function requestHeaders(sessionId: string, apiKey: string): Record<string, string> {
  return {
    'x-codex-beta-features': 'remote_compaction_v2',
    'x-codex-window-id': `${sessionId}:0`,
    'x-client-request-id': sessionId,
    'session-id': sessionId,
    'thread-id': sessionId,
    accept: 'text/event-stream',
    'content-type': 'application/json',
    authorization: `Bearer ${apiKey}`,
    originator: 'codex_exec',
    'user-agent': 'codex_exec/0.169.0 (benchmark)',
  }
}

/** The headers of its handshake, and the frame of a turn on a socket. */
export function handshakeHeaders(sessionId: string, apiKey: string): Record<string, string> {
  const { accept: _, 'content-type': __, ...headers } = requestHeaders(sessionId, apiKey)
  return { ...headers, 'openai-beta': 'responses_websockets=2026-02-06' }
}

export function createFrame(name: BodyName, sessionId: string): string {
  return requestBody(name, sessionId).replace('{', '{"type":"response.create",')
}

/** A stable, well-formed session id for client number `n`. */
export function sessionId(n: number): string {
  return `01a1fa22-24d2-78d0-b0fa-${n.toString(16).padStart(12, '0')}`
}

/** The SSE events of one response: created … deltas … completed with usage, `EVENTS_PER_ANSWER` of them. */
export function answerEvents(responseId: string): Uint8Array[] {
  const item = { type: 'message', id: 'msg_bench', role: 'assistant', status: 'in_progress', content: [] }
  const part = { type: 'output_text', text: '', annotations: [] }
  const done = { ...item, status: 'completed', content: [{ ...part, text: 'done' }] }
  const head = [
    { type: 'response.created', response: responseObject(responseId, 'in_progress') },
    { type: 'response.in_progress', response: { id: responseId, status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.content_part.added', item_id: item.id, output_index: 0, content_index: 0, part },
  ]
  const tail = [
    { type: 'response.output_text.done', item_id: item.id, output_index: 0, content_index: 0, text: 'done' },
    { type: 'response.content_part.done', item_id: item.id, output_index: 0, content_index: 0, part },
    { type: 'response.output_item.done', output_index: 0, item: done },
    { type: 'response.completed', response: { ...responseObject(responseId, 'completed'), output: [done], usage } },
  ]
  const deltas = EVENTS_PER_ANSWER - head.length - tail.length
  return [
    ...head.map((event, n) => sseEvent(event, n)),
    ...Array.from({ length: deltas }, (_, n) => deltaEvent(head.length + n)),
    ...tail.map((event, n) => sseEvent(event, head.length + deltas + n)),
  ]
}

/** One text delta of exactly `EVENT_BYTES` bytes. */
export function deltaEvent(sequence: number): Uint8Array {
  const event = {
    type: 'response.output_text.delta',
    item_id: 'msg_bench',
    output_index: 0,
    content_index: 0,
    delta: '',
  }
  const missing = EVENT_BYTES - sseEvent(event, sequence).length
  return sseEvent({ ...event, delta: filler(missing) }, sequence)
}

const usage = {
  input_tokens: 12_000,
  input_tokens_details: { cached_tokens: 10_000 },
  output_tokens: 92,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 12_092,
}

function sseEvent(event: { type: string; [field: string]: unknown }, sequence: number): Uint8Array {
  const data = JSON.stringify({ ...event, sequence_number: sequence })
  return encoder.encode(`event: ${event.type}\ndata: ${data}\n\n`)
}

function responseObject(id: string, status: string) {
  return {
    id,
    object: 'response',
    created_at: 1_795_197_904,
    status,
    error: null,
    incomplete_details: null,
    model: BENCH_MODEL,
    output: [],
    parallel_tool_calls: true,
    reasoning: { effort: 'medium', summary: null },
    service_tier: 'auto',
    store: false,
    usage: null,
  }
}

function codexBody(session: string, instructions: string): string {
  const turn = { turn_id: '01a1fa22-24ed-74b3-8694-c15ec843aa37', 'x-codex-window-id': `${session}:0` }
  return JSON.stringify({
    model: BENCH_MODEL,
    stream: true,
    input: [
      message('developer', instructions),
      message(
        'user',
        '<environment_context>\n  <cwd>/home/user/project</cwd>\n  <shell>bash</shell>\n</environment_context>',
      ),
      message('user', 'hello'),
    ],
    tools: [execTool],
    tool_choice: 'auto',
    parallel_tool_calls: true,
    reasoning: { effort: 'medium' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: session,
    text: { verbosity: 'low' },
    client_metadata: { ...turn, session_id: session, thread_id: session },
  })
}

function message(role: 'developer' | 'user', text: string) {
  return { type: 'message', role, content: [{ type: 'input_text', text }] }
}

const execTool = {
  type: 'function',
  name: 'exec_command',
  description: 'Runs a command in a PTY, returning output or a session id for ongoing interaction.',
  strict: false,
  parameters: {
    type: 'object',
    properties: { cmd: { type: 'string', description: 'Shell command to execute.' } },
    required: ['cmd'],
    additionalProperties: false,
  },
}

/**
 * Prose of exactly `length` ASCII characters that JSON does not escape, varied enough to be compressed realistically.
 */
export function filler(length: number): string {
  const sentence = 'Prefer the smallest change that keeps the tests green, and say in one line why it is safe. '
  return sentence.repeat(Math.ceil(Math.max(0, length) / sentence.length)).slice(0, Math.max(0, length))
}
