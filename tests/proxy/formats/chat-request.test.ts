/** Each row of the chat → Responses table, including both kinds of errors. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/errors.ts'
import type { JsonObject } from '../../../src/lib/json.ts'
import { MAX_DATA_URL_BYTES } from '../../../src/proxy/formats/chat-messages.ts'
import { chatToResponses } from '../../../src/proxy/formats/chat-request.ts'
import { NEUTRAL_INSTRUCTIONS } from '../../../src/proxy/formats/instructions.ts'

const noParameters = { type: 'object', properties: {}, required: [], additionalProperties: false }
const hello = { role: 'user', content: 'hi' }
const aChat = (extra: JsonObject = {}): JsonObject => ({ model: 'gpt-5.5', messages: [hello], ...extra })
const said = (...messages: unknown[]) => chatToResponses(aChat({ messages })).body
const call = (id: string, name: string, args: unknown) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})

const customCall = (id: string, input: unknown) => ({ id, type: 'custom', custom: { name: 'patch', input } })

const refusal = (body: JsonObject): AppError => {
  try {
    chatToResponses(body)
  } catch (err) {
    if (err instanceof AppError) return err
    throw err
  }
  throw new Error('the request was accepted')
}

describe('messages', () => {
  const user = (...content: JsonObject[]) => [{ role: 'user', content }]
  test.each<[string, unknown[], unknown]>([
    ['user text; other keys are dropped', [{ ...hello, name: 'bo', _x: 1 }], user({ type: 'input_text', text: 'hi' })],
    [
      'user text part',
      [{ role: 'user', content: [{ type: 'text', text: 'a' }] }],
      user({ type: 'input_text', text: 'a' }),
    ],
    [
      'image with detail',
      [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test/i', detail: 'low' } }] }],
      user({ type: 'input_image', image_url: 'https://a.test/i', detail: 'low' }),
    ],
    [
      'image as data URL, without a detail',
      [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA', detail: null } }],
        },
      ],
      user({ type: 'input_image', image_url: 'data:image/png;base64,AA' }),
    ],
    [
      'file data with its type',
      [
        {
          role: 'user',
          content: [{ type: 'file', file: { file_data: 'AA', mime_type: 'application/pdf', filename: 'a.pdf' } }],
        },
      ],
      user({ type: 'input_file', filename: 'a.pdf', file_url: 'data:application/pdf;base64,AA' }),
    ],
    [
      'file data whose type is beside the file, or which is a URL already',
      [
        {
          role: 'user',
          content: [
            { type: 'file', file: { file_data: 'AA' }, mime_type: 'text/plain' },
            { type: 'file', file: { file_data: 'AA' } },
            { type: 'file', file: { file_data: 'data:text/css;base64,AA' } },
          ],
        },
      ],
      user(
        { type: 'input_file', file_url: 'data:text/plain;base64,AA' },
        { type: 'input_file', file_url: 'data:application/octet-stream;base64,AA' },
        { type: 'input_file', file_url: 'data:text/css;base64,AA' },
      ),
    ],
    [
      'file by URL',
      [{ role: 'user', content: [{ type: 'file', file: { file_url: 'https://a.test/f' } }] }],
      user({ type: 'input_file', file_url: 'https://a.test/f' }),
    ],
    [
      'assistant text',
      [{ role: 'assistant', content: 'so' }],
      [{ role: 'assistant', content: [{ type: 'output_text', text: 'so' }] }],
    ],
    [
      'assistant commentary, refusal and calls, in this order',
      [{ role: 'assistant', content: 'so', refusal: 'no', tool_calls: [call('c1', 'f', '{}'), call('c2', 'g', '[]')] }],
      [
        {
          role: 'assistant',
          phase: 'commentary',
          content: [
            { type: 'output_text', text: 'so' },
            { type: 'refusal', refusal: 'no' },
          ],
        },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
        { type: 'function_call', call_id: 'c2', name: 'g', arguments: '[]' },
      ],
    ],
    [
      'assistant calls beside an empty text',
      [{ role: 'assistant', content: '', tool_calls: [call('c1', 'look_up', '{}')] }],
      [{ type: 'function_call', call_id: 'c1', name: 'look_up', arguments: '{}' }],
    ],
    [
      'assistant parts',
      [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'a' },
            { type: 'refusal', refusal: 'b' },
          ],
        },
      ],
      [
        {
          role: 'assistant',
          content: [
            { type: 'output_text', text: 'a' },
            { type: 'refusal', refusal: 'b' },
          ],
        },
      ],
    ],
    [
      'tool result',
      [{ role: 'tool', tool_call_id: 'c1', content: '7' }],
      [{ type: 'function_call_output', call_id: 'c1', output: '7' }],
    ],
    [
      'tool result with a picture',
      [
        {
          role: 'tool',
          tool_call_id: 'c1',
          content: [
            { type: 'text', text: 'a.png' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
          ],
        },
      ],
      [
        {
          type: 'function_call_output',
          call_id: 'c1',
          output: [
            { type: 'input_text', text: 'a.png' },
            { type: 'input_image', image_url: 'data:image/png;base64,AA' },
          ],
        },
      ],
    ],
    [
      'calls of both kinds, and results of the kind of their call',
      [
        { role: 'assistant', tool_calls: [call('c1', 'f', '{}'), customCall('c2', '*** Begin')] },
        { role: 'tool', tool_call_id: 'c2', content: 'done' },
        { role: 'tool', tool_call_id: 'c1', content: '7' },
      ],
      [
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
        { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: '*** Begin' },
        { type: 'custom_tool_call_output', call_id: 'c2', output: 'done' },
        { type: 'function_call_output', call_id: 'c1', output: '7' },
      ],
    ],
    [
      'tool result in parts, under another name of the id',
      [
        {
          role: 'tool',
          toolCallId: 'c1',
          content: [
            { type: 'text', text: '4' },
            { type: 'text', text: '2' },
          ],
        },
      ],
      [{ type: 'function_call_output', call_id: 'c1', output: '42' }],
    ],
  ])('%s', (_, messages, expected) => {
    expect(said(...messages).input).toEqual(expected)
  })

  test('system and developer texts follow the request’s own instructions', () => {
    const messages = [
      { role: 'system', content: 'a' },
      hello,
      { role: 'developer', content: [{ type: 'text', text: 'b' }] },
    ]
    const { body } = chatToResponses(aChat({ messages, instructions: 'own' }))
    expect(body.instructions).toBe('own\na\nb')
    expect(body.input).toEqual([{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }])
  })

  test('without any, the instructions are neutral', () => {
    expect(said(hello).instructions).toBe(NEUTRAL_INSTRUCTIONS)
  })

  test('JSON mode keeps the system message in the input, as developer', () => {
    const messages = [{ role: 'system', content: 'answer in JSON' }, hello]
    const { body } = chatToResponses(aChat({ messages, response_format: { type: 'json_object' } }))
    expect('instructions' in body).toBe(false)
    expect((body.input as JsonObject[])[0]).toEqual({
      role: 'developer',
      content: [{ type: 'input_text', text: 'answer in JSON' }],
    })
    expect(body.text).toEqual({ format: { type: 'json_object' } })
    const { response_format, ...same } = aChat({ messages, text: body.text, response_format: null })
    expect(chatToResponses(same).body).toEqual(body)
  })

  test('a system message alone is the input', () => {
    const { input, instructions } = said({ role: 'system', content: 'say hi' })
    expect(input).toEqual([{ role: 'developer', content: [{ type: 'input_text', text: 'say hi' }] }])
    expect(instructions).toBeUndefined()
  })
})

describe('other fields', () => {
  const schema = { type: 'object', properties: {} }
  const format = { type: 'json_schema', json_schema: { name: 'out', schema, strict: true } }
  test.each<[string, JsonObject, JsonObject]>([
    ['response_format as a string', { response_format: 'text' }, { text: { format: { type: 'text' } } }],
    [
      'json_schema beside a verbosity',
      { response_format: format, verbosity: 'low' },
      { text: { verbosity: 'low', format: { type: 'json_schema', name: 'out', schema, strict: true } } },
    ],
    [
      'json_schema with a description and nulls',
      { response_format: { ...format, json_schema: { name: 'out', description: 'd', schema: null, strict: null } } },
      { text: { format: { type: 'json_schema', name: 'out', description: 'd', schema: { type: 'object' } } } },
    ],
    ['effort', { reasoning_effort: 'none' }, { reasoning: { effort: 'none' } }],
    ['thinking', { thinking: { type: 'enabled' } }, { reasoning: { effort: 'medium' } }],
    [
      'passed under their names',
      { parallel_tool_calls: false, service_tier: 'priority', prompt_cache_key: 'k' },
      { parallel_tool_calls: false, service_tier: 'priority', prompt_cache_key: 'k' },
    ],
    ['the ordinary tier, by naming none', { service_tier: 'auto' }, {}],
    ['the priority tier by its other name', { service_tier: 'fast' }, { service_tier: 'priority' }],
    [
      'choice of a function',
      { tool_choice: { type: 'function', function: { name: 'f' } } },
      { tool_choice: { type: 'function', name: 'f' } },
    ],
    [
      'choice of a custom tool',
      { tool_choice: { type: 'custom', custom: { name: 'patch' } } },
      { tool_choice: { type: 'custom', name: 'patch' } },
    ],
    [
      'custom tools, with a grammar, with none and bare',
      {
        tools: [
          {
            type: 'custom',
            custom: {
              name: 'patch',
              description: 'd',
              format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "x"' } },
            },
          },
          { type: 'custom', custom: { name: 'say', format: { type: 'text' } } },
          { type: 'custom', custom: { name: 'do' } },
        ],
      },
      {
        tools: [
          {
            type: 'custom',
            name: 'patch',
            description: 'd',
            format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
          },
          { type: 'custom', name: 'say', format: { type: 'text' } },
          { type: 'custom', name: 'do' },
        ],
      },
    ],
    [
      'choice of the web search',
      { tool_choice: { type: 'web_search_preview' } },
      { tool_choice: { type: 'web_search' } },
    ],
    [
      'function tool with nulls',
      { tools: [{ type: 'function', function: { name: 'f', description: null, parameters: null } }] },
      { tools: [{ type: 'function', name: 'f', parameters: noParameters, strict: false }] },
    ],
    [
      'function tool with nothing but a name',
      { tools: [{ type: 'function', function: { name: 'get_time' } }] },
      { tools: [{ type: 'function', name: 'get_time', parameters: noParameters, strict: false }] },
    ],
    [
      'schema omitted from the format',
      { response_format: { type: 'json_schema', json_schema: { name: 'n' } } },
      { text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' } } } },
    ],
    ['choice in a word', { tool_choice: 'required' }, { tool_choice: 'required' }],
    [
      'choice among tools',
      {
        tool_choice: {
          type: 'allowed_tools',
          allowed_tools: {
            mode: 'auto',
            tools: [
              { type: 'function', function: { name: 'f' } },
              { type: 'custom', custom: { name: 'patch' } },
              { type: 'web_search_preview' },
            ],
          },
        },
      },
      {
        tool_choice: {
          type: 'allowed_tools',
          mode: 'auto',
          tools: [{ type: 'function', name: 'f' }, { type: 'custom', name: 'patch' }, { type: 'web_search' }],
        },
      },
    ],
    [
      'function tool; strict is explicit, because its default differs',
      { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: schema } }] },
      { tools: [{ type: 'function', name: 'f', description: 'd', parameters: schema, strict: false }] },
    ],
    [
      'strict function tool',
      { tools: [{ type: 'function', function: { name: 'f', strict: true } }] },
      { tools: [{ type: 'function', name: 'f', parameters: noParameters, strict: true }] },
    ],
    [
      'web search',
      { tools: [{ type: 'web_search_preview' }, { type: 'web_search' }] },
      { tools: [{ type: 'web_search' }, { type: 'web_search' }] },
    ],
    ['nothing', { n: 1, modalities: ['text'], tools: [], service_tier: null }, {}],
  ])('%s', (_, extra, expected) => {
    const { body, dropped } = chatToResponses(aChat(extra))
    const { model, input, instructions, store, stream, ...rest } = body
    expect(rest).toEqual(expected)
    expect([model, store, stream]).toEqual(['gpt-5.5', false, true])
    expect(dropped).toEqual([])
  })

  const names =
    'stop presence_penalty frequency_penalty logprobs top_logprobs seed logit_bias max_tokens max_completion_tokens temperature top_p user metadata store safety_identifier prediction web_search_options never_heard_of'
  test.each(names.split(' '))('%s is dropped and named', (name) => {
    const { body, dropped } = chatToResponses(aChat({ [name]: true }))
    expect(dropped).toEqual([name])
    expect(body.store).toBe(false)
    expect(name === 'store' || !(name in body)).toBe(true)
  })

  test('nulls and dropped values without effect are not named', () => {
    const { dropped } = chatToResponses(
      aChat({ stop: null, store: false, stream: true, stream_options: { include_usage: true } }),
    )
    expect(dropped).toEqual([])
  })

  test('stream padding and chat-only parameters are dropped and named', () => {
    const { dropped } = chatToResponses(
      aChat({ stream_options: { include_obfuscation: true }, web_search_options: {} }),
    )
    expect(dropped).toEqual(['stream_options.include_obfuscation', 'web_search_options'])
  })

  test('a tool without a name is dropped and named by its index', () => {
    const tools = [
      { type: 'function', function: { name: 'f' } },
      { type: 'function', function: {} },
      { type: 'custom', custom: {} },
    ]
    const { body, dropped } = chatToResponses(aChat({ tools }))
    expect(body.tools).toHaveLength(1)
    expect(dropped).toEqual(['tools[1]', 'tools[2]'])
  })

  test.each<[JsonObject, JsonObject]>([
    [{}, { stream: false, includeUsage: false, model: 'gpt-5.5', isJson: false, isLegacy: false }],
    [
      { stream: true, stream_options: { include_usage: true } },
      { stream: true, includeUsage: true, model: 'gpt-5.5', isJson: false, isLegacy: false },
    ],
    [
      { stream: null, stream_options: null },
      { stream: false, includeUsage: false, model: 'gpt-5.5', isJson: false, isLegacy: false },
    ],
    [
      { response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'JSON' }] },
      { stream: false, includeUsage: false, model: 'gpt-5.5', isJson: true, isLegacy: false },
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { type: 'object' } } } },
      { stream: false, includeUsage: false, model: 'gpt-5.5', isJson: true, isLegacy: false },
    ],
  ])('%j is remembered for the response', (extra, expected) => {
    expect(chatToResponses(aChat(extra)).chat as unknown).toEqual(expected)
  })

  test('a Responses-shaped body is only normalized, hosted tools included', () => {
    const tools = [{ type: 'file_search', vector_store_ids: ['v'] }]
    const { body, dropped, chat } = chatToResponses({
      model: 'm',
      messages: [],
      input: 'hi',
      tools,
      top_p: 1,
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(body.input).toEqual([{ role: 'user', content: [{ type: 'input_text', text: 'hi' }] }])
    expect(body.tools).toBe(tools)
    expect(dropped).toEqual(['top_p'])
    expect(chat).toEqual({ stream: true, includeUsage: true, model: 'm', isJson: false, isLegacy: false })
  })
})

test('results in a Responses-shaped body have the kind of their call, however it is written', () => {
  const items = [
    { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: 'x' },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
    { role: 'assistant', content: null, tool_calls: [customCall('c2', 'y')] },
    { role: 'tool', tool_call_id: 'c2', content: 'again' },
  ]
  expect(chatToResponses({ model: 'm', input: items }).body.input).toEqual([
    items[0],
    { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
    { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'y' },
    { type: 'custom_tool_call_output', call_id: 'c2', output: 'again' },
  ])
})

describe('functions, the predecessor of tools', () => {
  const functions = [{ name: 'f', parameters: { type: 'object' } }, { name: 'get_time' }]

  test.each<[string, JsonObject, JsonObject]>([
    ['without a choice', {}, {}],
    ['with a free choice', { function_call: 'auto' }, { tool_choice: 'auto' }],
    ['of none', { function_call: 'none' }, { tool_choice: 'none' }],
    ['of one', { function_call: { name: 'f' } }, { tool_choice: { type: 'function', name: 'f' } }],
  ])('become tools, one call at a time, %s', (_, asked, choice) => {
    const { body, chat, dropped } = chatToResponses(aChat({ functions, ...asked }))
    expect(body).toMatchObject({
      tools: [
        { type: 'function', name: 'f', parameters: { type: 'object' }, strict: false },
        { type: 'function', name: 'get_time', parameters: noParameters, strict: false },
      ],
      parallel_tool_calls: false,
      ...choice,
    })
    expect('tool_choice' in body).toBe('tool_choice' in choice)
    expect([chat.isLegacy, dropped]).toEqual([true, []])
  })

  test('empty ones have no effect', () => {
    const { body, chat, dropped } = chatToResponses(aChat({ functions: [], function_call: null }))
    expect([body.tools, body.tool_choice, chat.isLegacy, dropped]).toEqual([undefined, undefined, false, []])
  })

  const called = (name: string, args = '{}') => ({
    role: 'assistant',
    content: null,
    function_call: { name, arguments: args },
  })
  const result = (name: string, content: unknown) => ({ role: 'function', name, content })
  const items = (...history: unknown[]) => said(hello, ...history).input as JsonObject[]

  test('calls and results are matched by their position, in every turn', () => {
    const history = [called('f', '{"a":1}'), result('f', '7'), called('f', '{"a":2}'), result('f', null)]
    const [, ...whole] = items(...history)
    expect(whole).toMatchObject([
      { type: 'function_call', name: 'f', arguments: '{"a":1}' },
      { type: 'function_call_output', output: '7' },
      { type: 'function_call', name: 'f', arguments: '{"a":2}' },
      { type: 'function_call_output', output: '' },
    ])
    const ids = whole.map(({ call_id }) => call_id)
    expect([ids[0], ids[2]]).toEqual([ids[1], ids[3]])
    expect(new Set(ids).size).toBe(2)
    expect(items(...history.slice(0, 2)).slice(1)).toEqual(whole.slice(0, 2))
  })

  test('text beside a call is commentary', () => {
    expect(items({ ...called('f'), content: 'let me see' }, result('f', '7'))[1]).toMatchObject({
      role: 'assistant',
      phase: 'commentary',
      content: [{ text: 'let me see' }],
    })
  })

  test('a Responses-shaped body with such a history is read, too', () => {
    const { body } = chatToResponses({ model: 'm', input: [hello, called('f'), result('f', '7')] })
    expect(body.input).toMatchObject([{}, { type: 'function_call' }, { type: 'function_call_output', output: '7' }])
  })

  test('a call beside tool calls is the same call', () => {
    const both = {
      role: 'assistant',
      tool_calls: [call('c1', 'f', '{}')],
      function_call: { name: 'f', arguments: '{}' },
    }
    expect(items(both).slice(1)).toEqual([{ type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' }])
  })
})

describe('rejections name the field', () => {
  const part = (content: JsonObject) => ({
    messages: [hello, { role: 'user', content: [{ type: 'text', text: 'a' }, content] }],
  })
  const big = `data:image/png;base64,${'A'.repeat(MAX_DATA_URL_BYTES)}`
  test.each<[string, JsonObject, string]>([
    ['no model', { model: undefined }, 'model'],
    [
      'the second part of an assistant message',
      { messages: [hello, { role: 'assistant', content: [{ type: 'text', text: 'a' }, { type: 'tool_use' }] }] },
      'messages[1].content[1]',
    ],
    ['an empty model', { model: '' }, 'model'],
    ['an unsupported include', { include: ['secrets'] }, 'include'],
    ['parallel_tool_calls', { parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
    ['no messages', { messages: undefined }, 'messages'],
    ['empty messages', { messages: [] }, 'messages'],
    ['messages and input', { input: 'x' }, 'input'],
    ['two choices', { n: 2 }, 'n'],
    ['audio answers', { modalities: ['text', 'audio'] }, 'modalities[1]'],
    ['unknown role', { messages: [{ role: 'robot', content: '' }] }, 'messages[0].role'],
    ['a role named like a prototype member', { messages: [{ role: 'toString', content: '' }] }, 'messages[0].role'],
    ['a message that is not an object', { messages: [hello, 'x'] }, 'messages[1].role'],
    ['user without content', { messages: [{ role: 'user' }] }, 'messages[0].content'],
    [
      'image in a system message',
      { messages: [{ role: 'system', content: [{ type: 'image_url' }] }] },
      'messages[0].content[0]',
    ],
    ['audio part', part({ type: 'input_audio', input_audio: {} }), 'messages[1].content[1]'],
    ['unknown part', part({ type: 'video' }), 'messages[1].content[1].type'],
    ['image as text', part({ type: 'image_url', image_url: 'https://a.test' }), 'messages[1].content[1].image_url'],
    [
      'image of another scheme',
      part({ type: 'image_url', image_url: { url: 'file:///x' } }),
      'messages[1].content[1].image_url.url',
    ],
    ['image too large', part({ type: 'image_url', image_url: { url: big } }), 'messages[1].content[1].image_url.url'],
    ['file too large', part({ type: 'file', file: { file_data: big } }), 'messages[1].content[1].file.file_data'],
    [
      'data in the URL of a file',
      part({ type: 'file', file: { file_url: big } }),
      'messages[1].content[1].file.file_url',
    ],
    ['file by id', part({ type: 'file', file: { file_id: 'file_1' } }), 'messages[1].content[1].file.file_id'],
    ['file of nothing', part({ type: 'file', file: {} }), 'messages[1].content[1].file'],
    [
      'call without id',
      { messages: [{ role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: '' } }] }] },
      'messages[0].tool_calls[0].id',
    ],
    ...[call('', 'f', '{}'), customCall('', 'x')].map((one): [string, JsonObject, string] => [
      `${one.type} call with an empty id`,
      { messages: [{ role: 'assistant', tool_calls: [one] }] },
      'messages[0].tool_calls[0].id',
    ]),
    [
      'call of nothing',
      { messages: [{ role: 'assistant', tool_calls: [call('c', '', '{}')] }] },
      'messages[0].tool_calls[0].function.name',
    ],
    [
      'call with object arguments',
      { messages: [{ role: 'assistant', tool_calls: [call('c', 'f', {})] }] },
      'messages[0].tool_calls[0].function.arguments',
    ],
    [
      'custom call with object input',
      { messages: [{ role: 'assistant', tool_calls: [customCall('c', {})] }] },
      'messages[0].tool_calls[0].custom.input',
    ],
    [
      'grammar',
      { tools: [{ type: 'custom', custom: { name: 'p', format: { type: 'grammar', grammar: 'x' } } }] },
      'tools[0].custom.format.grammar',
    ],
    ['custom choice', { tool_choice: { type: 'custom' } }, 'tool_choice.custom'],
    ['tool result of null', { messages: [{ role: 'tool', tool_call_id: 'c', content: null }] }, 'messages[0].content'],
    [
      'tool result with a picture of nothing',
      { messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'image_url' }] }] },
      'messages[0].content[0].image_url',
    ],
    [
      'tool result of sound',
      { messages: [{ role: 'tool', tool_call_id: 'c', content: [{ type: 'input_audio' }] }] },
      'messages[0].content[0]',
    ],
    [
      'tool result of an empty id',
      { messages: [{ role: 'tool', tool_call_id: '', content: 'x' }] },
      'messages[0].tool_call_id',
    ],
    ['tool result of no call', { messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].tool_call_id'],
    ['hosted tool', { tools: [{ type: 'web_search' }, { type: 'file_search' }] }, 'tools[1].type'],
    [
      'parameters',
      { tools: [{ type: 'function', function: { name: 'f', parameters: 'x' } }] },
      'tools[0].function.parameters',
    ],
    ['choice', { tool_choice: { type: 'function' } }, 'tool_choice.function'],
    ['choice of nothing', { tool_choice: { type: 'function', function: { name: '' } } }, 'tool_choice.function.name'],
    ['format', { response_format: 'yaml' }, 'response_format'],
    ['schema missing', { response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [
      'schema name',
      { response_format: { type: 'json_schema', json_schema: { name: 'a b' } } },
      'response_format.json_schema.name',
    ],
    ['two formats', { response_format: 'text', text: { format: { type: 'text' } } }, 'response_format'],
    ['functions and tools', { functions: [{ name: 'f' }], tools: [{ type: 'custom' }] }, 'functions'],
    ['functions that are no list', { functions: { name: 'f' } }, 'functions'],
    ['function parameters', { functions: [{ name: 'f', parameters: 'x' }] }, 'functions[0].parameters'],
    ['function choice', { functions: [{ name: 'f' }], function_call: { name: 7 } }, 'function_call.name'],
    [
      'function call without arguments',
      { messages: [hello, { role: 'assistant', function_call: { name: 'f' } }] },
      'messages[1].function_call.arguments',
    ],
    ['result of no call', { messages: [hello, { role: 'function', name: 'f', content: '7' }] }, 'messages[1].name'],
    [
      'second result of one call',
      {
        messages: [
          { role: 'assistant', function_call: { name: 'f', arguments: '' } },
          { role: 'function', name: 'f', content: '7' },
          { role: 'function', name: 'f', content: '7' },
        ],
      },
      'messages[2].name',
    ],
    ['previous_response_id', { previous_response_id: 'r' }, 'previous_response_id'],
    ['stream', { stream: 1 }, 'stream'],
  ])('%s', (_, extra, param) => {
    const err = refusal(aChat(extra))
    expect([err.status, err.extra.param]).toEqual([400, param])
  })

  test('a function result without a call is reported as such', () => {
    const err = refusal(aChat({ messages: [hello, { role: 'function', name: 'f', content: '7' }] }))
    expect(err.message).toBe('This function result has no matching function_call.')
  })

  test('a data URL of exactly 8 MiB is accepted', () => {
    const url = big.slice(0, MAX_DATA_URL_BYTES)
    expect(() => chatToResponses(aChat(part({ type: 'image_url', image_url: { url } })))).not.toThrow()
  })
})
