/** Messages requests as the upstream gets them. */
import { describe, expect, test } from 'bun:test'
import { getObjects, type JsonObject } from '../../../src/lib/json.ts'
import { messagesToResponses } from '../../../src/proxy/formats/messages-request.ts'

const MODEL = { slug: 'gpt-5.5', efforts: ['low', 'medium', 'high', 'xhigh'], effort: null }
const HELLO = [{ role: 'user', content: 'hello' }]
const convert = (body: JsonObject, session: string | null = null) =>
  messagesToResponses({ model: 'claude-opus-5-5', messages: HELLO, ...body }, MODEL, session)
const inputOf = (messages: unknown[], more: JsonObject = {}) => convert({ messages, ...more }).body.input
const toolsOf = (body: JsonObject) => getObjects(convert(body).body.tools)
const error = (work: () => unknown) => {
  try {
    return work()
  } catch (err) {
    return err
  }
}

describe('messages', () => {
  test('become items in order, with text around results in messages of its own', () => {
    const messages = [
      { role: 'user', content: 'list' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'sluice1.rs_1.gAAA' },
          { type: 'thinking', thinking: 'other', signature: 'EqQBCkgIARAB' },
          { type: 'redacted_thinking', data: 'x' },
          { type: 'text', text: 'Listing.' },
          { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: 'No such file', is_error: true },
          { type: 'text', text: 'try again' },
        ],
      },
    ]
    expect(inputOf(messages)).toEqual([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'list' }] },
      {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'hm' }],
        id: 'rs_1',
        encrypted_content: 'gAAA',
      },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Listing.' }] },
      { type: 'function_call', call_id: 'toolu_1', name: 'Bash', arguments: '{"command":"ls"}' },
      { type: 'function_call_output', call_id: 'toolu_1', output: 'Error:\nNo such file' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'try again' }] },
    ])
  })

  test('of role system stay in place as developer messages, and the billing line is left out', () => {
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=2.1.332.abc; cc_entrypoint=cli;' },
      { type: 'text', text: 'You are Claude Code.', cache_control: { type: 'ephemeral' } },
    ]
    const messages = [...HELLO, { role: 'system', content: 'The date.' }, { role: 'system', content: [] }]
    expect(inputOf(messages, { system })).toMatchObject([
      { role: 'developer', content: [{ text: 'You are Claude Code.' }] },
      { role: 'user' },
      { role: 'developer', content: [{ text: 'The date.' }] },
    ])
    expect(convert({ system: 'x-anthropic-billing-header: a' }).body.instructions).toBe('You are a helpful assistant.')
  })

  test('are the same bytes as text, as blocks, and with cache_control', () => {
    const cached = { cache_control: { type: 'ephemeral', ttl: '1h' } }
    const variants = [
      [
        { role: 'user', content: 'hello' },
        { role: 'system', content: 'The date.' },
      ],
      [
        { role: 'user', content: [{ type: 'text', text: 'hello', ...cached }] },
        { role: 'system', content: [{ type: 'text', text: 'The date.', ...cached }] },
      ],
    ]
    const [first, second] = variants.map((messages) => JSON.stringify(convert({ messages }).body))
    expect(second).toBe(first!)
  })

  test('keep pictures and documents, also in tool results', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const pdf = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'BBBB' } }
    const text = { type: 'document', title: 'Notes', source: { type: 'text', media_type: 'text/plain', data: 'x' } }
    const url = { type: 'image', source: { type: 'url', url: 'https://example.test/a.png' } }
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'a.png' }, image] }
    expect(inputOf([{ role: 'user', content: [pdf, text, url, result] }])).toEqual([
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,BBBB' },
          { type: 'input_text', text: 'Notes\n\nx' },
          { type: 'input_image', image_url: 'https://example.test/a.png' },
        ],
      },
      {
        type: 'function_call_output',
        call_id: 'toolu_1',
        output: [
          { type: 'input_text', text: 'a.png' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
        ],
      },
    ])
  })

  test('keep search results with title and source, also in tool results', () => {
    const found = {
      type: 'search_result',
      source: 'https://bun.sh',
      title: 'Bun',
      content: [{ type: 'text', text: 'A' }],
    }
    const two = { ...found, title: '', content: [...found.content, { type: 'text', text: 'B' }] }
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [found, two] }
    expect(inputOf([{ role: 'user', content: [found, result] }])).toMatchObject([
      { role: 'user', content: [{ type: 'input_text', text: 'Bun\nhttps://bun.sh\n\nA' }] },
      { type: 'function_call_output', output: 'Bun\nhttps://bun.sh\n\nA\nhttps://bun.sh\n\nA\nB' },
    ])
  })

  test('keep the images of a document, and leave out documents without content', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const document = (source: JsonObject) => ({ type: 'document', title: 'Notes', source })
    const text = (data: string) => ({ type: 'text', text: data })
    const content = [
      document({ type: 'content', content: [text('one'), image, text('two')] }),
      document({ type: 'content', content: 'three' }),
      document({ type: 'content', content: [] }),
      document({ type: 'content', content: [text('')] }),
      document({ type: 'text', media_type: 'text/plain', data: '' }),
    ]
    const title = { type: 'input_text', text: 'Notes' }
    expect(inputOf([{ role: 'user', content }])).toMatchObject([
      {
        content: [
          title,
          { type: 'input_text', text: 'one' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
          { type: 'input_text', text: 'two' },
          title,
          { type: 'input_text', text: 'three' },
        ],
      },
    ])
  })

  test('name the types of blocks that are left out, once each', () => {
    const upload = { type: 'container_upload', file_id: 'file_1' }
    const messages = [
      { role: 'user', content: [upload, { type: 'text', text: 'a' }, upload] },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'EqQBCkgIARAB' },
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
          { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'x', input: {} },
          { type: 'text', text: 'b' },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'audio' }, { type: 'text', text: 'c' }] }],
      },
    ]
    expect(convert({ messages }).dropped).toEqual([
      'messages.container_upload',
      'messages.mcp_tool_use',
      'messages.audio',
    ])
  })

  test('with long call ids get the same short one in a call and its result', () => {
    const id = `toolu_${'x'.repeat(90)}`
    const input = getObjects(
      inputOf([
        ...HELLO,
        { role: 'assistant', content: [{ type: 'tool_use', id, name: 'A', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: id }] },
      ]),
    )
    const [call, result] = input.slice(1)
    expect(String(call?.call_id).length).toBeLessThanOrEqual(64)
    expect(result).toMatchObject({ type: 'function_call_output', call_id: call!.call_id, output: '' })
  })

  test.each([
    ['no messages', { messages: [] }, 'messages'],
    ['an unknown role', { messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role'],
    ['no content', { messages: [{ role: 'user' }] }, 'messages[0].content'],
    [
      'a stored file',
      { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file' } }] }] },
      'messages[0].content[0].source',
    ],
    ['a server tool', { tools: [{ type: 'computer_20250124', name: 'computer' }] }, 'tools[0].type'],
  ])('%s is rejected with the path', (_name, body, param) => {
    expect(error(() => convert(body))).toMatchObject({ code: 'invalid_request_error', extra: { param } })
  })
})

describe('tools', () => {
  const tool = (name: string, more: JsonObject = {}) => ({ name, input_schema: { type: 'object' }, ...more })

  test('lose $schema and cache_control and are not strict', () => {
    const input_schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { a: {} },
    }
    expect(
      toolsOf({ tools: [tool('A', { description: 'Does A.', input_schema, cache_control: {} }), tool('B')] }),
    ).toEqual([
      {
        type: 'function',
        name: 'A',
        description: 'Does A.',
        parameters: { type: 'object', properties: { a: {} } },
        strict: false,
      },
      { type: 'function', name: 'B', parameters: { type: 'object', properties: {} }, strict: false },
    ])
  })

  test('that are deferred wait until a result names them, and then come last', () => {
    const tools = [
      tool('Late', { defer_loading: true }),
      tool('Never', { defer_loading: true }),
      tool('A'),
      tool('DeferredToolPlaceholder'),
    ]
    expect(toolsOf({ tools }).map(({ name }) => name)).toEqual(['A'])
    const content = [
      { type: 'tool_result', tool_use_id: 't', content: [{ type: 'tool_reference', tool_name: 'Late' }] },
    ]
    const request = convert({ tools, messages: [...HELLO, { role: 'user', content }] }).body
    expect(getObjects(request.tools).map(({ name }) => name)).toEqual(['A', 'Late'])
    expect(getObjects(request.input).at(-1)?.output).toContain('Late')
  })

  test('with long names get a short one, everywhere the same', () => {
    const name = `mcp__server__${'x'.repeat(100)}`
    const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name, input: {} }] }
    const { body, options } = convert({
      tools: [tool(name)],
      tool_choice: { type: 'tool', name },
      messages: [...HELLO, call],
    })
    const short = String(getObjects(body.tools)[0]?.name)
    expect(short).toHaveLength(64)
    expect(body.tool_choice).toEqual({ type: 'function', name: short })
    expect(getObjects(body.input).at(-1)?.name).toBe(short)
    expect(options.names.get(short)).toBe(name)
  })

  test.each([
    [{ type: 'auto' }, { tool_choice: 'auto' }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { tool_choice: 'required', parallel_tool_calls: false },
    ],
    [{ type: 'none' }, { tool_choice: 'none' }],
  ])('choice %j', (tool_choice, expected) => {
    expect(convert({ tools: [tool('A')], tool_choice }).body).toMatchObject(expected)
  })

  test.each([
    [[{ name: 'web_search', input_schema: {} }], 'web_search', { type: 'function', name: 'web_search' }],
    [
      [{ type: 'custom', name: 'web_search', input_schema: {} }],
      'web_search',
      { type: 'function', name: 'web_search' },
    ],
    [[{ type: 'web_search_20250305', name: 'web_search' }], 'web_search', { type: 'web_search' }],
    [[{ type: 'web_search_20250305', name: 'web_search' }, tool('A')], 'A', { type: 'function', name: 'A' }],
  ])('%j can be chosen as %j', (tools, name, tool_choice) => {
    expect(convert({ tools, tool_choice: { type: 'tool', name } }).body).toMatchObject({ tool_choice })
  })

  test('for web search keep their domains', () => {
    const search = { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['bun.sh'], max_uses: 8 }
    const { body, dropped } = convert({ tools: [search] })
    expect(body.tools).toEqual([{ type: 'web_search', filters: { allowed_domains: ['bun.sh'] } }])
    expect(body.include).toContain('web_search_call.action.sources')
    expect(convert({}).body.include).not.toContain('web_search_call.action.sources')
    expect(dropped).toEqual(['tools[0].max_uses'])
  })
})

describe('reasoning', () => {
  test.each([
    [{}, { effort: 'low' }],
    [{ output_config: { effort: 'high' } }, { effort: 'low' }],
    [
      { thinking: null, messages: [...HELLO, { role: 'system', content: [], output_config: { effort: 'max' } }] },
      { effort: 'low' },
    ],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, { effort: 'low' }],
    [{ thinking: { type: 'enabled', budget_tokens: 1024 } }, { effort: 'low', summary: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 8192 } }, { effort: 'medium', summary: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 24_576 } }, { effort: 'high', summary: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }, { effort: 'xhigh', summary: 'auto' }],
    [{ thinking: { type: 'adaptive' } }, { summary: 'auto' }],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
      { effort: 'xhigh', summary: 'auto' },
    ],
    [
      {
        thinking: { type: 'adaptive' },
        output_config: { effort: 'low' },
        messages: [...HELLO, { role: 'system', content: [], output_config: { effort: 'high' } }],
      },
      { effort: 'high', summary: 'auto' },
    ],
  ])('%j', (body, reasoning) => {
    expect(convert(body).body.reasoning).toEqual(reasoning)
  })

  test.each([
    [{}, undefined],
    [{ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }, undefined],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } },
      { effort: 'high', summary: 'auto' },
    ],
  ])('%j of a model whose efforts are unknown', (body, reasoning) => {
    const { body: sent } = messagesToResponses({ messages: HELLO, ...body }, { ...MODEL, efforts: [] }, null)
    expect(sent.reasoning).toEqual(reasoning)
  })
})

describe('everything else', () => {
  test('that cannot be passed on is named', () => {
    const { body, dropped } = convert({
      max_tokens: 65,
      temperature: 1,
      top_p: 1,
      top_k: 5,
      metadata: { user_id: 'u' },
      safeguards: [{}],
    })
    expect(dropped).toEqual(['max_tokens', 'temperature', 'top_p', 'top_k', 'metadata'])
    expect(Object.keys(body)).not.toContain('max_tokens')
  })

  test.each([
    [1, 4],
    [64, 256],
    [65, null],
    [0, null],
    ['1', null],
  ])('max_tokens %j cuts the text after %j characters, or is reported as dropped', (max_tokens, chars) => {
    const { options, dropped } = convert({ max_tokens, stop_sequences: ['</block>'] })
    expect(options).toMatchObject({ maxTextChars: chars, stopSequences: ['</block>'] })
    expect(dropped).toEqual(chars === null ? ['max_tokens'] : [])
  })

  test('stop sequences are limited, because each is searched for in every piece of the answer', () => {
    const many = (count: number) => Array.from({ length: count }, (_, index) => `</${index}>`)
    expect(convert({ stop_sequences: many(64) }).options.stopSequences).toHaveLength(64)
    for (const stop_sequences of [many(65), many(100_000), ['x'.repeat(1025)], [...many(3), 'ab'.repeat(100_000)]])
      expect(error(() => convert({ stop_sequences }))).toMatchObject({
        code: 'invalid_request_error',
        extra: { param: 'stop_sequences', message: 'Use at most 64 stop sequences of up to 1,024 characters each.' },
      })
  })

  test('the prompt cache key comes from the session of Claude Code, in each of its forms, and never from a user ID', () => {
    const id = '1b4e28ba-2fa1-11d2-883f-0016d3cca427'
    const keyOf = (user_id: string, session: string | null = null) =>
      convert({ metadata: { user_id } }, session).body.prompt_cache_key
    const key = keyOf(JSON.stringify({ device_id: 'd', account_uuid: '', session_id: id }))
    expect(key).toBeString()
    expect(keyOf(`user_d_account__session_${id}`)).toBe(key!)
    expect(keyOf('someone', id)).toBe(key!)
    expect(keyOf('someone')).toBeUndefined()
  })

  test('a schema for the answer and fast mode are passed on', () => {
    const format = { type: 'json_schema', schema: { type: 'object' } }
    expect(convert({ output_config: { format }, speed: 'fast' }).body).toMatchObject({
      text: { format: { type: 'json_schema', schema: { type: 'object' }, strict: false } },
      service_tier: 'priority',
    })
  })
})
