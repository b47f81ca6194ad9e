/** `POST /v1/messages` served by a model source: translated to Responses and back, limited and logged like the pool's. */
import { describe, expect, test } from 'bun:test'
import type { JsonObject } from '../../../src/lib/json.ts'
import { expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { addSource } from '../../support/source/add.ts'
import { ANSWER_TEXT } from '../../support/source/answers.ts'

const ROUTE = 'POST /v1/messages'
const MODEL = 'llama-4'
const PRICES = { inputPer1m: 2, cachedInputPer1m: 1, outputPer1m: 10 }

const withSource = async (fields: Parameters<typeof addSource>[1] = {}) => {
  const app = await testApp()
  const source = await addSource(app, { models: [{ model: MODEL, ...PRICES }], ...fields })
  return { app, source }
}

const json = (more: JsonObject = {}) => ({
  model: MODEL,
  max_tokens: 1024,
  system: 'Be brief.',
  messages: [{ role: 'user', content: 'hello' }],
  ...more,
})

const ask = (app: TestApp, more: JsonObject = {}, headers = {}) => getAnswer(app, ROUTE, { json: json(more), headers })

const LOGGED = {
  accountId: null,
  route: '/v1/messages',
  model: MODEL,
  status: 'ok',
  inputTokens: 12,
  cachedInputTokens: 2,
  outputTokens: 4,
  costMicros: 10 * 2 + 2 * 1 + 4 * 10,
}

describe('a model that only a source has', () => {
  test('answers with one message, and is logged with the source and its price', async () => {
    const { app, source } = await withSource()
    const answer = await ask(app)
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({
      type: 'message',
      model: MODEL,
      content: [{ type: 'text', text: ANSWER_TEXT }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 10, cache_read_input_tokens: 2, output_tokens: 4 },
    })
    expect(answer.headers.get('x-sluice-source')).toBe('Local')
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe('max_tokens')
    expect(answer.headers.get('request-id')).toBeString()
    expect(app.source.last('/responses')?.body).toMatchObject({ model: MODEL, stream: false, store: false })
    expect(await app.rows()).toMatchObject([{ ...LOGGED, sourceId: source.id }])
    expect(app.upstream.requests.filter(({ method }) => method === 'POST')).toEqual([])
    await app.clock.advance(100)
    await expectNothingLeft(app)
  })

  test('streams the same, under its name with claude- too', async () => {
    const { app, source } = await withSource()
    const { events } = await ask(app, { stream: true, model: `claude-${MODEL}` })
    expect(events[0]).toMatchObject({ type: 'message_start', message: { model: `claude-${MODEL}` } })
    expect(events.at(-1)?.type).toBe('message_stop')
    const text = events.flatMap(({ delta }) => (delta as { text?: string } | undefined)?.text ?? []).join('')
    expect(text).toBe(ANSWER_TEXT)
    expect(await app.rows()).toMatchObject([{ ...LOGGED, sourceId: source.id }])
    await app.clock.advance(100)
    await expectNothingLeft(app)
  })

  test('calls tools, and does not get reasoning that only ChatGPT can read', async () => {
    const { app } = await withSource()
    const tools = [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }]
    const messages = [
      { role: 'user', content: 'hello' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'sluice1.rs_1.gAAAAAB' },
          { type: 'text', text: 'Hi' },
        ],
      },
      { role: 'user', content: 'weather?' },
    ]
    const answer = await ask(app, { tools, messages, tool_choice: { type: 'any' } })
    expect(JSON.parse(answer.text)).toMatchObject({
      content: [{ type: 'tool_use', name: 'weather', input: { city: 'Paris' } }],
      stop_reason: 'tool_use',
    })
    const input = app.source.last('/responses')?.body?.input as JsonObject[]
    expect(input.map(({ type }) => type)).not.toContain('reasoning')
  })

  test('is listed for Anthropic clients if its source can serve it', async () => {
    const { app } = await withSource()
    const none = { supportsResponses: false, supportsChatCompletions: false }
    await addSource(app, { name: 'Vectors', models: ['embed-only'], ...none })
    await addSource(app, { name: 'Chat', models: ['chat-only'], supportsResponses: false })
    const list = await (await app.ask('GET /v1/models', { headers: { 'anthropic-version': '2023-06-01' } })).json()
    const ids = (list as { data: { id: string }[] }).data.map(({ id }) => id)
    expect(ids).toContain(MODEL)
    expect(ids).toContain(`claude-${MODEL}`)
    expect(ids).toContain('claude-chat-only')
    expect(ids).not.toContain('embed-only')
  })
})

describe('a source without the Responses API', () => {
  const withChat = () => withSource({ supportsResponses: false })

  test('is sent a chat request, and the answer is the same message', async () => {
    const { app, source } = await withChat()
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'sluice1.rs_1.gAAAAAB' }
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const messages = [
      { role: 'user', content: 'look' },
      {
        role: 'assistant',
        content: [
          thinking,
          { type: 'text', text: 'Looking.' },
          { type: 'tool_use', id: 'toolu_1', name: 'Read', input: { path: 'a.png' } },
          { type: 'tool_use', id: 'toolu_2', name: 'Read', input: { path: 'b.txt' } },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'a.png' }, image] },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'b' },
          { type: 'text', text: 'and now?' },
        ],
      },
    ]
    const tools = [{ name: 'Read', description: 'Reads.', input_schema: { type: 'object', properties: {} } }]
    const format = { type: 'json_schema', schema: { type: 'object' } }
    const answer = await ask(app, { messages, tools, tool_choice: { type: 'auto' }, output_config: { format } })
    expect(JSON.parse(answer.text)).toMatchObject({
      content: [{ type: 'text', text: ANSWER_TEXT }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 10, cache_read_input_tokens: 2, output_tokens: 4 },
    })
    const call = (id: string, path: string) => ({
      id,
      type: 'function',
      function: { name: 'Read', arguments: JSON.stringify({ path }) },
    })
    expect(app.source.last('/chat/completions')?.body).toEqual({
      model: MODEL,
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: 'look' },
        { role: 'assistant', content: 'Looking.', tool_calls: [call('toolu_1', 'a.png'), call('toolu_2', 'b.txt')] },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'a.png' },
        { role: 'tool', tool_call_id: 'toolu_2', content: 'b' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }] },
        { role: 'user', content: 'and now?' },
      ],
      tools: [
        {
          type: 'function',
          function: {
            name: 'Read',
            description: 'Reads.',
            parameters: { type: 'object', properties: {} },
            strict: false,
          },
        },
      ],
      tool_choice: 'auto',
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: false },
      },
      stream: false,
    })
    expect(await app.rows()).toMatchObject([{ ...LOGGED, sourceId: source.id }])
    await app.clock.advance(100)
    await expectNothingLeft(app)
  })

  test.each([true, false])('calls tools (stream %p)', async (stream) => {
    const { app, source } = await withChat()
    const tools = [{ name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } }]
    const { text, events } = await ask(app, { stream, tools, tool_choice: { type: 'any' } })
    if (!stream) {
      expect(JSON.parse(text)).toMatchObject({
        content: [{ type: 'tool_use', id: 'call_source', name: 'weather', input: { city: 'Paris' } }],
        stop_reason: 'tool_use',
      })
    } else {
      expect(events.map(({ type }) => type)).toEqual([
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
      ])
      expect(events.at(-2)).toMatchObject({
        delta: { stop_reason: 'tool_use' },
        usage: { input_tokens: 10, cache_read_input_tokens: 2, output_tokens: 4 },
      })
    }
    expect(await app.rows()).toMatchObject([{ ...LOGGED, sourceId: source.id }])
  })

  test('does not get hosted tools, and a header lists the dropped fields', async () => {
    const { app } = await withChat()
    await app.change({ prohibitFastMode: 'strip' })
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const { status, headers } = await ask(app, { tools, speed: 'fast' })
    expect([status, headers.get('x-sluice-dropped-fields')]).toEqual([200, 'max_tokens, speed, tools.web_search'])
    expect(Object.keys(app.source.last('/chat/completions')?.body ?? {})).not.toContain('tools')
  })

  test.each([
    [{ message: 'Out of memory.', code: 507 }, '507'],
    [{ message: 'Out of memory.', type: 'server_error' }, 'model_source_error'],
    ['Out of memory.', 'model_source_error'],
  ])('that fails with %j in its stream is logged with the error that the client gets', async (error, errorCode) => {
    const { app } = await withChat()
    const chunks = [{ choices: [{ delta: { content: 'Hi' } }] }, { error }]
    const stream = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    app.source.fetch = () => Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }))
    const { events } = await ask(app, { stream: true })
    expect(events.at(-1)).toMatchObject({ type: 'error', error: { message: 'Out of memory.' } })
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode, errorMessage: 'Out of memory.' }])
  })

  test.each(['{"path": "/tmp', '[1]'])(
    'does not run a tool with the arguments %j, and logs the error',
    async (args) => {
      const { app } = await withChat()
      const calls = [{ id: 'call_1', type: 'function', function: { name: 'Read', arguments: args } }]
      const choices = [
        { message: { role: 'assistant', content: null, tool_calls: calls }, finish_reason: 'tool_calls' },
      ]
      const usage = { prompt_tokens: 12, completion_tokens: 4 }
      app.source.fetch = () => Promise.resolve(Response.json({ id: 'chatcmpl-1', choices, usage }))
      const { status, text } = await ask(app)
      expect([status, JSON.parse(text)]).toMatchObject([502, { type: 'error', error: { type: 'api_error' } }])
      expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'upstream_error', inputTokens: 12 }])
    },
  )

  test('that breaks off ends with one error event', async () => {
    const { app } = await withChat()
    app.source.fail('cut')
    const { events } = await ask(app, { stream: true })
    expect(events.filter(({ type }) => type === 'error' || type === 'message_stop')).toMatchObject([{ type: 'error' }])
  })
})

describe('a model that no source can serve', () => {
  const none = { supportsResponses: false, supportsChatCompletions: false }
  const opus = { model: 'embed-only', effort: null }

  test.each([ROUTE, `${ROUTE}/count_tokens`])('does not exist for %s', async (route) => {
    const { app } = await withSource()
    await addSource(app, { name: 'Vectors', models: ['embed-only'], ...none })
    for (const model of ['embed-only', 'claude-embed-only', 'embed-only[1m]']) {
      const { status, text } = await getAnswer(app, route, { json: json({ model }) })
      expect([status, JSON.parse(text).error.type]).toEqual([404, 'not_found_error'])
    }
    expect(app.upstream.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('does not exist for streams if it cannot stream', async () => {
    const { app } = await withSource({ models: [{ model: MODEL, ...PRICES, supportsStreaming: false }] })
    expect((await ask(app)).status).toBe(200)
    expect((await ask(app, { stream: true })).status).toBe(404)
  })

  test('does not count as the choice for a Claude name', async () => {
    const { app } = await withSource()
    await addSource(app, { name: 'Vectors', models: ['embed-only'], ...none })
    await ask(app, { model: 'gpt-5.5' }) // the catalog is known then
    await app.change({ claudeModels: { opus, sonnet: null, haiku: null } })
    expect((await ask(app, { model: 'claude-opus-5-5' })).status).toBe(200)
    expect((await app.rows()).at(-1)).toMatchObject({ model: 'gpt-5.5', sourceId: null })
  })
})

describe('limits', () => {
  test('of a key count the request, and reject the next one in the envelope of Anthropic', async () => {
    const { app } = await withSource()
    const limit = { limitType: 'requests', limitWindow: '5h', maxValue: 1, modelFilter: '' } as const
    const { key } = await app.key({ limits: [limit], allowedModels: [MODEL] })
    const headers = { 'x-api-key': key }
    expect((await ask(app, {}, headers)).status).toBe(200)
    const second = await ask(app, {}, headers)
    expect([second.status, JSON.parse(second.text).error.type]).toEqual([429, 'rate_limit_error'])
  })

  test('of the key keep other models out', async () => {
    const { app } = await withSource()
    const { key } = await app.key({ allowedModels: ['gpt-5.5'] })
    const answer = await ask(app, {}, { 'x-api-key': key })
    expect([answer.status, JSON.parse(answer.text).error.type]).toEqual([403, 'permission_error'])
    expect(app.source.received).toHaveLength(0)
  })

  test('of a key to certain sources also apply to models that accounts have, and to Claude names', async () => {
    const { app, source } = await withSource({ models: ['gpt-5.5'] })
    app.source.state.models.push('gpt-5.5')
    const { key } = await app.key({ assignedSourceIds: [source.id] })
    const opus = { model: 'gpt-5.5', effort: null }
    await app.change({ claudeModels: { opus, sonnet: null, haiku: null } })
    expect((await ask(app, { model: 'claude-opus-5-5' }, { 'x-api-key': key })).status).toBe(200)
    expect(app.source.last('/responses')?.body).toMatchObject({ model: 'gpt-5.5' })
    expect((await ask(app, { model: 'claude-opus-5-5' })).headers.get('x-sluice-source')).toBeNull()
  })
})

describe('failures have the envelope of Anthropic', () => {
  test.each([true, false])('a rate limit of the source (stream %p)', async (stream) => {
    const { app } = await withSource()
    app.source.fail('rate_limited')
    const { status, text } = await ask(app, { stream })
    expect([status, JSON.parse(text).type, JSON.parse(text).error.type]).toEqual([429, 'error', 'rate_limit_error'])
    expect((await app.rows())[0]?.status).toBe('error')
  })

  test.each(['echo_key', 'forbidden'] as const)(
    'a rejected key of the source is not worth a retry (%s)',
    async (fault) => {
      for (const supportsResponses of [true, false]) {
        const { app } = await withSource({ supportsResponses })
        app.source.fail(fault)
        for (const stream of [true, false]) {
          const { status, headers } = await ask(app, { stream })
          expect([status, headers.get('x-should-retry')]).toEqual([502, 'false'])
        }
      }
    },
  )

  test.each(['responses', 'chat'])('a full context has the words that make Claude Code compact (%s)', async (api) => {
    const { app } = await withSource({ supportsResponses: api === 'responses' })
    const message = "This model's maximum context length is 8 tokens. However, you requested 9 tokens."
    app.source.fetch = () =>
      Promise.resolve(Response.json({ object: 'error', message, type: 'BadRequestError', code: 400 }, { status: 400 }))
    for (const stream of [true, false]) {
      const { status, text } = await ask(app, { stream })
      expect([status, JSON.parse(text).error.type]).toEqual([400, 'invalid_request_error'])
      expect(JSON.parse(text).error.message).toMatch(/^prompt is too long: \d+ tokens > 8 maximum$/)
    }
  })

  test('a stream that breaks off ends with one error event', async () => {
    const { app } = await withSource()
    app.source.fail('cut')
    const { events } = await ask(app, { stream: true })
    expect(events.at(-1)?.type).toBe('error')
    expect(events.filter(({ type }) => type === 'message_stop')).toEqual([])
  })
})
