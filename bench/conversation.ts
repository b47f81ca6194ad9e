/** One conversation as it is sent to `/v1/chat/completions` and to `/v1/messages`: what converting a dialect costs. */
import { BENCH_MODEL, filler, requestHeaders } from './payload.ts'

export type Dialect = keyof typeof DIALECTS

const EXCHANGES = 4
const RULES = filler(12_000)
const QUESTION = filler(200)
const ANSWER = filler(1_000)
const OUTPUT = filler(4_000)
const TOOL = {
  name: 'Bash',
  description: filler(600),
  schema: {
    type: 'object',
    properties: { command: { type: 'string', description: 'The command to execute.' } },
    required: ['command'],
  },
}

/** Each exchange is a question, a tool call, its output and an answer; the last question is open. */
const inEachExchange = <Message>(messages: (callId: string) => Message[]): Message[] =>
  Array.from({ length: EXCHANGES }, (_, n) => messages(`call_${n}`)).flat()

const chatBody = () => ({
  model: BENCH_MODEL,
  stream: true,
  stream_options: { include_usage: true },
  tools: [{ type: 'function', function: { name: TOOL.name, description: TOOL.description, parameters: TOOL.schema } }],
  messages: [
    { role: 'system', content: RULES },
    ...inEachExchange<object>((id) => [
      { role: 'user', content: QUESTION },
      {
        role: 'assistant',
        content: ANSWER,
        tool_calls: [{ id, type: 'function', function: { name: TOOL.name, arguments: '{"command":"ls"}' } }],
      },
      { role: 'tool', tool_call_id: id, content: OUTPUT },
      { role: 'assistant', content: ANSWER },
    ]),
    { role: 'user', content: QUESTION },
  ],
})

const text = (value: string) => [{ type: 'text', text: value }]

const messagesBody = () => ({
  model: BENCH_MODEL,
  max_tokens: 32_000,
  stream: true,
  tools: [{ name: TOOL.name, description: TOOL.description, input_schema: TOOL.schema }],
  system: text(RULES),
  messages: [
    ...inEachExchange<object>((id) => [
      { role: 'user', content: text(QUESTION) },
      {
        role: 'assistant',
        content: [...text(ANSWER), { type: 'tool_use', id, name: TOOL.name, input: { command: 'ls' } }],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: OUTPUT }] },
      { role: 'assistant', content: text(ANSWER) },
    ]),
    { role: 'user', content: text(QUESTION) },
  ],
})

const DIALECTS = {
  chat: { path: '/v1/chat/completions', body: JSON.stringify(chatBody()) },
  messages: { path: '/v1/messages', body: JSON.stringify(messagesBody()) },
}

export const isDialect = (name: string | undefined): name is Dialect => name !== undefined && name in DIALECTS

/** The request of a client with this session id. */
export function dialectRequest(dialect: Dialect, session: string, apiKey: string) {
  const headers = { ...requestHeaders(session, apiKey), 'x-claude-code-session-id': session }
  return { ...DIALECTS[dialect], headers }
}
