/** The responses of the stand-in source: OpenAI's formats, with fixed texts and counts. */

export const ANSWER_TEXT = 'Hello from the source.'
const WORDS = ['Hello ', 'from ', 'the ', 'source.']
const CREATED = 1_770_000_000

export const CHAT_USAGE = {
  prompt_tokens: 12,
  completion_tokens: 4,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 2 },
}
export const RESPONSES_USAGE = {
  input_tokens: 12,
  input_tokens_details: { cached_tokens: 2 },
  output_tokens: 4,
  output_tokens_details: { reasoning_tokens: 1 },
  total_tokens: 16,
}

/** The arguments are valid for the client's first tool. */
const TOOL_ARGUMENTS = '{"city":"Paris"}'

interface Reply {
  model: string
  usage: boolean
  /** The name of a tool to call; null: answers with text. */
  tool: string | null
}

export const chatAnswer = ({ model, usage, tool }: Reply) => ({
  id: 'chatcmpl-source',
  object: 'chat.completion',
  created: CREATED,
  model,
  choices: [
    {
      index: 0,
      message: tool
        ? { role: 'assistant', content: null, tool_calls: [{ ...toolCall(tool), index: undefined }] }
        : { role: 'assistant', content: ANSWER_TEXT },
      logprobs: null,
      finish_reason: tool ? 'tool_calls' : 'stop',
    },
  ],
  ...(usage && { usage: CHAT_USAGE }),
})

const toolCall = (name: string) => ({
  index: 0,
  id: 'call_source',
  type: 'function',
  function: { name, arguments: TOOL_ARGUMENTS },
})

/** SSE frames; with `usage`, a last chunk without choices, as OpenAI sends for `stream_options.include_usage`. */
export const chatFrames = ({ model, usage, tool }: Reply): string[] => {
  const chunk = (members: object) => ({
    id: 'chatcmpl-source',
    object: 'chat.completion.chunk',
    created: CREATED,
    model,
    ...(usage && { usage: null }),
    ...members,
  })
  const delta = (part: object, finish: string | null = null) =>
    chunk({ choices: [{ index: 0, delta: part, logprobs: null, finish_reason: finish }] })
  const content = tool ? [{ tool_calls: [toolCall(tool)] }] : WORDS.map((word) => ({ content: word }))
  const chunks = [
    delta({ role: 'assistant', content: '' }),
    ...content.map((part) => delta(part)),
    delta({}, tool ? 'tool_calls' : 'stop'),
    ...(usage ? [chunk({ choices: [], usage: CHAT_USAGE })] : []),
  ]
  return [...chunks.map((data) => `data: ${JSON.stringify(data)}\n\n`), 'data: [DONE]\n\n']
}

const item = (tool: string | null) =>
  tool
    ? {
        type: 'function_call',
        id: 'fc_source',
        call_id: 'call_source',
        name: tool,
        arguments: TOOL_ARGUMENTS,
        status: 'completed',
      }
    : {
        type: 'message',
        id: 'msg_source',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: ANSWER_TEXT, annotations: [] }],
      }

export const responsesAnswer = ({ model, usage, tool }: Reply, status = 'completed') => ({
  id: 'resp_source',
  object: 'response',
  created_at: CREATED,
  status,
  model,
  error: null,
  incomplete_details: null,
  output: status === 'completed' ? [item(tool)] : [],
  parallel_tool_calls: true,
  usage: status === 'completed' && usage ? RESPONSES_USAGE : null,
})

export const responsesFrames = (reply: Reply): string[] => {
  const whole = item(reply.tool)
  const place = { item_id: whole.id, output_index: 0 }
  const part = { type: 'output_text', text: '', annotations: [] }
  const content = reply.tool
    ? [{ type: 'response.function_call_arguments.done', ...place, arguments: TOOL_ARGUMENTS }]
    : [
        { type: 'response.content_part.added', ...place, content_index: 0, part },
        ...WORDS.map((delta) => ({ type: 'response.output_text.delta', ...place, content_index: 0, delta })),
        { type: 'response.output_text.done', ...place, content_index: 0, text: ANSWER_TEXT },
        { type: 'response.content_part.done', ...place, content_index: 0, part: { ...part, text: ANSWER_TEXT } },
      ]
  const events = [
    { type: 'response.created', response: responsesAnswer(reply, 'in_progress') },
    { type: 'response.in_progress', response: responsesAnswer(reply, 'in_progress') },
    { type: 'response.output_item.added', output_index: 0, item: { ...whole, status: 'in_progress' } },
    ...content,
    { type: 'response.output_item.done', output_index: 0, item: whole },
    { type: 'response.completed', response: responsesAnswer(reply) },
  ]
  return events.map((event, n) => `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: n })}\n\n`)
}

export const embeddingsAnswer = (model: string, inputs: number) => ({
  object: 'list',
  data: Array.from({ length: inputs }, (_, index) => ({ object: 'embedding', index, embedding: [0.25, -0.5, 0.125] })),
  model,
  usage: { prompt_tokens: 3 * inputs, total_tokens: 3 * inputs },
})

export const transcriptionAnswer = () => ({ text: ANSWER_TEXT, usage: { type: 'duration', seconds: 30 } })
