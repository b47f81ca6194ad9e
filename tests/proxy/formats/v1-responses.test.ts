/** `/v1/responses` requests are changed only as the upstream requires. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../../src/errors.ts'
import type { JsonObject } from '../../../src/lib/json.ts'
import { NEUTRAL_INSTRUCTIONS } from '../../../src/proxy/formats/instructions.ts'
import { REJECTED_UPSTREAM } from '../../../src/proxy/formats/parameters.ts'
import { normaliseResponses, withCiphertext } from '../../../src/proxy/formats/v1-responses.ts'

const aRequest = (extra: JsonObject = {}): JsonObject => ({
  model: 'gpt-5.5',
  instructions: 'be brief',
  input: 'hi',
  ...extra,
})
const userText = (text: string) => ({ role: 'user', content: [{ type: 'input_text', text }] })
const normal = (extra: JsonObject = {}) => normaliseResponses(aRequest(extra)).body

const refusal = (body: JsonObject): AppError => {
  try {
    normaliseResponses(body)
  } catch (err) {
    if (err instanceof AppError) return err
    throw err
  }
  throw new Error('the request was accepted')
}

const reasoningText = (text: string) => ({ type: 'reasoning_text', text })

describe('input', () => {
  const developer = { role: 'developer', content: [{ type: 'input_text', text: 'rules' }] }
  test.each<[string, JsonObject, unknown]>([
    ['text becomes one user message', { input: 'hi' }, [userText('hi')]],
    ['string content of a user', { input: [{ role: 'user', content: 'hi' }] }, [userText('hi')]],
    [
      'string content of an assistant',
      { input: [{ role: 'assistant', content: 'yes' }] },
      [{ role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] }],
    ],
    [
      'input_text of an assistant',
      { input: [{ type: 'message', role: 'assistant', content: [{ type: 'input_text', text: 'yes' }] }] },
      [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes' }] }],
    ],
    [
      'a text part beside an image',
      {
        input: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'hi' },
              { type: 'input_image', image_url: 'data:,' },
            ],
          },
        ],
      },
      [{ role: 'user', content: [...userText('hi').content, { type: 'input_image', image_url: 'data:,' }] }],
    ],
    ['developer messages stay', { input: [developer] }, [developer]],
    [
      'messages in place of input',
      { input: undefined, messages: [{ role: 'user', content: 'hi', name: 'bo' }] },
      [userText('hi')],
    ],
    [
      'a chat tool result',
      { input: [{ role: 'tool', tool_call_id: 'call_1', content: '42' }] },
      [{ type: 'function_call_output', call_id: 'call_1', output: '42' }],
    ],
    [
      'a replayed chat call, without the extras of other vendors',
      {
        input: [
          {
            role: 'assistant',
            content: null,
            reasoning_content: 'hm',
            tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
        ],
      },
      [{ type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }],
    ],
    [
      'a chat image part',
      { input: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test/x.png' } }] }] },
      [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://a.test/x.png' }] }],
    ],
  ])('%s', (_, extra, expected) => {
    expect(normal(extra).input).toEqual(expected)
  })

  test('items of every other type are the same objects in the same list', () => {
    const input = [
      { type: 'reasoning', encrypted_content: 'x', content: null },
      { type: 'unheard_of', deep: [1] },
      userText('hi'),
    ]
    expect(normal({ input }).input).toBe(input)
  })

  test.each<[string, JsonObject, JsonObject]>([
    [
      'reasoning without its status, and without content that its ciphertext has',
      {
        type: 'reasoning',
        id: 'rs_1',
        status: null,
        summary: [],
        content: [{ type: 'reasoning_text' }],
        encrypted_content: 'e',
      },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'e' },
    ],
    [
      'reasoning with content found nowhere else, as a summary',
      { type: 'reasoning', id: 'rs_1', summary: [], status: 'completed', content: [reasoningText('hm')] },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
    ],
    [
      'reasoning that has a summary and no ciphertext, without its id',
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: null },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: null },
    ],
    [
      'a message, without the id of another provider',
      { type: 'message', id: 'chatcmpl-1', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'hi' }] },
    ],
    [
      'a call, without the id of another provider',
      { type: 'function_call', id: 'toolu_1', call_id: 'c', name: 'f', arguments: '' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '' },
    ],
  ])('%s is sent back', (_, item, expected) => {
    expect(normal({ input: [item] }).input).toEqual([expected])
  })

  test.each<[string, JsonObject]>([
    ['reasoning without ciphertext', { type: 'reasoning', id: 'rs_0a1b', summary: [], encrypted_content: null }],
    [
      'reasoning with empty texts',
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text' }] },
    ],
    ['an empty message', { type: 'message', id: 'msg_1', role: 'assistant', content: [] }],
    ['a message without content', { role: 'user', content: null }],
    ['a web search without its action', { type: 'web_search_call', id: 'ws_1', status: 'completed' }],
    ['an image without its data', { type: 'image_generation_call', id: 'ig_1', result: null, size: '1024x1024' }],
    ['a compaction without ciphertext', { type: 'compaction', id: 'cmp_1', encrypted_content: null }],
    ['an item of a new type with only an id', { type: 'unheard_of', id: 'x_1', parts: [] }],
  ])('%s is omitted', (_, item) => {
    expect(normal({ input: [userText('hi'), item, userText('go on')] }).input).toEqual([
      userText('hi'),
      userText('go on'),
    ])
  })

  test('hosted calls with their content are the same objects', () => {
    const input = [
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'aGk=' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'x' },
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'x' },
    ]
    expect(normal({ input }).input).toBe(input)
  })

  test('system messages move into the instructions, and their images stay user content', () => {
    const image = { type: 'input_image', image_url: 'https://a.test/x.png' }
    const input = [
      { role: 'system', content: 'one' },
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'two' }, image] },
      userText('hi'),
    ]
    const body = normal({ input })
    expect(body.instructions).toBe('be brief\none\ntwo')
    expect(body.input).toEqual([{ role: 'user', content: [image] }, userText('hi')])
  })
})

describe('system messages stay, as developer messages,', () => {
  const system = { role: 'system', content: 'Answer in JSON.' }
  const developer = { role: 'developer', content: [{ type: 'input_text', text: 'Answer in JSON.' }] }
  const asked = { text: { format: { type: 'json_object' } } }
  test.each<[string, JsonObject, unknown[], unknown]>([
    ['in JSON mode', { ...asked, input: [system, userText('hi')] }, [developer, userText('hi')], 'be brief'],
    [
      'with no instructions beside them',
      { ...asked, input: [system], instructions: undefined },
      [developer],
      undefined,
    ],
    ['if nothing else would be left', { input: [system] }, [developer], 'be brief'],
    ['in place of input', { input: undefined, messages: [{ ...system, name: 'x' }] }, [developer], 'be brief'],
  ])('%s', (_, extra, input, instructions) => {
    const body = normal(extra)
    expect([body.input, body.instructions]).toEqual([input, instructions])
  })
})

describe('instructions', () => {
  test.each<[string, JsonObject, unknown]>([
    ['as the client wrote them', { instructions: ' as is ' }, ' as is '],
    ['neutral without any', { instructions: undefined }, NEUTRAL_INSTRUCTIONS],
    ['neutral when empty', { instructions: '' }, NEUTRAL_INSTRUCTIONS],
    [
      'none beside a developer message',
      { instructions: null, input: [{ role: 'developer', content: 'x' }] },
      undefined,
    ],
    [
      'neutral beside an empty system message that stays',
      {
        instructions: '',
        text: { format: { type: 'json_object' } },
        input: [{ role: 'system', content: '' }, userText('hi')],
      },
      NEUTRAL_INSTRUCTIONS,
    ],
    ['the system message', { instructions: null, input: [{ role: 'system', content: 's' }, userText('hi')] }, 's'],
  ])('%s', (_, extra, expected) => {
    const body = normal(extra)
    expect(body.instructions).toEqual(expected)
    expect('instructions' in body).toBe(expected !== undefined)
  })
})

describe('parameters', () => {
  test('store is false and stream is true whatever was requested', () => {
    const { body, dropped } = normaliseResponses(aRequest({ store: true, stream: false }))
    expect(body).toMatchObject({ store: false, stream: true })
    expect(dropped).toEqual(['store'])
    expect(normaliseResponses(aRequest({ store: false })).dropped).toEqual([])
  })

  test.each([...REJECTED_UPSTREAM])('%s is dropped and named', (name) => {
    const value = name === 'truncation' ? 'auto' : 7
    const { body, dropped } = normaliseResponses(aRequest({ [name]: value }))
    expect(dropped).toEqual([name])
    expect(name in body).toBe(false)
  })

  test('an unsupported parameter sent as null is dropped without being named', () => {
    const { body, dropped } = normaliseResponses(
      aRequest({ temperature: null, previous_response_id: null, conversation: null }),
    )
    expect(dropped).toEqual([])
    expect(Object.keys(body)).toEqual(['model', 'instructions', 'input', 'store', 'stream'])
  })

  test('a cache breakpoint in a part is removed and named', () => {
    const part = { type: 'input_text', text: 'hi', prompt_cache_breakpoint: { mode: 'explicit' } }
    const { body, dropped } = normaliseResponses(
      aRequest({ input: [{ role: 'user', content: [part, ...userText('ho').content] }] }),
    )
    expect(body.input).toEqual([{ role: 'user', content: [...userText('hi').content, ...userText('ho').content] }])
    expect(dropped).toEqual(['prompt_cache_breakpoint'])
  })

  test('so is one in a system message, in its text and in the rest of it', () => {
    const part = (type: string, more: JsonObject) => ({ type, ...more, prompt_cache_breakpoint: { mode: 'explicit' } })
    const text = part('input_text', { text: 'one' })
    const image = part('input_image', { image_url: 'data:,' })
    for (const [content, left] of [
      [[text], []],
      [[text, image], [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,' }] }]],
    ] as const) {
      const { body, dropped } = normaliseResponses(aRequest({ input: [{ role: 'system', content }, userText('hi')] }))
      expect(body).toMatchObject({ instructions: 'be brief\none', input: [...left, userText('hi')] })
      expect(dropped).toEqual(['prompt_cache_breakpoint'])
    }
  })

  test.each<[JsonObject, JsonObject]>([
    [{ reasoning_effort: 'low' }, { reasoning: { effort: 'low' } }],
    [{ reasoningEffort: 'high', reasoning: { summary: 'auto' } }, { reasoning: { summary: 'auto', effort: 'high' } }],
    [{ reasoning_effort: 'low', reasoning: { effort: 'high' } }, { reasoning: { effort: 'high' } }],
    [{ thinking: { type: 'enabled', budget_tokens: 9 } }, { reasoning: { effort: 'medium' } }],
    [{ enable_thinking: true }, { reasoning: { effort: 'medium' } }],
    [{ enable_thinking: false }, {}],
    [{ thinking: { enabled: true } }, { reasoning: { effort: 'medium' } }],
    [{ thinking: 'enabled' }, { reasoning: { effort: 'medium' } }],
    [{ thinking: 'disabled' }, {}],
    [{ thinking: { type: 'disabled' } }, {}],
    [{ thinking: 'low' }, { reasoning: { effort: 'low' } }],
    [
      { verbosity: 'low', text: { format: { type: 'text' } } },
      { text: { format: { type: 'text' }, verbosity: 'low' } },
    ],
    [{ textVerbosity: 'high' }, { text: { verbosity: 'high' } }],
    [{ promptCacheKey: 'k' }, { prompt_cache_key: 'k' }],
    [{ service_tier: 'auto' }, {}],
    [{ service_tier: 'default' }, {}],
    [{ service_tier: 'fast' }, { service_tier: 'priority' }],
    [{ service_tier: 'flex' }, { service_tier: 'flex' }],
    [{ service_tier: null }, { service_tier: null }],
  ])('%j becomes %j', (sent, expected) => {
    const { model, instructions, input, store, stream, ...rest } = normal(sent)
    expect(rest).toEqual(expected)
  })

  test('reasoning to be sent back is requested once', () => {
    const asking = { include: ['web_search_call.results', 'reasoning.encrypted_content'] }
    expect(withCiphertext(asking)).toBe(asking)
    expect(withCiphertext({ include: asking.include.slice(0, 1) })).toEqual(asking)
    expect(withCiphertext({})).toEqual({ include: ['reasoning.encrypted_content'] })
  })

  test('results of a web search can be included', () => {
    const include = ['web_search_call.results']
    expect(normal({ include }).include).toEqual(include)
  })

  test('unknown members are passed on, with order and identity', () => {
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }]
    const sent = {
      tools,
      reasoning: { summary: 'auto' },
      stream: true,
      future: { a: 1 },
      toString: 'as any other',
      model: 'm',
      input: [userText('x')],
      store: false,
      instructions: 'i',
    }
    const { body, dropped } = normaliseResponses(sent)
    expect(JSON.stringify(body)).toBe(JSON.stringify(sent))
    expect(body.tools).toBe(tools)
    expect(body.reasoning).toBe(sent.reasoning)
    expect(body.input).toBe(sent.input)
    expect(dropped).toEqual([])
  })

  test('the preview web search is renamed; its neighbors are the same objects', () => {
    const own = { type: 'function', name: 'f', parameters: {} }
    const body = normal({
      tools: [own, { type: 'web_search_preview', size: 1 }],
      tool_choice: { type: 'web_search_preview' },
    })
    expect(body.tools).toEqual([own, { type: 'web_search', size: 1 }])
    expect((body.tools as unknown[])[0]).toBe(own)
    expect(body.tool_choice).toEqual({ type: 'web_search' })
  })

  test('the original request is not changed', () => {
    const sent = aRequest({
      temperature: 1,
      verbosity: 'low',
      input: [{ role: 'system', content: 's' }],
      tools: [{ type: 'web_search_preview' }],
    })
    const before = structuredClone(sent)
    normaliseResponses(sent)
    expect(sent).toEqual(before)
  })
})

describe('rejections name the field', () => {
  const image = (part: JsonObject) => ({
    input: [userText('a'), { role: 'user', content: [{ type: 'input_image', ...part }] }],
  })
  test.each<[string, JsonObject, string, string]>([
    ['previous_response_id', { previous_response_id: 'resp_1' }, 'previous_response_not_found', 'previous_response_id'],
    ['conversation', { conversation: 'conv_1', previous_response_id: 'r' }, 'unsupported_parameter', 'conversation'],
    ['stored prompt', { prompt: { id: 'pmpt_1' } }, 'unsupported_parameter', 'prompt'],
    ['no model', { model: '' }, 'invalid_request_error', 'model'],
    ['no input', { input: undefined }, 'invalid_request_error', 'input'],
    ['two inputs', { messages: [] }, 'invalid_request_error', 'messages'],
    ['input of another type', { input: 7 }, 'invalid_request_error', 'input'],
    ...[null, { text: 'x' }, ['x'], ['x', { text: 'y', prompt_cache_breakpoint: {} }]].map(
      (content): [string, JsonObject, string, string] => [
        `a system message of ${JSON.stringify(content)}`,
        { input: [{ role: 'system', content }, userText('a')] },
        'invalid_request_error',
        'input[0].content',
      ],
    ),
    ['an item that is not an object', { input: [userText('a'), 'b'] }, 'invalid_request_error', 'input[1]'],
    [
      'a reference to an item',
      { input: [userText('a'), { type: 'item_reference', id: 'msg_1' }] },
      'unsupported_parameter',
      'input[1]',
    ],
    ['a reference without a type', { input: [{ id: 'msg_1' }] }, 'unsupported_parameter', 'input[0]'],
    ['instructions', { instructions: ['x'] }, 'invalid_request_error', 'instructions'],
    ['include', { include: ['reasoning.encrypted_content', 'secrets'] }, 'invalid_request_error', 'include'],
    ['include, the first of them', { include: ['secrets'] }, 'invalid_request_error', 'include'],
    ['include that is not a list', { include: 'reasoning.encrypted_content' }, 'invalid_request_error', 'include'],
    ['truncation', { truncation: 'middle' }, 'invalid_request_error', 'truncation'],
    ['stream', { stream: 'yes' }, 'invalid_request_error', 'stream'],
    ['tools', { tools: {} }, 'invalid_request_error', 'tools'],
    ['reasoning', { reasoning: 'low' }, 'invalid_request_error', 'reasoning'],
    ['image by id', image({ file_id: 'file_1' }), 'invalid_request_error', 'input[1].content[0]'],
    [
      'image by id in a system message',
      { input: [{ role: 'system', content: [{ type: 'input_image', file_id: 'file_1' }] }, userText('a')] },
      'invalid_request_error',
      'input[0].content[0]',
    ],
    ['image of another provider', image({ image_url: 'sediment://x' }), 'invalid_request_error', 'input[1].content[0]'],
    ['trigger not last', { input: [{ type: 'compaction_trigger' }, userText('a')] }, 'invalid_request_error', 'input'],
  ])('%s', (_, extra, code, param) => {
    const err = refusal(aRequest(extra))
    expect([err.code as string, err.status, err.extra.param]).toEqual([code, 400, param])
  })
})

test('the first request of opencode keeps everything except its output limit', () => {
  const sent = {
    model: 'gpt-5.5',
    input: [{ role: 'developer', content: 'You are OpenCode' }, userText('"hello opencode"')],
    max_output_tokens: 32000,
    text: { verbosity: 'low' },
    store: false,
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'ses_1',
    reasoning: { effort: 'low', summary: 'auto' },
    tools: [{ type: 'function', name: 'bash', parameters: {} }],
    tool_choice: 'auto',
    stream: true,
  }
  const { max_output_tokens, ...rest } = sent
  const { body, dropped } = normaliseResponses(sent)
  expect(dropped).toEqual(['max_output_tokens'])
  const input = [{ role: 'developer', content: [{ type: 'input_text', text: 'You are OpenCode' }] }, sent.input[1]]
  expect(JSON.stringify(body)).toBe(JSON.stringify({ ...rest, input }))
})
