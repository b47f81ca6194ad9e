/** The public API through the whole app, and the changes to a body on its way upstream. */
import { describe, expect, test } from 'bun:test'
import { codexBody, expectNothingLeft, getAnswer, isTerminal, type TestApp, testApp } from '../support/app.ts'
import { answers } from '../support/upstream/script.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const V1 = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const HELLO = 'Hello from account-1@example.test'
const messages = [{ role: 'user', content: 'hello' }]
const lastBody = (app: TestApp) => JSON.parse(app.upstream.requests.at(-1)!.bodyText)
const getChunks = (text: string) =>
  text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)))

describe('/v1/responses', () => {
  test('returns one document when no stream is requested', async () => {
    const app = await testApp()
    const answer = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello' } })
    expect(answer.status).toBe(200)
    const response = JSON.parse(answer.text)
    expect(response).toMatchObject({ object: 'response', status: 'completed' })
    expect(response.output.at(-1).content[0].text).toBe(HELLO)
    expect(lastBody(app)).toMatchObject({ store: false, stream: true, input: [{ role: 'user' }] })
    expect((await app.rows())[0]).toMatchObject({ route: '/v1/responses', status: 'ok', responseId: response.id })
    await expectNothingLeft(app)
  })

  test.each(['[DONE]', '{oops', '{"text":"of no type"}'])(
    'streams only events, because SDKs would take %s for the end, or fail',
    async (data) => {
      const app = await testApp()
      app.members[0]!.sim.next({ malformedChunk: { afterEvents: 7, text: `data: ${data}\n\n` }, omitTerminal: true })
      const { text, events } = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello', stream: true } })
      expect(text).not.toContain(data)
      expect(events.at(-1)).toMatchObject({
        type: 'response.failed',
        response: { error: { code: 'stream_incomplete' } },
      })
    },
  )

  const item = { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }
  const unfilled = { 'an empty output': { output: [] }, 'an output of null': { output: null }, 'no output': {} }
  const ends = ['completed', 'incomplete'].flatMap((status) =>
    Object.entries(unfilled).map(([name, output]) => ({ name, status, output })),
  )
  test.each(ends)('streams a response.$status with $name and its content so far', async ({ status, output }) => {
    const app = await testApp()
    const done = { type: 'response.output_item.done', output_index: 0, item }
    for (const said of [[done], []]) {
      const sent = [
        { type: 'response.created', response: { id: 'resp_1', output: [] } },
        ...said,
        { type: `response.${status}`, response: { id: 'resp_1', status, ...output } },
      ]
      const body = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
      app.members[0]!.sim.next({ status: 200, headers: { 'content-type': 'text/event-stream' }, body })
      const { events } = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello', stream: true } })
      const stored = { store: true, previous_response_id: null }
      const response = { id: 'resp_1', status, output: said.map((event) => event.item), ...stored }
      expect(events.at(-1)).toEqual({ type: `response.${status}`, sequence_number: sent.length - 1, response })
    }
    await expectNothingLeft(app)
  })

  test('streams and collects the content of a finished item that ends again without it', async () => {
    const app = await testApp()
    const done = (output_index: number, one: object) => ({ type: 'response.output_item.done', output_index, item: one })
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '{"at":1}' }
    const sent = [
      { type: 'response.created', response: { id: 'resp_1', output: [] } },
      done(1, call),
      done(0, item),
      done(0, { ...item, content: [] }),
      done(1, { ...call, arguments: '' }),
      { type: 'response.completed', response: { id: 'resp_1', status: 'completed', output: [] } },
    ]
    const body = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    const answer = { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
    app.members[0]!.sim.next(answer, answer)
    const asked = { model: 'gpt-5.5', input: 'hello' }
    const { events } = await getAnswer(app, V1, { json: { ...asked, stream: true } })
    expect(events.at(-1)).toMatchObject({ response: { output: [item, call] } })
    expect(JSON.parse((await getAnswer(app, V1, { json: asked })).text).output).toEqual([item, call])
    await expectNothingLeft(app)
  })

  const begun = (output_index: number, one: object) => ({ type: 'response.output_item.added', output_index, item: one })
  const hollow = { ...item, content: [] }
  const text = { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hi' }
  const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'look', arguments: '' }
  const given = { type: 'response.function_call_arguments.done', output_index: 1, arguments: '{"at":1}' }
  test.each([
    ['was never ended', [begun(0, hollow), text, begun(1, call), given]],
    [
      'ended without it',
      [
        begun(0, hollow),
        text,
        { type: 'response.output_item.done', output_index: 0, item: hollow },
        begun(1, call),
        given,
      ],
    ],
  ])('streams and collects the content of an item that %s', async (_, said) => {
    const app = await testApp()
    const ended = { type: 'response.incomplete', response: { id: 'resp_1', status: 'incomplete', output: [] } }
    const body = [...said, ended].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    const answer = { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
    app.members[0]!.sim.next(answer, answer)
    const asked = { model: 'gpt-5.5', input: 'hello' }
    const { events } = await getAnswer(app, V1, { json: { ...asked, stream: true } })
    const { output } = JSON.parse((await getAnswer(app, V1, { json: asked })).text)
    expect(events.at(-1)).toMatchObject({ response: { output } })
    expect(output).toMatchObject([{ content: [{ text: 'Hi' }] }, { arguments: '{"at":1}' }])
    await expectNothingLeft(app)
  })

  test('streams no empty call if all its deltas were empty', async () => {
    const app = await testApp()
    const delta = { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"at":' }
    const ended = { type: 'response.incomplete', response: { id: 'resp_1', status: 'incomplete', output: [] } }
    const body = [begun(1, call), delta, ended].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
    app.members[0]!.sim.next({ status: 200, headers: { 'content-type': 'text/event-stream' }, body })
    const { events } = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello', stream: true } })
    expect(events.at(-1)).toMatchObject({ response: { output: [] } })
    await expectNothingLeft(app)
  })

  test('streams without the events that are internal to Sluice and the upstream', async () => {
    const app = await testApp({
      accounts: [{ usage: { primary: { usedPercent: 12, windowMinutes: 300, resetAt: Date.UTC(2026, 0, 1, 4) } } }],
    })
    app.members[0]!.sim.always({ rateLimitsEvent: true })
    const open = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(open.events.map(({ type }) => type)).toContain('codex.rate_limits')
    const { events } = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello', stream: true } })
    const types = events.map(({ type }) => type)
    expect(types[0]).toBe('response.created')
    expect(types.filter((type) => type.startsWith('codex.'))).toEqual([])
    expect(types.filter(isTerminal)).toEqual(['response.completed'])
    expect(app.bindings.pool.all()[0]!.usage?.windows.fiveHour?.usedPercent).toBe(12)
    await expectNothingLeft(app)
  })

  test.each([{}, { include: [] }, { include: ['web_search_call.results'] }])(
    'returns reasoning in items that can be sent back, as SDKs do: %j',
    async (asked) => {
      const app = await testApp()
      app.upstream.script(() =>
        answers.items([
          { kind: 'reasoning', summary: 'hm' },
          { kind: 'text', text: HELLO },
        ]),
      )
      const ask = (...input: unknown[]) => getAnswer(app, V1, { json: { model: 'gpt-5.5', input, ...asked } })
      const { output } = JSON.parse((await ask(...messages)).text)
      const [reasoning, message] = output
      const held = { ...reasoning, status: 'completed', content: [{ type: 'reasoning_text', text: 'hm' }] }
      expect((await ask(...messages, held, message, ...messages)).status).toBe(200)
      const { input, include } = lastBody(app)
      expect(input[1]).toEqual({ ...reasoning, encrypted_content: expect.any(String) })
      expect(include).toEqual([...(asked.include ?? []), 'reasoning.encrypted_content'])
      await expectNothingLeft(app)
    },
  )

  test.each([{ parameters: null }, {}])('accepts a function without parameters: %j', async (parameters) => {
    const app = await testApp()
    const tools = [{ type: 'function', name: 'get_time', ...parameters }]
    expect((await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello', tools } })).status).toBe(200)
    await expectNothingLeft(app)
  })

  const spent = [
    { type: 'reasoning', id: 'rs_0a1b', summary: [], encrypted_content: null },
    { type: 'message', id: 'msg_1', role: 'assistant', content: [] },
    { type: 'web_search_call', id: 'ws_1', status: 'completed' },
  ]
  test.each([{}, { stream: true }])('skips replayed items without content: %j', async (asked) => {
    const app = await testApp()
    for (const item of spent) {
      const input = [...messages, item, ...messages]
      expect((await getAnswer(app, V1, { json: { model: 'gpt-5.5', input, ...asked } })).status).toBe(200)
      expect(lastBody(app).input).toHaveLength(2)
    }
    await expectNothingLeft(app)
  })

  const long = 'x'.repeat(65)
  const called = { name: 'f', arguments: '{}' }
  test.each<[string, (call_id: string) => object]>([
    [
      V1,
      (call_id) => ({
        input: [
          ...messages,
          { type: 'function_call', id: long, call_id, ...called },
          { type: 'function_call_output', id: long, call_id, output: '7' },
        ],
      }),
    ],
    [
      CHAT,
      (id) => ({
        messages: [
          ...messages,
          { role: 'assistant', tool_calls: [{ id, type: 'function', function: called }] },
          { role: 'tool', tool_call_id: id, content: '7' },
        ],
      }),
    ],
  ])('%s continues a conversation with long ids of another provider', async (route, json) => {
    const app = await testApp()
    const callIds = async (id: string) => {
      const answer = await getAnswer(app, route, { json: { model: 'gpt-5.5', ...json(id) } })
      expect(answer.status).toBe(200)
      const [, call, output] = lastBody(app).input
      expect([call.id, output.id]).toEqual([undefined, undefined])
      expect(output.call_id).toBe(call.call_id)
      return call.call_id
    }
    expect(await callIds('x'.repeat(64))).toBe('x'.repeat(64))
    expect(await callIds(long)).toBe(await callIds(long))
    expect(await callIds(long)).not.toBe(await callIds(`${long}y`))
    await expectNothingLeft(app)
  })

  test('names what was dropped', async () => {
    const app = await testApp()
    const json = { model: 'gpt-5.5', input: 'hello', temperature: 0.2, user: 'me', max_output_tokens: 10 }
    const answer = await getAnswer(app, V1, { json })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-sluice-dropped-fields')?.split(', ').sort()).toEqual([
      'max_output_tokens',
      'temperature',
      'user',
    ])
    expect(Object.keys(lastBody(app))).not.toContain('temperature')
  })

  test.each<[string, string]>([
    ['ключ', '%D0%BA%D0%BB%D1%8E%D1%87'],
    ['a\r\nset-cookie: b', 'a%0D%0Aset-cookie:%20b'],
    ['a,b%', 'a%2Cb%25'],
    ['\ud800', '%EF%BF%BD'],
    ['x'.repeat(100), `${'x'.repeat(64)}...`],
  ])('names %j so that a header can contain it', async (name, expected) => {
    const app = await testApp()
    for (const stream of [true, false]) {
      const answer = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, stream, [name]: 1 } })
      expect([answer.status, answer.headers.get('x-sluice-dropped-fields')]).toEqual([200, expected])
    }
    await expectNothingLeft(app)
  })

  test('names 32 at most', async () => {
    const app = await testApp()
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`x${n}`, 1]))
    const answer = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, ...many } })
    const names = answer.headers.get('x-sluice-dropped-fields')?.split(', ')
    expect([names?.length, names?.at(-1)]).toEqual([33, '...'])
  })

  test('rejects an earlier response id, here and on the native route', async () => {
    const app = await testApp()
    for (const route of [V1, NATIVE, 'POST /v1/responses/compact']) {
      const answer = await getAnswer(app, route, { json: codexBody('hello', { previous_response_id: 'resp_1' }) })
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([400, 'previous_response_not_found'])
    }
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test('answers 200 with an incomplete response unchanged', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ incomplete: { reason: 'max_output_tokens' } })
    const answer = await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hello' } })
    expect([answer.status, JSON.parse(answer.text).status]).toEqual([200, 'incomplete'])
  })
})

describe('/v1/chat/completions', () => {
  test('returns one document', async () => {
    const app = await testApp()
    const answer = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages } })
    const completion = JSON.parse(answer.text)
    expect(completion).toMatchObject({ object: 'chat.completion', model: 'gpt-5.5' })
    expect(completion.choices).toMatchObject([
      { message: { role: 'assistant', content: HELLO }, finish_reason: 'stop' },
    ])
    expect(completion.usage.total_tokens).toBeGreaterThan(0)
    await expectNothingLeft(app)
  })

  test('streams chunks with one finish, the requested usage, and [DONE]', async () => {
    const app = await testApp()
    const json = { model: 'gpt-5.5', messages, stream: true, stream_options: { include_usage: true } }
    const { text } = await getAnswer(app, CHAT, { json })
    const chunks = getChunks(text)
    expect(chunks[0].choices[0].delta.role).toBe('assistant')
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? '').join('')).toBe(HELLO)
    expect(
      chunks.filter(({ choices }) => choices[0]?.finish_reason).map(({ choices }) => choices[0].finish_reason),
    ).toEqual(['stop'])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } })
    expect(text).toEndWith('data: [DONE]\n\n')
    await expectNothingLeft(app)
  })

  test.each<[Record<string, unknown>, string | undefined]>([
    [{ reasoning_effort: 'high' }, 'auto'],
    [{ reasoning: { effort: 'low' }, stream: true }, 'auto'],
    [{ reasoning_effort: 'low', reasoning: { summary: 'detailed' } }, 'detailed'],
    [{ reasoning_effort: 'none' }, undefined],
    [{}, undefined],
  ])('returns reasoning if an effort was requested: %j', async (asked, summary) => {
    const app = await testApp()
    const answer = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, ...asked } })
    expect(lastBody(app).reasoning?.summary).toBe(summary)
    const thought = asked.stream
      ? getChunks(answer.text)
          .map(({ choices }) => choices[0].delta.reasoning_content ?? '')
          .join('')
      : JSON.parse(answer.text).choices[0].message.reasoning_content
    expect(thought).toBe(summary && '**Thinking** it over')
    await expectNothingLeft(app)
  })

  test('requests reasoning if a key enforces the effort, only in chat', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const headers = { authorization: `Bearer ${(await app.key({ enforcedReasoningEffort: 'high' })).key}` }
    await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages }, headers })
    expect(lastBody(app).reasoning).toEqual({ effort: 'high', summary: 'auto' })
    await getAnswer(app, V1, { json: { model: 'gpt-5.5', input: 'hi' }, headers })
    expect(lastBody(app).reasoning).toEqual({ effort: 'high' })
  })

  test('passes tools both ways', async () => {
    const app = await testApp()
    app.upstream.script(() => answers.toolCall({ name: 'add', arguments: '{"a":1}' }))
    const tools = [{ type: 'function', function: { name: 'add', parameters: { type: 'object' } } }]
    const first = JSON.parse((await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, tools } })).text)
    const [call] = first.choices[0].message.tool_calls
    expect(call.function).toEqual({ name: 'add', arguments: '{"a":1}' })
    expect(first.choices[0].finish_reason).toBe('tool_calls')
    app.upstream.script(null)
    const results = [...messages, first.choices[0].message, { role: 'tool', tool_call_id: call.id, content: '2' }]
    const second = JSON.parse(
      (await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages: results, tools } })).text,
    )
    expect(second.choices[0].message.content).toBe('The tool said: 2')
    await expectNothingLeft(app)
  })

  test.each([
    { tools: [{ type: 'function', function: { name: 'get_time' } }] },
    { tools: [{ type: 'function', function: { name: 'get_time', parameters: null, strict: true } }] },
    { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: null } } },
  ])('can omit what Responses requires: %j', async (asked) => {
    const app = await testApp()
    expect((await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, ...asked } })).status).toBe(200)
    await expectNothingLeft(app)
  })

  test.each([{}, { stream: true }])('passes functions both ways, the predecessor of tools: %j', async (streamed) => {
    const app = await testApp()
    app.upstream.script((turn) =>
      turn.input.some(({ type }) => type === 'function_call_output')
        ? null
        : answers.toolCall({ name: 'add', arguments: '{"a":1,"b":20}' }, { deltaChars: 4 }),
    )
    const ask = async (...said: unknown[]) => {
      const json = { model: 'gpt-5.5', messages: said, functions: [{ name: 'add' }], ...streamed }
      const { status, text } = await getAnswer(app, CHAT, { json })
      expect(status).toBe(200)
      if (!('stream' in streamed)) return JSON.parse(text).choices[0]
      const choices = getChunks(text).flatMap(({ choices }) => choices)
      const calls = choices.flatMap(({ delta }) => delta.function_call ?? [])
      expect(choices.filter(({ delta }) => delta.tool_calls)).toEqual([])
      expect(calls.map(({ name }) => name)).toEqual(calls.map((_, n) => (n === 0 ? 'add' : undefined)))
      const message = {
        role: 'assistant',
        content: choices.map(({ delta }) => delta.content ?? '').join('') || null,
        ...(calls.length > 0 && {
          function_call: { name: 'add', arguments: calls.map((one) => one.arguments).join('') },
        }),
      }
      return { message, finish_reason: choices.at(-1).finish_reason }
    }
    const { message, finish_reason } = await ask(...messages)
    expect(finish_reason).toBe('function_call')
    expect(message.function_call).toEqual({ name: 'add', arguments: '{"a":1,"b":20}' })
    expect(message.tool_calls).toBeUndefined()
    const answered = await ask(...messages, message, { role: 'function', name: 'add', content: '21' })
    expect(answered).toMatchObject({ message: { content: 'The tool said: 21' }, finish_reason: 'stop' })
    await expectNothingLeft(app)
  })

  test('ends a stream that breaks with one error and no [DONE]', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ dropAfter: { events: 6, how: 'fin' } })
    const { text } = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages, stream: true } })
    expect(getChunks(text).filter(({ error }) => error)).toMatchObject([{ error: { code: 'stream_incomplete' } }])
    expect(text).not.toContain('[DONE]')
    await expectNothingLeft(app)
  })
})

describe('unsupported parameters that change the result', () => {
  const UNSUPPORTED: Record<string, string> = {
    n: "n must be 1. Sluice can't return several answers.",
    background: 'Background responses are not supported. Leave out background.',
  }
  const asks: [string, string, Record<string, unknown>][] = [
    ['background', V1, { input: 'hi', background: true }],
    ['n', V1, { input: 'hi', n: 2 }],
    ['n', V1, { input: 'hi', n: 0, stream: true }],
    ['background', 'POST /v1/responses/compact', { input: 'hi', background: 'true' }],
    ['background', CHAT, { messages, background: true }],
    ['n', CHAT, { messages, n: 2, stream: true }],
    ['n', CHAT, { input: 'hi', n: 3 }],
  ]
  test.each(asks)('is 400 and names %s: %s %j', async (param, route, asked) => {
    const app = await testApp()
    const answer = await getAnswer(app, route, { json: { model: 'gpt-5.5', ...asked } })
    expect(answer.status).toBe(400)
    const message = UNSUPPORTED[param]
    expect(JSON.parse(answer.text).error).toMatchObject({ code: 'unsupported_parameter', param, message })
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test.each([
    [V1, { input: 'hi' }],
    [CHAT, { messages }],
  ])('%s accepts parameters without effect, and names nothing', async (route, asked) => {
    const app = await testApp()
    const answer = await getAnswer(app, route, { json: { model: 'gpt-5.5', background: false, n: 1, ...asked } })
    expect([answer.status, answer.headers.get('x-sluice-dropped-fields')]).toEqual([200, null])
    await expectNothingLeft(app)
  })
})

describe('tools and schemas', () => {
  const schema =
    '{"type": "object", "properties": {"b": {"minimum": -9223372036854775808}, "2": {"multipleOf": 1e-7}, "1": {}}}'
  const flat = `{"type": "function", "name": "f", "parameters": ${schema}}`
  const asked = (more: string) => `{"model": "gpt-5.5", ${more}, "store": false}`
  const sentText = (app: TestApp) => app.upstream.requests.at(-1)!.bodyText

  test.each(['POST /v1/responses', 'POST /v1/responses/compact'])('are sent as written: %s', async (route) => {
    const app = await testApp()
    const tools = `[${flat}, {"type": "web_search_preview"}]`
    const answer = await getAnswer(app, route, { body: asked(`"tools": [], "tools": ${tools}, "input": "hi"`) })
    expect(answer.status).toBe(200)
    expect(sentText(app)).toContain(`"tools":[${flat},{"type":"web_search"}]`)
    await expectNothingLeft(app)
  })

  test('with a fraction beyond double precision are sent as written', async () => {
    const app = await testApp()
    const tool = '{"type": "function", "name": "f", "parameters": {"minimum": 123456789012345.678}}'
    await getAnswer(app, V1, { body: asked(`"tools": [${tool}], "input": "hi"`) })
    expect(sentText(app)).toContain(`"tools":[${tool}]`)
    await expectNothingLeft(app)
  })

  test('have the written parameters, in chat', async () => {
    const app = await testApp()
    const nested = `{"type": "function", "function": {"parameters": ${schema}, "name": "f"}}`
    const tools = `[{"type": "function", "function": {}}, ${nested}]`
    const answer = await getAnswer(app, CHAT, {
      body: asked(`"tools": ${tools}, "messages": [{"role":"user","content":"hi"}]`),
    })
    expect(answer.status).toBe(200)
    expect(sentText(app)).toContain(`"tools":[{"type":"function","name":"f","parameters":${schema},"strict":false}]`)
    await expectNothingLeft(app)
  })

  const format = `{"name": "f", "strict": true, "schema": ${schema}}`
  test.each([
    [
      V1,
      `"input": "hi", "text": {"format": {"type": "json_schema", "name": "f", "strict": true, "schema": ${schema}}}`,
    ],
    [
      CHAT,
      `"messages": [{"role":"user","content":"hi"}], "response_format": {"type": "json_schema", "json_schema": ${format}}`,
    ],
  ])('and so does the schema of a response: %s', async (route, more) => {
    const app = await testApp()
    const answer = await getAnswer(app, route, { body: asked(`"verbosity": "low", ${more}`) })
    expect(answer.status).toBe(200)
    expect(sentText(app)).toContain(schema)
    const sent = { type: 'json_schema', name: 'f', strict: true, schema: JSON.parse(schema) }
    expect(lastBody(app).text).toEqual({ verbosity: 'low', format: sent })
    await expectNothingLeft(app)
  })

  const lite = { 'x-openai-internal-codex-responses-lite': 'true' }
  const namespace = `{"type": "namespace", "name": "n", "tools": [${flat}]}`
  test.each([
    [
      'tools among the items',
      `"input": [{"role":"user","content":"hi"}, {"type": "additional_tools", "tools": [${namespace}]}]`,
    ],
    [
      'tools beside a reasoning item that is changed',
      `"input": [{"type":"reasoning","status":"x","encrypted_content":null,"summary":[{}]}, {"type": "additional_tools", "tools": [${namespace}]}]`,
    ],
    [
      'a tool found by search',
      `"input": [{"type": "tool_search_output", "call_id": "c", "status": "completed", "tools": [${namespace}]}, {"type":"additional_tools","tools":[]}]`,
    ],
    ['metadata of the client', `"input": "hi", "client_metadata": {"b": "1", "2": "2", "1": "${'[[{'}"}`],
  ])('and so do %s', async (_, more) => {
    const app = await testApp()
    await getAnswer(app, V1, {
      body: asked(`"temperature": 1, ${more}`),
      headers: more.includes('additional_tools') ? lite : {},
    })
    const own = more.includes('client_metadata') ? /\{"b".*\}$/.exec(more)![0] : namespace
    expect(sentText(app)).toContain(own)
    await expectNothingLeft(app)
  })

  test('and so do tools among the items of a fallback compaction', async () => {
    const app = await testApp()
    app.upstream.compactRetired = true
    const input = `[{"type": "additional_tools", "tools": [${namespace}]}, {"role":"user","content":"hi"}]`
    await getAnswer(app, 'POST /v1/responses/compact', { body: asked(`"input": ${input}`), headers: lite })
    expect(sentText(app)).toContain(namespace)
    await expectNothingLeft(app)
  })
})

describe('compaction', () => {
  const { model, instructions, input } = codexBody()
  for (const retired of [false, true])
    for (const route of ['POST /backend-api/codex/responses/compact', 'POST /v1/responses/compact'])
      test(`${route}, ${retired ? 'the upstream route is gone' : 'as the upstream does it'}`, async () => {
        const app = await testApp()
        app.upstream.compactRetired = retired
        const answer = await getAnswer(app, route, { json: { model, instructions, input } })
        expect(answer.status).toBe(200)
        const { object, output } = JSON.parse(answer.text)
        expect(object).toBe('response.compaction')
        expect(output.map(({ type }: { type: string }) => type)).toEqual(['message', 'compaction'])
        expect(await app.rows()).toMatchObject([{ kind: 'compaction', status: 'ok', httpStatus: 200 }])
        await expectNothingLeft(app)
      })
})

test('a fallback compaction names what it dropped on both', async () => {
  const app = await testApp()
  app.upstream.compactRetired = true
  const json = { model: 'gpt-5.5', input: 'hi', temperature: 1, tools: [], text: { verbosity: 'low' } }
  const answer = await getAnswer(app, 'POST /v1/responses/compact', { json })
  expect([answer.status, answer.headers.get('x-sluice-dropped-fields')]).toEqual([200, 'temperature, text, tools'])
  await expectNothingLeft(app)
})

describe('fallback compaction, when the upstream route is retired', () => {
  const COMPACT = 'POST /backend-api/codex/responses/compact'
  const { model, instructions, input } = codexBody()
  const gone = { on: 'compact' as const, status: 404, body: { detail: 'Not Found' } }

  test('uses no account that was tried before', async () => {
    const app = await testApp({ accounts: 2 })
    const [first, second] = app.members
    await app.prefer(first!.id)
    first!.sim.always({ on: 'compact', status: 403, body: { error: { code: 'region_denied' } } })
    second!.sim.always(gone)
    expect((await getAnswer(app, COMPACT, { json: { model, instructions, input } })).status).toBe(200)
    expect((await app.attemptRows()).map(({ accountId }) => accountId)).toEqual([first!.id, second!.id, second!.id])
    await expectNothingLeft(app)
  })

  test.each([COMPACT, 'POST /v1/responses/compact'])(
    'is not used for a model that no account has: %s',
    async (route) => {
      const app = await testApp({ accounts: 2 })
      for (const { sim } of app.members)
        sim.next({ on: 'compact', status: 404, body: { detail: `Model not found ${model}` } })
      const answer = await getAnswer(app, route, { json: { model, instructions, input } })
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([404, 'model_not_found'])
      expect(app.upstream.requests.map(({ path }) => path)).toEqual(
        Array(2).fill('/backend-api/codex/responses/compact'),
      )
      await expectNothingLeft(app)
    },
  )

  test('has the remaining time, not the full time again', async () => {
    const app = await testApp({ settings: { compactTimeoutSeconds: 60 } })
    const { sim } = app.members[0]!
    sim.next({ ...gone, delayHeadersMs: 40_000 })
    sim.next({ on: 'responses', delayHeadersMs: 40_000 })
    const answer = app.ask(COMPACT, { json: { model, instructions, input } })
    let isAnswered = false
    void answer.then(() => {
      isAnswered = true
    })
    await app.clock.advance('40s')
    expect(isAnswered).toBe(false)
    await app.clock.advance('20s')
    expect(isAnswered).toBe(true)
    expect((await answer).status).toBe(504)
    await expectNothingLeft(app)
  })

  test('without a compaction in the response is logged as the failure the client got, and charged', async () => {
    const app = await testApp()
    app.members[0]!.sim.next(gone)
    app.members[0]!.sim.next({ on: 'responses', manyEvents: { count: 2, bytes: 4 } })
    const answer = await getAnswer(app, COMPACT, { json: { model, instructions, input } })
    expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([502, 'upstream_error'])
    expect(await app.rows()).toMatchObject([
      { status: 'error', httpStatus: 502, errorCode: 'upstream_error', inputTokens: expect.any(Number) },
    ])
    await expectNothingLeft(app)
  })
})

test('a response that completed as failed is logged as the failure a chat client gets', async () => {
  const app = await testApp()
  const events = [
    { type: 'response.created', response: { id: 'resp_1' } },
    { type: 'response.output_text.delta', delta: 'x' },
    {
      type: 'response.completed',
      response: { id: 'resp_1', status: 'failed', output: [], error: { code: 'server_error', message: 'x' } },
    },
  ]
  const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  app.members[0]!.sim.next({ status: 200, headers: { 'content-type': 'text/event-stream' }, body })
  const answer = await getAnswer(app, CHAT, { json: { model: 'gpt-5.5', messages } })
  expect([answer.status, (await app.rows())[0]]).toMatchObject([502, { status: 'error', httpStatus: 502 }])
  await expectNothingLeft(app)
})

describe('a body on the native route', () => {
  const written = (more: string) =>
    `{ "model" : "gpt-5.5",\n\t"instructions":"Gr\\u00fc\\u00df 🙂",${more} "input": [ {"type":"message","role":"user","content":[{"text":"x","type":"input_text"}]} ] }\n`
  const cases: Record<string, [sent: string, expected: string]> = {
    'that does not request a stream': [
      written('"stream": false, "store":false,'),
      written('"stream": true, "store":false,'),
    ],
    'that asks to be stored': [written('"stream":true,"store" : true ,'), written('"stream":true,"store" : false ,')],
    'that says neither': [written(''), written('').replace('{', '{"store":false,"stream":true,')],
  }
  for (const [name, [sent, expected]] of Object.entries(cases))
    test(`${name} changes there and nowhere else`, async () => {
      const app = await testApp()
      expect((await getAnswer(app, NATIVE, { body: sent })).status).toBe(200)
      const received = app.upstream.requests[0]!.bodyText
      if (name === 'that says neither') expect(received.length).toBe(expected.length)
      else expect(received).toBe(expected)
      expect(JSON.parse(received)).toEqual({ ...JSON.parse(sent), stream: true, store: false })
    })

  test('gets the model that its key enforces', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await app.key({ enforcedModel: 'gpt-5.5' })
    const sent = written('"stream":true,"store":false,').replace('gpt-5.5', 'gpt-6-luna')
    await getAnswer(app, NATIVE, { body: sent, headers: { authorization: `Bearer ${key}` } })
    expect(app.upstream.requests[0]!.bodyText).toBe(sent.replace('gpt-6-luna', 'gpt-5.5'))
    expect(app.upstream.oddities).toEqual([])
  })

  for (const [encoding, encode] of [
    ['zstd', Bun.zstdCompressSync],
    ['gzip', Bun.gzipSync],
  ] as const)
    test(`can be compressed: ${encoding}`, async () => {
      const app = await testApp()
      const text = JSON.stringify(codexBody('hello', { text: { verbosity: 'low' } }), null, 2)
      const body = new Uint8Array(encode(Buffer.from(text)))
      const headers = { 'content-encoding': encoding, 'content-length': String(body.length) }
      expect((await getAnswer(app, NATIVE, { body, headers })).status).toBe(200)
      expect(app.upstream.requests[0]!.bodyText).toBe(text)
      await expectNothingLeft(app)
    })

  test('that is invalid JSON, too large or mislabeled is rejected in its error format', async () => {
    const app = await testApp()
    const refusals: [Record<string, string>, BodyInit, number, string][] = [
      [{}, '{"model":', 400, 'malformed_json'],
      [{}, '[1]', 400, 'invalid_request_error'],
      [{}, '{"input":[]}', 400, 'invalid_request_error'],
      [{ 'content-encoding': 'zstd' }, '{}', 400, 'unsupported_encoding'],
      [{ 'content-encoding': 'rot13' }, '{}', 400, 'unsupported_encoding'],
      [{ 'content-length': String(129 * 1024 * 1024) }, '{}', 400, 'payload_too_large'],
    ]
    for (const [headers, body, status, code] of refusals) {
      const answer = await getAnswer(app, NATIVE, { body, headers })
      expect([answer.status, JSON.parse(answer.text).error.code]).toEqual([status, code])
    }
    const large = await getAnswer(app, V1, { body: '{}', headers: { 'content-length': String(129 * 1024 * 1024) } })
    expect(large.status).toBe(413)
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })
})
