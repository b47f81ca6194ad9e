/** Requests rejected before any account is used: by the key's policy, by a limit, or for invalid text. */
import { describe, expect, test } from 'bun:test'
import { requestHours } from '../../db/schema/requests.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const COMPACT = 'POST /backend-api/codex/responses/compact'
const KEY_AUTH = { settings: { apiKeyAuthEnabled: true } }

const withKey = async (input: Partial<NewKey>) => {
  const app = await testApp(KEY_AUTH)
  const headers = { authorization: `Bearer ${(await app.key(input)).key}` }
  return { app, send: (route: string, json: unknown) => getAnswer(app, route, { json, headers }) }
}

const getError = ({ text }: { text: string }) => JSON.parse(text).error
const sent = ({ upstream }: TestApp) => upstream.requests.map(({ bodyText }) => JSON.parse(bodyText))

/** Like a native client that compacts the old way: neither `stream` nor `store`. */
const compactBody = (more: Record<string, unknown> = {}) => {
  const { stream: _stream, store: _store, include: _include, ...body } = codexBody('hello', more)
  return body
}

describe.each([
  ['a native turn', NATIVE, codexBody],
  ['a native compaction', COMPACT, (_text: string, more?: Record<string, unknown>) => compactBody(more)],
] as const)('what a key enforces on %s', (_name, route, getBody) => {
  test('another effort or tier is rejected and named', async () => {
    const { app, send } = await withKey({ enforcedReasoningEffort: 'low', enforcedServiceTier: 'flex' })
    const effort = await send(route, getBody('hello', { reasoning: { effort: 'high' } }))
    expect([effort.status, getError(effort).param]).toEqual([400, 'reasoning.effort'])
    expect(getError(effort).message).toContain('low')
    const tier = await send(route, getBody('hello', { service_tier: 'priority' }))
    expect([tier.status, getError(tier).param]).toEqual([400, 'service_tier'])
    expect(getError(tier).message).toContain('flex')
    expect(app.upstream.requests).toEqual([])
    await expectNothingLeft(app)
  })

  test('values missing in the request are inserted in place, the rest is unchanged', async () => {
    const { app, send } = await withKey({ enforcedReasoningEffort: 'low', enforcedServiceTier: 'flex' })
    await send(route, getBody('hello', { reasoning: { summary: 'auto' } }))
    await send(route, getBody('hello', { reasoning: null, service_tier: null }))
    await send(route, getBody('hello', { reasoning: { effort: 'low' }, service_tier: 'flex' }))
    expect(sent(app)).toMatchObject([
      { reasoning: { summary: 'auto', effort: 'low' }, service_tier: 'flex' },
      { reasoning: { effort: 'low' }, service_tier: 'flex' },
      { reasoning: { effort: 'low' }, service_tier: 'flex' },
    ])
    expect(await app.rows()).toMatchObject(Array.from({ length: 3 }, () => ({ reasoningEffort: 'low', status: 'ok' })))
  })

  test('ultra is enforced and allowed as max, the highest the upstream knows', async () => {
    const { app, send } = await withKey({ enforcedReasoningEffort: 'ultra' })
    expect((await send(route, getBody('hello', {}))).status).toBe(200)
    expect((await send(route, getBody('hello', { reasoning: { effort: 'max' } }))).status).toBe(200)
    expect((await send(route, getBody('hello', { reasoning: { effort: 'high' } }))).status).toBe(400)
    expect(sent(app).map(({ reasoning }) => reasoning.effort)).toEqual(['max', 'max'])
    const allowed = await withKey({ allowedReasoningEfforts: ['low', 'ultra'] })
    expect((await allowed.send(route, getBody('hello', { reasoning: { effort: 'max' } }))).status).toBe(200)
    expect((await allowed.send(route, getBody('hello', { reasoning: { effort: 'high' } }))).status).toBe(400)
  })

  test('the ordinary tier is enforced by sending none', async () => {
    const { app, send } = await withKey({ enforcedServiceTier: 'default' })
    expect((await send(route, getBody('hello', { service_tier: 'priority' }))).status).toBe(400)
    await send(route, getBody('hello', { service_tier: 'auto' }))
    expect((await send(route, getBody('hello', {}))).status).toBe(200)
    expect(sent(app)[0].service_tier).toBe('auto') // unchanged, for the upstream to validate
    expect(sent(app)[1]).not.toHaveProperty('service_tier')
  })
})

test('enforced values are not inserted into an extremely nested body', async () => {
  const { app, send } = await withKey({ enforcedReasoningEffort: 'low' })
  const input = JSON.parse(`${'['.repeat(2000)}${']'.repeat(2000)}`)
  const answer = await send(NATIVE, codexBody('hello', { input }))
  expect([answer.status, getError(answer).message]).toEqual([400, 'The request body is nested too deeply.'])
  expect(app.upstream.requests).toEqual([])
})

test('enforced and required values are inserted into an empty body, too', async () => {
  const { app, send } = await withKey({ enforcedModel: 'gpt-5.5' })
  await send(NATIVE, {})
  expect(sent(app)).toEqual([{ stream: true, store: false, model: 'gpt-5.5' }])
})

test('enforced values replace those of a public request', async () => {
  const { app, send } = await withKey({ enforcedModel: 'gpt-5.5', enforcedServiceTier: 'default' })
  await send('POST /v1/responses', codexBody('hello', { model: 'gpt-6-luna', service_tier: 'auto' }))
  expect(sent(app)[0].model).toBe('gpt-5.5')
  expect(sent(app)[0]).not.toHaveProperty('service_tier')
  const flex = await withKey({ enforcedServiceTier: 'flex' })
  await flex.send('POST /v1/responses', codexBody('hello'))
  expect(sent(flex.app)[0].service_tier).toBe('flex')
  const free = await withKey({})
  await free.send('POST /v1/responses', codexBody('hello', { service_tier: 'flex' }))
  expect(sent(free.app)[0].service_tier).toBe('flex')
})

test.each<[string, Partial<NewKey>, boolean]>([
  ['is sent upstream', {}, true],
  ['is not sent when a key enforces another', { enforcedModel: 'gpt-5.5' }, false],
])('the hint with the model of a turn %s', async (_, policy, goesOn) => {
  const app = await testApp(KEY_AUTH)
  const headers = { authorization: `Bearer ${(await app.key(policy)).key}`, 'x-codex-routing-hint': 'model=gpt-6-luna' }
  expect((await getAnswer(app, NATIVE, { json: codexBody(), headers })).status).toBe(200)
  expect('x-codex-routing-hint' in app.upstream.requests[0]!.headers).toBe(goesOn)
})

describe('duplicate members, of which the upstream could read the other one', () => {
  const TWICE: [param: string, first: string][] = [
    ['model', '"model":"gpt-5.4"'],
    ['reasoning', '"reasoning":{"effort":"xhigh"}'],
    ['service_tier', '"service_tier":"priority"'],
    ['store', '"store":true'],
    ['client_metadata', '"client_metadata":{"x-codex-lb-required-capability":"trusted_cyber"}'],
  ]
  const more = { reasoning: { effort: 'low' }, service_tier: 'flex', client_metadata: {} }

  test.each(TWICE.flatMap(([param, first]) => [NATIVE, 'POST /v1/responses'].map((route) => [param, route, first])))(
    '%s is rejected on %s',
    async (param, route, first) => {
      const app = await testApp(KEY_AUTH)
      const headers = { authorization: `Bearer ${(await app.key({ allowedModels: ['gpt-5.5'] })).key}` }
      const body = `{${first},${JSON.stringify(codexBody('hello', more)).slice(1)}`
      const answer = await getAnswer(app, route!, { body, headers })
      expect([answer.status, getError(answer).code, getError(answer).param]).toEqual([
        400,
        'invalid_request_error',
        param,
      ])
      expect(getError(answer).message).toBe(`The request has '${param}' twice. Send it once.`)
      expect(app.upstream.requests).toEqual([])
      await expectNothingLeft(app)
    },
  )

  test('a duplicate effort in reasoning is rejected', async () => {
    const app = await testApp(KEY_AUTH)
    const headers = { authorization: `Bearer ${(await app.key({ enforcedReasoningEffort: 'low' })).key}` }
    const body = `{"reasoning":{"effort":"xhigh","effort":"low"},${JSON.stringify(codexBody()).slice(1)}`
    const answer = await getAnswer(app, NATIVE, { body, headers })
    expect([answer.status, getError(answer).param]).toEqual([400, 'reasoning.effort'])
    expect(app.upstream.requests).toEqual([])
  })

  test('the same names nested deeper are allowed', async () => {
    const { app, send } = await withKey({ allowedModels: ['gpt-5.5'] })
    const tools = [
      { type: 'function', name: 'spawn', parameters: { properties: { model: {}, store: {}, effort: {} } } },
    ]
    expect((await send(NATIVE, codexBody('hello', { ...more, tools, client_metadata: { model: 'x' } }))).status).toBe(
      200,
    )
    expect(sent(app)[0].tools).toEqual(tools)
  })
})

test('the priority tier can be called fast', async () => {
  const { app, send } = await withKey({ enforcedServiceTier: 'priority' })
  await send(NATIVE, codexBody('hello', { service_tier: 'fast' }))
  expect(sent(app)).toMatchObject([{ service_tier: 'fast' }]) // unchanged, for the upstream to validate
})

describe.each(['POST /v1/responses', 'POST /v1/responses/compact', 'POST /v1/chat/completions'])('%s', (route) => {
  test.each([
    ['auto', undefined],
    ['default', undefined],
    ['fast', 'priority'],
  ])('requests the tier %s by the name the upstream accepts', async (tier, name) => {
    const app = await testApp()
    const said = { model: 'gpt-5.5', service_tier: tier }
    const messages = route.endsWith('completions') ? { messages: [{ role: 'user', content: 'hi' }] } : { input: 'hi' }
    const answer = await getAnswer(app, route, { json: { ...said, ...messages } })
    expect([answer.status, answer.headers.get('x-sluice-dropped-fields')]).toEqual([200, null])
    expect(sent(app)[0].service_tier).toBe(name)
  })

  test('requests the effort ultra by the name the upstream accepts', async () => {
    const { app, send } = await withKey({ allowedReasoningEfforts: ['ultra'] })
    const isChat = route.endsWith('completions')
    const said = isChat ? { messages: [{ role: 'user', content: 'hi' }] } : { input: 'hi' }
    const effort = isChat ? { reasoning_effort: 'ultra' } : { reasoning: { effort: 'ultra', summary: 'auto' } }
    expect((await send(route, { model: 'gpt-5.5', ...said, ...effort })).status).toBe(200)
    expect(sent(app)[0].reasoning).toEqual({ effort: 'max', summary: 'auto' })
  })
})

describe('client text that would be stored', () => {
  const long = 'x'.repeat(65)

  test.each([
    ['reasoning.effort', { reasoning: { effort: long } }],
    ['service_tier', { service_tier: long }],
  ])('%s has at most 64 characters', async (param, more) => {
    const app = await testApp()
    for (const route of [NATIVE, 'POST /v1/responses']) {
      const answer = await getAnswer(app, route, { json: codexBody('hello', more) })
      expect([answer.status, getError(answer).param]).toEqual([400, param])
    }
    expect(app.upstream.requests).toEqual([])
    expect(JSON.stringify(await app.rows())).not.toContain(long)
    await expectNothingLeft(app)
  })

  test('a model unknown to the pool and rejected upstream has no own line in the hourly totals', async () => {
    const app = await testApp()
    app.members[0]!.sim.always({ status: 400, body: { error: { code: 'invalid_value', message: 'no such model' } } })
    for (const model of ['made-up-1', 'made-up-2', 'made-up-3'])
      await getAnswer(app, NATIVE, { json: codexBody('hello', { model }) })
    expect((await app.rows()).map(({ model }) => model)).toEqual(['made-up-1', 'made-up-2', 'made-up-3'])
    expect(await app.db.select().from(requestHours).all()).toMatchObject([{ model: '', requests: 3, errors: 3 }])
  })

  test('a model that the upstream accepted has one, even before any catalog is known', async () => {
    const app = await testApp()
    expect(app.bindings.pool.offers('gpt-5.5')).toBe(false)
    await getAnswer(app, NATIVE, { json: codexBody() })
    await app.rows()
    expect(await app.db.select().from(requestHours).all()).toMatchObject([{ model: 'gpt-5.5', requests: 1 }])
  })
})

describe('a request rejected by its key leaves one row', () => {
  const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]

  test.each([['an effort', { enforcedReasoningEffort: 'low' }, NATIVE, 400, 'invalid_request_error']] as const)(
    '%s',
    async (_name, input, route, status, code) => {
      const { app, send } = await withKey(input)
      const answer = await send(route, codexBody('hello', { reasoning: { effort: 'high' } }))
      expect(answer.status).toBe(status)
      expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
      const refused = { status: 'error', httpStatus: status, errorCode: code, phase: 'auth', attempts: 0 }
      expect(await app.rows()).toMatchObject([{ ...refused, model: 'gpt-5.5', accountId: null, inputTokens: null }])
      expect((await app.rows())[0]!.keyId).not.toBeNull()
      expect([...(await app.attemptRows()), ...(await app.failedSelections())]).toEqual([])
      await expectNothingLeft(app)
    },
  )

  test('a limit', async () => {
    const { app, send } = await withKey({ limits })
    await send(NATIVE, codexBody())
    const answer = await send(NATIVE, codexBody())
    expect(answer.status).toBe(429)
    expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
    expect(await app.rows()).toMatchObject([
      { status: 'ok' },
      { status: 'error', httpStatus: 429, errorCode: 'rate_limit_exceeded', phase: 'auth', attempts: 0 },
    ])
    await expectNothingLeft(app)
  })
})

describe('an invalid request leaves one row', () => {
  const long = 'x'.repeat(201)
  const withModel = (model?: string) => ({ ...codexBody(), model })
  const PUBLIC = 'POST /v1/responses'
  const CHAT = 'POST /v1/chat/completions'

  test.each<[name: string, route: string, body: unknown, code: string, model: string | null]>([
    ['no model', NATIVE, withModel(), 'invalid_request_error', null],
    ['no model, on /v1', PUBLIC, withModel(), 'invalid_request_error', null],
    ['no model, compacting', COMPACT, { input: [] }, 'invalid_request_error', null],
    ['a model with an oversized name', NATIVE, withModel(long), 'invalid_request_error', null],
    ['an oversized effort', NATIVE, codexBody('', { reasoning: { effort: long } }), 'invalid_request_error', 'gpt-5.5'],
    [
      'an earlier response',
      NATIVE,
      codexBody('', { previous_response_id: 'r' }),
      'previous_response_not_found',
      'gpt-5.5',
    ],
    ['one on /v1', PUBLIC, codexBody('', { previous_response_id: 'r' }), 'previous_response_not_found', 'gpt-5.5'],
    ['a conversation', PUBLIC, codexBody('', { conversation: 'c' }), 'unsupported_parameter', 'gpt-5.5'],
    ['a chat without messages', CHAT, { model: 'gpt-5.5' }, 'invalid_request_error', 'gpt-5.5'],
    ['no object', NATIVE, [], 'invalid_request_error', null],
    ['no JSON', NATIVE, '{"model":', 'malformed_json', null],
  ])('%s', async (_, route, said, code, model) => {
    const app = await testApp(KEY_AUTH)
    const key = await app.key({ name: 'laptop' })
    const headers = { authorization: `Bearer ${key.key}`, 'x-request-id': 'mine', 'user-agent': 'curl/8' }
    const body = typeof said === 'string' ? said : JSON.stringify(said)
    const answer = await getAnswer(app, route, { body, headers })
    const { code: told, message } = getError(answer)
    expect([answer.status, told]).toEqual([400, code])
    expect(await app.rows()).toMatchObject([
      {
        requestId: 'mine',
        route: route.slice('POST '.length),
        keyId: key.row.id,
        model,
        status: 'error',
        httpStatus: 400,
        phase: 'request',
        errorCode: code,
        errorMessage: message,
        userAgent: 'curl/8',
        accountId: null,
        inputTokens: null,
        attempts: 0,
      },
    ])
    expect([...(await app.attemptRows()), ...(await app.failedSelections()), ...app.upstream.requests]).toEqual([])
    expect(JSON.stringify(await app.rows())).not.toContain(long)
    await expectNothingLeft(app)
  })

  test('also one that is too large, with the error the client got', async () => {
    const app = await testApp(KEY_AUTH)
    const authorization = `Bearer ${(await app.key()).key}`
    const declared = String(129 * 1024 * 1024)
    for (const route of [NATIVE, PUBLIC])
      await getAnswer(app, route, { body: '{}', headers: { authorization, 'content-length': declared } })
    expect(await app.rows()).toMatchObject(
      [400, 413].map((httpStatus) => ({ httpStatus, errorCode: 'payload_too_large', phase: 'request', model: null })),
    )
    await expectNothingLeft(app)
  })

  test('of a client on this machine that needs no key, too', async () => {
    const app = await testApp()
    await getAnswer(app, NATIVE, { json: withModel() })
    expect(await app.rows()).toMatchObject([{ keyId: null, phase: 'request', httpStatus: 400 }])
  })

  test.each([
    ['without a key', {}],
    ['with an invalid one', { authorization: 'Bearer sk-clb-nobody' }],
  ])('but a client without access, %s, leaves none', async (_, headers) => {
    const app = await testApp(KEY_AUTH)
    for (const body of ['{"model":', JSON.stringify(withModel()), JSON.stringify(codexBody())])
      expect((await getAnswer(app, NATIVE, { body, headers })).status).toBe(401)
    expect(await app.rows()).toEqual([])
  })

  test('nor does a missing key that the body requires', async () => {
    const app = await testApp()
    const json = codexBody('', { client_metadata: { 'x-codex-lb-required-capability': 'trusted_cyber' } })
    expect((await getAnswer(app, NATIVE, { json })).status).toBe(401)
    expect(await app.rows()).toEqual([])
  })

  test('it counts as an error of its key, costs nothing, and affects no limit', async () => {
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const { app, send } = await withKey({ limits })
    await send(NATIVE, withModel())
    expect((await send(NATIVE, codexBody())).status).toBe(200)
    await app.rows()
    expect(await app.db.select().from(requestHours).all()).toMatchObject([
      { model: '', requests: 1, errors: 1, costMicros: 0 },
      { model: 'gpt-5.5', requests: 1, errors: 0 },
    ])
  })
})

describe('a selection without an account is logged with its reasons', () => {
  test('as the only row of a request that never reached an account', async () => {
    const app = await testApp({ accounts: 2 })
    for (const { id } of app.members) app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
    const answer = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(answer.status).toBe(400)
    expect(answer.headers.get('server-timing')).toMatch(/^admit;dur=\d/)
    expect(await app.rows()).toMatchObject([{ phase: 'select', attempts: 0, upstreamTransport: null, accountId: null }])
    expect(await app.attemptRows()).toEqual([])
    expect(await app.failedSelections()).toMatchObject([
      {
        n: 1,
        accountId: null,
        outcome: 'failed',
        upstreamStatus: null,
        code: 'no_accounts',
        considered: app.members.map(({ id }) => ({ id, skipped: 'paused' })),
      },
    ])
    await expectNothingLeft(app)
  })

  test('after the attempts that came first', async () => {
    const app = await testApp()
    app.members[0]!.sim.next({ status: 429, body: { error: { code: 'rate_limit_exceeded', message: 'slow down' } } })
    await getAnswer(app, NATIVE, { json: codexBody() })
    expect(await app.rows()).toMatchObject([{ status: 'error', attempts: 1, upstreamTransport: 'http' }])
    expect(await app.attemptRows()).toMatchObject([{ n: 1, accountId: app.members[0]!.id }])
    expect(await app.failedSelections()).toMatchObject([
      { n: 2, outcome: 'failed', considered: [{ id: app.members[0]!.id, skipped: 'rate_limited' }] },
    ])
    const { requests } = await (await app.ask('GET /api/request-logs')).json()
    expect(requests).toMatchObject([{ upstreamStatusCode: 429, upstreamErrorCode: 'rate_limit_exceeded' }])
  })

  test('with how long it waited for a slot', async () => {
    const app = await testApp({ settings: { proxyAccountStreamLimit: 1 } })
    app.members[0]!.sim.next({ silence: { afterEvents: 8 } })
    const reader = (await app.ask(NATIVE, { json: codexBody() })).body!.getReader()
    await getAnswer(app, NATIVE, { json: codexBody() })
    const [waited] = await app.failedSelections()
    expect(waited).toMatchObject({ code: 'account_stream_cap', considered: [{ skipped: 'at_cap' }] })
    expect(waited!.durationMs).toBeWithin(5000, 5200)
    await reader.cancel()
    await expectNothingLeft(app)
  })
})
