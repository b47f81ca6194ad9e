/** Spec §4, proxy routes called by model clients: the table, row by row, and its payloads. */
import { describe, expect, test } from 'bun:test'
import { codexBody, getEvents, testApp } from '../support/app.ts'
import { fetchCatalogs, nativeModels, publicModels } from './catalog.ts'
import { modelProblem } from './problems.ts'

describe('§4 GET /v1/models', () => {
  test('lists the live catalog in the format of OpenAI SDKs, with default budgets', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const response = await app.ask('GET /v1/models')
    expect(response.headers.get('content-type')).toStartWith('application/json')
    expect(await response.json()).toMatchObject({ object: 'list' })
    const [model] = await publicModels(app)
    expect(model).toMatchObject({
      id: 'gpt-5.5',
      object: 'model',
      created: expect.any(Number),
      context_length: 272_000,
    })
    expect(model?.owned_by).toBeString()
  })

  test('uses no account', async () => {
    const app = await testApp()
    await fetchCatalogs(app)
    await publicModels(app)
    expect(app.upstream.requests).toEqual([])
  })
})

describe('§4 GET /backend-api/codex/models', () => {
  test('passes on every entry as the upstream gave it, windows included', async () => {
    const app = await testApp({ accounts: [{ models: ['gpt-5.5'] }] })
    await fetchCatalogs(app)
    const [entry] = await nativeModels(app)
    expect(entry).toMatchObject({
      slug: 'gpt-5.5',
      context_window: 272_000,
      max_context_window: 872_000,
      truncation_policy: { mode: 'tokens', limit: 10_000 },
      base_instructions: 'You are GPT-5.5, played by a stand-in.',
    })
  })
})

describe('§4 POST /v1/chat/completions', () => {
  const CHAT = { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }

  test('takes model and messages, returns choices[].message.content', async () => {
    const { ask, members, upstream } = await testApp()
    const response = await ask('POST /v1/chat/completions', { json: CHAT })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      object: 'chat.completion',
      model: 'gpt-5.5',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: `Hello from ${members[0]?.sim.email}` },
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) },
    })
    expect(upstream.oddities).toEqual([])
  })

  test('streams chunks and ends with [DONE]', async () => {
    const { ask, members } = await testApp()
    const response = await ask('POST /v1/chat/completions', { json: { ...CHAT, stream: true } })
    const text = await response.text()
    const chunks = text.split('\n\n').filter((block) => block.startsWith('data: {'))
    const content = chunks
      .map((block) => JSON.parse(block.slice(6)) as { choices: { delta?: { content?: string } }[] })
      .map(({ choices }) => choices[0]?.delta?.content ?? '')
    expect(content.join('')).toBe(`Hello from ${members[0]?.sim.email}`)
    expect(text).toEndWith('data: [DONE]\n\n')
  })

  test.each([
    ['no messages', { model: 'gpt-5.5' }, 'messages'],
    ['messages that are no list', { model: 'gpt-5.5', messages: 'hello' }, 'messages'],
    ['no model', { messages: CHAT.messages }, 'model'],
  ])('%s is a 400 that names the field', async (_name, json, param) => {
    const { ask } = await testApp()
    const response = await ask('POST /v1/chat/completions', { json })
    expect(response.status).toBe(400)
    expect((await modelProblem(response)).param).toBe(param)
  })
})

describe('§4 POST /v1/responses', () => {
  test('returns one Response object', async () => {
    const { ask, members } = await testApp()
    const response = await ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hello' } })
    expect(response.status).toBe(200)
    const document = (await response.json()) as { output: { type: string; content: { text: string }[] }[] }
    expect(document).toMatchObject({ object: 'response', status: 'completed', model: 'gpt-5.5' })
    const message = document.output.find(({ type }) => type === 'message')
    expect(message?.content[0]?.text).toBe(`Hello from ${members[0]?.sim.email}`)
  })

  test('or streams the events of one', async () => {
    const { ask } = await testApp()
    const response = await ask('POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hello', stream: true } })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    const types = (await getEvents(response)).map(({ type }) => type)
    expect(types[0]).toBe('response.created')
    expect(types.filter((type) => /^response\.(completed|failed|incomplete)$/.test(type))).toEqual([
      'response.completed',
    ])
    expect(types.at(-1)).toBe('response.completed')
  })

  test('also with a slash at the end', async () => {
    const { ask } = await testApp()
    expect((await ask('POST /v1/responses/', { json: { model: 'gpt-5.5', input: 'hello' } })).status).toBe(200)
  })
})

describe('§4 POST /backend-api/codex/responses', () => {
  test('always streams, whatever stream is, and needs neither instructions nor tools from the client', async () => {
    const { ask, upstream } = await testApp()
    const developer = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Be brief.' }] }
    const { instructions: _instructions, ...body } = codexBody()
    const json = { ...body, stream: false, input: [developer, ...body.input] }
    const response = await ask('POST /backend-api/codex/responses', { json })
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
    expect(upstream.requests[0]?.body).not.toHaveProperty('instructions')
    expect(upstream.oddities).toEqual([])
  })

  test('responds uncompressed, with the events as the upstream sent them', async () => {
    const { ask } = await testApp()
    const headers = { 'accept-encoding': 'gzip, br, zstd' }
    const response = await ask('POST /backend-api/codex/responses', { json: codexBody(), headers })
    expect(response.headers.get('content-encoding')).toBeNull()
    const numbers = (await getEvents(response)).map(({ sequence_number }) => sequence_number)
    expect(numbers).toEqual(numbers.map((_, index) => index))
  })
})

describe('§4 POST /backend-api/codex/responses/compact', () => {
  test('calls the same path upstream and returns a compaction item', async () => {
    const { ask, upstream } = await testApp()
    const { stream: _stream, store: _store, include: _include, ...json } = codexBody()
    const response = await ask('POST /backend-api/codex/responses/compact', { json })
    const { output } = (await response.json()) as { output: { type: string }[] }
    expect(output.filter(({ type }) => type === 'compaction')).toHaveLength(1)
    expect(upstream.requests.map(({ path }) => path)).toEqual(['/backend-api/codex/responses/compact'])
  })
})

describe('§4 the reset-credit consume route', () => {
  test('redeems the credit that the key names, at the upstream, once', async () => {
    const { ask, key, clock, members, upstream } = await testApp({ accounts: 1 })
    const { id, sim } = members[0]!
    sim.setResetCredits([{ id: 'credit', expiresAt: clock.now() + 86_400_000, grantedAt: clock.now() }])
    const redeem = async () =>
      ask('POST /v1/reset-credit', {
        headers: { authorization: `Bearer ${(await key()).key}` },
        json: { account_id: id, redeem_id: 'credit' },
      })
    expect(await (await redeem()).json()).toMatchObject({ code: 'reset' })
    const again = await redeem()
    expect([again.status, (await modelProblem(again)).code]).toEqual([409, 'target_reset_credit_changed'])
    expect(upstream.requests.filter(({ path }) => path.endsWith('/consume'))).toHaveLength(1)
  })

  test('rejects a request without a key, and changes nothing then', async () => {
    const { ask, members, upstream } = await testApp({ accounts: 1 })
    const response = await ask('POST /v1/reset-credit', { json: { account_id: members[0]?.id, redeem_id: 'credit' } })
    expect([response.status, (await modelProblem(response)).code]).toEqual([401, 'invalid_api_key'])
    expect(upstream.requests).toEqual([])
  })
})

describe('§4 all proxy routes take Authorization: Bearer', () => {
  test.each([
    ['x-api-key', { 'x-api-key': 'KEY' }, ''],
    ['a query parameter', {}, '?key=KEY&api_key=KEY'],
    ['a cookie', { cookie: 'key=KEY' }, ''],
  ] as [string, Record<string, string>, string][])(
    'and no other place for the key: not %s',
    async (_name, headers, query) => {
      const { ask, key } = await testApp({ settings: { apiKeyAuthEnabled: true } })
      const secret = (await key()).key
      const placed = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value.replace('KEY', secret)]),
      )
      const response = await ask(`GET /v1/models${query.replaceAll('KEY', secret)}`, { headers: placed })
      expect([response.status, (await modelProblem(response)).code]).toEqual([401, 'invalid_api_key'])
      expect((await ask('GET /v1/models', { headers: { authorization: `bearer ${secret}` } })).status).toBe(200)
    },
  )
})
