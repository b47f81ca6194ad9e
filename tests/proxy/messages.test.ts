/** `POST /v1/messages` through the whole app. */
import { describe, expect, test } from 'bun:test'
import { AppError, anthropicError, anthropicStatus } from '../../src/errors.ts'
import { expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'
import { answers } from '../support/upstream/script.ts'

const ROUTE = 'POST /v1/messages'
const HELLO = 'Hello from account-1@example.test'
const json = { model: 'claude-opus-5-5', max_tokens: 32_000, messages: [{ role: 'user', content: 'hello' }] }
const thinking = { type: 'adaptive' }
const lastBody = (app: TestApp) => JSON.parse(app.upstream.requests.at(-1)!.bodyText)

describe('POST /v1/messages', () => {
  test('answers with one message', async () => {
    const app = await testApp()
    const answer = await getAnswer(app, ROUTE, { json })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({
      type: 'message',
      role: 'assistant',
      model: 'claude-opus-5-5',
      content: [{ type: 'text', text: HELLO }],
      stop_reason: 'end_turn',
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
    })
    expect(answer.headers.get('request-id')).toBe(answer.headers.get('x-request-id'))
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe('max_tokens')
    expect(lastBody(app)).toMatchObject({ model: 'gpt-5.5', stream: true, store: false })
    expect((await app.rows())[0]).toMatchObject({ route: '/v1/messages', status: 'ok', model: 'gpt-5.5' })
    expect(app.upstream.oddities).toEqual([])
    await expectNothingLeft(app)
  })

  test('streams the same, with thinking that comes back to the upstream after a restart', async () => {
    const app = await testApp()
    const headers = { 'x-claude-code-session-id': 'session-1' }
    const { events } = await getAnswer(app, ROUTE, { json: { ...json, thinking, stream: true }, headers })
    expect(events[0]?.type).toBe('message_start')
    expect(events.at(-1)?.type).toBe('message_stop')
    const deltas = events.map(({ delta }) => delta as { type?: string; signature?: string } | undefined)
    const signature = deltas.find((delta) => delta?.type === 'signature_delta')?.signature
    await app.restart()
    const history = [
      ...json.messages,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature },
          { type: 'text', text: HELLO },
        ],
      },
      { role: 'user', content: 'go on' },
    ]
    const answer = await getAnswer(app, ROUTE, { json: { ...json, thinking, messages: history }, headers })
    expect(answer.status).toBe(200)
    const [, reasoning] = lastBody(app).input
    expect(reasoning.type).toBe('reasoning')
    expect(signature).toEndWith(`.${reasoning.encrypted_content}`)
    expect(app.upstream.oddities).toEqual([])
    await expectNothingLeft(app)
  })

  test('stays on the account of the session and leaves out thinking that another account must serve', async () => {
    const app = await testApp({ accounts: 2 })
    const headers = { 'x-claude-code-session-id': 'session-1' }
    const ask = (messages: unknown[]) => getAnswer(app, ROUTE, { json: { ...json, thinking, messages }, headers })
    const first = await ask(json.messages)
    const content = JSON.parse(first.text).content
    const second = await ask([...json.messages, { role: 'assistant', content }, { role: 'user', content: 'again' }])
    expect(second.status).toBe(200)
    const [one, two] = (await app.rows()).map(({ accountId }) => accountId)
    expect(two).toBe(one!)
    const owner = app.members.find(({ id }) => id === one)!
    owner.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const third = await ask([...json.messages, { role: 'assistant', content }, { role: 'user', content: 'again' }])
    expect(third.status).toBe(200)
    expect(lastBody(app).input.map(({ type }: { type: string }) => type)).not.toContain('reasoning')
    await expectNothingLeft(app)
  })

  test.each([
    ['the check of a model', { max_tokens: 1 }, 'Hell', { stop_reason: 'max_tokens' }],
    [
      'the check of a command',
      { max_tokens: 64, stop_sequences: [' from'] },
      'Hello',
      { stop_reason: 'stop_sequence', stop_sequence: ' from' },
    ],
  ])('serves %s of Claude Code as short as it wants', async (_name, more, text, end) => {
    const app = await testApp()
    const answer = await getAnswer(app, ROUTE, { json: { ...json, ...more } })
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toMatchObject({ content: [{ type: 'text', text }], ...end })
    expect(answer.headers.get('x-sluice-dropped-fields')).toBeNull()
    expect(app.upstream.oddities).toEqual([])
    await expectNothingLeft(app)
  })

  test('runs a tool loop', async () => {
    const app = await testApp()
    app.upstream.script(() => answers.toolCall({ name: 'Bash', arguments: '{"command":"ls"}' }))
    const tools = [{ name: 'Bash', description: 'Runs.', input_schema: { type: 'object', properties: {} } }]
    const first = JSON.parse((await getAnswer(app, ROUTE, { json: { ...json, tools } })).text)
    expect(first.stop_reason).toBe('tool_use')
    const call = first.content.at(-1)
    expect(call).toMatchObject({ type: 'tool_use', name: 'Bash', input: { command: 'ls' } })
    app.upstream.script(null)
    const result = { type: 'tool_result', tool_use_id: call.id, content: 'a.txt' }
    const messages = [
      ...json.messages,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [result] },
    ]
    const second = JSON.parse((await getAnswer(app, ROUTE, { json: { ...json, tools, messages } })).text)
    expect(second).toMatchObject({ stop_reason: 'end_turn', content: [{ text: 'The tool said: a.txt' }] })
    expect(app.upstream.oddities).toEqual([])
  })

  test.each([true, false])('does not run a tool with arguments that are not JSON (stream %p)', async (stream) => {
    const app = await testApp()
    app.upstream.script(() => answers.toolCall({ name: 'Bash', arguments: '{"command":"rm -rf /tmp' }))
    const tools = [{ name: 'Bash', description: 'Runs.', input_schema: { type: 'object', properties: {} } }]
    const { status, text, events } = await getAnswer(app, ROUTE, { json: { ...json, tools, stream } })
    const error = stream ? events.at(-1) : JSON.parse(text)
    expect([status, error]).toMatchObject([stream ? 200 : 502, { type: 'error', error: { type: 'api_error' } }])
    expect(await app.rows()).toMatchObject([{ status: 'error', errorCode: 'upstream_error' }])
    await expectNothingLeft(app)
  })

  test('pings a quiet stream every 30 seconds, because Claude Code gives up on more', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ dripMs: 35_000 })
    const began = app.clock.now()
    const { text } = await getAnswer(app, ROUTE, { json: { ...json, stream: true } }, 5000)
    const pings = text.split('event: ping').length - 1
    expect(pings).toBeGreaterThan(3)
    expect(pings * 30_000).toBeLessThanOrEqual(app.clock.now() - began)
  })
})

describe('a request that is not valid', () => {
  const nested = (open: string, close: string) => `${open.repeat(20_000)}1${close.repeat(20_000)}`
  const call = (input: string) =>
    `[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":${input}}]}]`
  const bodies: [string, string][] = [
    ['messages that are a number', '{"model":"gpt-5.5","messages":5}'],
    ['no messages', '{"model":"gpt-5.5","messages":[]}'],
    ['absent messages', '{"model":"gpt-5.5"}'],
    ['objects nested too deeply', `{"model":"gpt-5.5","messages":${call(nested('{"a":', '}'))}}`],
    ['lists nested too deeply', `{"model":"gpt-5.5","messages":${call(nested('[', ']'))}}`],
    [
      'tools nested too deeply',
      `{"model":"gpt-5.5","messages":[{"role":"user","content":"x"}],"tools":[{"name":"x","input_schema":{"a":${nested('[', ']')}}}]}`,
    ],
  ]

  test.each(bodies)('is a 400 for both routes: %s', async (_name, body) => {
    const app = await testApp()
    for (const route of [ROUTE, `${ROUTE}/count_tokens`]) {
      const { status, text } = await getAnswer(app, route, { body })
      expect([route, status, JSON.parse(text).error?.type]).toEqual([route, 400, 'invalid_request_error'])
    }
    await expectNothingLeft(app)
  })
})

describe('keys', () => {
  const withKey = async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await app.key({})
    return { app, key }
  }

  test.each([
    ['x-api-key', (key: string) => ({ 'x-api-key': key })],
    ['bearer', (key: string) => ({ authorization: `Bearer ${key}` })],
    ['both, the first one wrong', (key: string) => ({ authorization: 'Bearer other', 'x-api-key': key })],
    ['both, the second one wrong', (key: string) => ({ authorization: `Bearer ${key}`, 'x-api-key': 'other' })],
  ])('by %s', async (_name, headers) => {
    const { app, key } = await withKey()
    expect((await getAnswer(app, ROUTE, { json, headers: headers(key) })).status).toBe(200)
    expect((await app.rows())[0]?.keyId).toBeString()
  })

  test.each([
    ['wrong', { 'x-api-key': 'sk-clb-wrong' }],
    ['missing', {}],
  ])('a %s key is an error that the client does not retry', async (_name, headers) => {
    const { app } = await withKey()
    for (const route of [ROUTE, `${ROUTE}/count_tokens`]) {
      const answer = await getAnswer(app, route, { json, headers })
      expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([401, 'false'])
      expect(JSON.parse(answer.text).error.type).toBe('authentication_error')
    }
  })

  test('are not taken from x-api-key elsewhere', async () => {
    const { app, key } = await withKey()
    const headers = { 'x-api-key': key }
    const answer = await getAnswer(app, 'POST /v1/chat/completions', { json: { ...json, model: 'gpt-5.5' }, headers })
    expect(answer.status).toBe(401)
  })

  test('are not taken from the address', async () => {
    const { app, key } = await withKey()
    for (const name of ['key', 'api_key', 'x-api-key'])
      expect((await app.ask(`${ROUTE}?${name}=${key}`, { json })).status).toBe(401)
  })

  test('that are wrong are an authentication error', async () => {
    const { app } = await withKey()
    const { status, text } = await getAnswer(app, ROUTE, { json, headers: { 'x-api-key': 'sk-no' } })
    expect([status, JSON.parse(text).error.type]).toEqual([401, 'authentication_error'])
  })
})

describe('errors have the envelope of Anthropic', () => {
  const failed = (code: string, afterEvents = 1) => ({ failAfterCreated: { code, message: 'It failed.', afterEvents } })

  test('a bad request', async () => {
    const app = await testApp()
    const { status, text, headers } = await getAnswer(app, ROUTE, { json: { ...json, messages: [] } })
    expect(status).toBe(400)
    expect(JSON.parse(text)).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'At least one message is required.',
        details: { error_code: 'invalid_request_error' },
      },
      request_id: headers.get('request-id'),
    })
    expect(app.upstream.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('a model that does not exist', async () => {
    const app = await testApp()
    const { status, text } = await getAnswer(app, ROUTE, { json: { ...json, model: 'gemini-9' } })
    expect([status, JSON.parse(text).error.type]).toEqual([404, 'not_found_error'])
  })

  test.each([
    ['unsupported_parameter', 400, 'invalid_request_error'],
    ['invalid_api_key', 401, 'authentication_error'],
    ['model_not_allowed', 403, 'permission_error'],
    ['model_not_found', 404, 'not_found_error'],
    ['payload_too_large', 413, 'request_too_large'],
    ['rate_limit_exceeded', 429, 'rate_limit_error'],
    ['no_accounts', 529, 'overloaded_error'],
    ['internal_error', 500, 'api_error'],
    ['upstream_error', 502, 'api_error'],
  ] as const)('%s is %d %s', (code, status, type) => {
    const error = new AppError(code)
    expect([anthropicStatus(error), anthropicError(error, 'req_1').error.type]).toEqual([status, type])
  })

  test('no account is an overload', async () => {
    const app = await testApp({ accounts: 0 })
    const { status, text } = await getAnswer(app, ROUTE, { json })
    expect([status, JSON.parse(text).error.type]).toEqual([529, 'overloaded_error'])
    expect(await app.rows()).toMatchObject([{ httpStatus: 529, errorCode: 'no_accounts' }])
  })

  test('the log has the status that the client got', async () => {
    const app = await testApp()
    app.members[0]!.sim.always(faults.overloaded())
    const { status } = await getAnswer(app, ROUTE, { json: { ...json, stream: true } })
    const { status: onChat } = await getAnswer(app, 'POST /v1/chat/completions', {
      json: { ...json, model: 'gpt-5.5' },
    })
    expect([status, onChat]).toEqual([529, 503])
    expect((await app.rows()).map(({ httpStatus }) => httpStatus).toSorted()).toEqual([503, 529])
  })

  test.each([true, false])(
    'a full context is a 400 in the words that make Claude Code compact (stream %p)',
    async (stream) => {
      const app = await testApp()
      app.members[0]!.sim.next(failed('context_length_exceeded'))
      const { status, text } = await getAnswer(app, ROUTE, { json: { ...json, stream } })
      expect(status).toBe(400)
      expect(JSON.parse(text).error.message).toMatch(/^prompt is too long: \d+ tokens > 272000 maximum$/)
    },
  )

  test('a full context reported after 40 seconds is a 400 too, and after 58 seconds an error event', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ delayHeadersMs: 40_000, ...failed('context_length_exceeded') })
    const { status, text } = await getAnswer(app, ROUTE, { json: { ...json, stream: true } }, 5000)
    expect([status, JSON.parse(text).error.message]).toEqual([400, expect.stringMatching(/^prompt is too long/)])
    app.members[0]!.sim.next({ delayHeadersMs: 58_000, ...failed('context_length_exceeded') })
    const late = await getAnswer(app, ROUTE, { json: { ...json, stream: true } }, 5000)
    expect([late.status, late.events.at(-1)?.type]).toEqual([200, 'error'])
    await expectNothingLeft(app)
  })

  test('a failure inside the stream is its last event', async () => {
    const app = await testApp()
    app.members[0]!.sim.next(failed('server_error', 6))
    const { status, events } = await getAnswer(app, ROUTE, { json: { ...json, stream: true } })
    expect(status).toBe(200)
    expect(events.at(-1)).toMatchObject({ type: 'error', error: { type: 'api_error', message: 'It failed.' } })
    expect(events.map(({ type }) => type)).not.toContain('message_stop')
  })

  test('used-up accounts say when to come back', async () => {
    const app = await testApp()
    app.members[0]!.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    const { status, text, headers } = await getAnswer(app, ROUTE, { json })
    expect([status, JSON.parse(text).error.type]).toEqual([429, 'rate_limit_error'])
    expect(JSON.parse(text).error.message).toContain('reset')
    expect(headers.get('x-should-retry')).toBe('false')
  })
})

describe('GET /v1/models for Anthropic clients', () => {
  const headers = { 'anthropic-version': '2023-06-01' }

  test('lists each model as itself and as claude-<model>, which the Messages route serves', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    const list = (await (await app.ask('GET /v1/models?limit=1000', { headers })).json()) as {
      data: { id: string; display_name: string; created_at: string }[]
    }
    expect(list).toMatchObject({ has_more: false, first_id: 'gpt-5.5', last_id: 'claude-gpt-5.5' })
    expect(list.data.map(({ id }) => id)).toEqual(['gpt-5.5', 'claude-gpt-5.5'])
    expect(list.data[1]).toMatchObject({ type: 'model', display_name: expect.any(String), max_input_tokens: 272_000 })
    const answer = await getAnswer(app, ROUTE, { json: { ...json, model: 'claude-gpt-5.5[1m]' } })
    expect(answer.status).toBe(200)
    expect(lastBody(app).model).toBe('gpt-5.5')
    const one = await app.ask('GET /v1/models/claude-gpt-5.5', { headers })
    expect(await one.json()).toMatchObject({ type: 'model', id: 'claude-gpt-5.5' })
  })

  test('takes the key from x-api-key', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const { key } = await app.key({})
    expect((await app.ask('GET /v1/models', { headers: { ...headers, 'x-api-key': key } })).status).toBe(200)
    expect((await app.ask('GET /v1/models', { headers })).status).toBe(401)
  })
})

test('Claude models are served by size', async () => {
  const app = await testApp({ accounts: [{ models: ['gpt-5.5', 'gpt-5.4-mini', 'gpt-5.4'] }] })
  const serving = async (model: string) => {
    await getAnswer(app, ROUTE, { json: { ...json, model } })
    return lastBody(app).model
  }
  expect(await serving('claude-opus-4-5-20251101')).toBe('gpt-5.5')
  expect(await serving('claude-fable-5-2')).toBe('gpt-5.5')
  expect(await serving('claude-sonnet-5-5')).toBe('gpt-5.4')
  expect(await serving('claude-haiku-5-5')).toBe('gpt-5.4-mini')
})

describe('POST /v1/messages/count_tokens', () => {
  const COUNT = 'POST /v1/messages/count_tokens'
  const count = async (app: TestApp, body: unknown) => {
    const response = await app.ask(COUNT, { json: body })
    expect(response.headers.get('x-sluice-estimate')).toBe('true')
    return ((await response.json()) as { input_tokens: number }).input_tokens
  }
  const text = (chars: number) => ({ ...json, messages: [{ role: 'user', content: 'x'.repeat(chars) }] })

  test('estimates from the size, and a picture by its own', async () => {
    const app = await testApp()
    expect(await count(app, text(3600))).toBeWithin(1000, 1003)
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(4_000_000) } }
    expect(await count(app, { ...json, messages: [{ role: 'user', content: [image] }] })).toBeWithin(1600, 1610)
    expect(app.upstream.requests.filter(({ method }) => method === 'POST')).toEqual([])
  })

  test('counts tools by their JSON and the system prompt, and leaves signatures out', async () => {
    const app = await testApp()
    const bare = await count(app, text(36))
    const tools = [{ name: 'A', input_schema: { type: 'object', description: 'x'.repeat(3600) } }]
    expect((await count(app, { ...text(36), tools })) - bare).toBeWithin(1000, 1030)
    expect((await count(app, { ...text(36), system: 'x'.repeat(360) })) - bare).toBeWithin(99, 102)
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'x'.repeat(36_000) }
    const messages = [...json.messages, { role: 'assistant', content: [thinking] }]
    expect(await count(app, { ...json, messages })).toBeLessThan(50)
  })

  test('corrects itself by the actual use of the model', async () => {
    const app = await testApp()
    app.upstream.script(() => answers.text('Hi', { usage: { inputTokens: 2000 } }))
    await getAnswer(app, ROUTE, { json: text(3600) })
    expect(await count(app, text(7200))).toBeWithin(3980, 4020)
  })

  test('rejects a model that does not exist', async () => {
    const app = await testApp()
    expect((await app.ask(COUNT, { json: { ...json, model: 'gemini-9' } })).status).toBe(404)
  })
})
