/** Prohibited fast mode: the tier is removed from the request, or the request is rejected. */
import { describe, expect, test } from 'bun:test'
import type { FastModeRule } from '../../db/schema/keys.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people, problem } from '../support/people.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const V1 = 'POST /v1/responses'

const compactBody = (text: string, more: object) => {
  const { stream: _stream, store: _store, include: _include, ...body } = codexBody(text, { ...more })
  return body
}
const chatBody = (text: string, more: object) => ({
  model: 'gpt-5.5',
  messages: [{ role: 'user', content: text }],
  ...more,
})
const ROUTES = [
  [NATIVE, codexBody],
  ['POST /backend-api/codex/responses/compact', compactBody],
  [V1, codexBody],
  ['POST /v1/responses/compact', compactBody],
  ['POST /v1/chat/completions', chatBody],
] as const

const sent = ({ upstream }: TestApp) =>
  upstream.requests.flatMap(({ bodyText }) => (bodyText === '' ? [] : JSON.parse(bodyText)))
const form = (fields: [string, string][]) => ({
  body: new URLSearchParams(fields).toString(),
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})
const getError = ({ text }: { text: string }) => JSON.parse(text).error
const open = async (prohibitFastMode: FastModeRule, key?: Partial<NewKey>) => {
  const app = await testApp({ settings: { prohibitFastMode } })
  const headers: Record<string, string> = key ? { authorization: `Bearer ${(await app.key(key)).key}` } : {}
  return { app, send: (route: string, json: unknown) => getAnswer(app, route, { json, headers }) }
}

describe.each(ROUTES)('%s', (route, getBody) => {
  test.each(['priority', 'fast', 'ultrafast', ' Priority '])('strip: the tier %p is not sent', async (tier) => {
    const { app, send } = await open('strip')
    const answer = await send(route, getBody('hello', { service_tier: tier }))
    expect(answer.status).toBe(200)
    expect(sent(app)).toHaveLength(1)
    expect(sent(app)[0]).not.toHaveProperty('service_tier')
    const isPublic = route.includes('/v1/')
    expect(answer.headers.get('x-sluice-dropped-fields')).toBe(isPublic ? 'service_tier' : null)
    await expectNothingLeft(app)
  })

  test.each(['strip', 'refuse'] as const)('%s: other tiers are sent unchanged', async (rule) => {
    const { app, send } = await open(rule)
    for (const more of [{ service_tier: 'flex' }, {}])
      expect((await send(route, getBody('hello', more))).status).toBe(200)
    expect(sent(app).map(({ service_tier }) => service_tier)).toEqual(['flex', undefined])
  })

  test('refuse: the request is rejected and logged, and nothing is sent', async () => {
    const { app, send } = await open('refuse')
    const answer = await send(route, getBody('hello', { service_tier: 'priority' }))
    expect(answer.status).toBe(400)
    expect(getError(answer)).toMatchObject({ code: 'fast_mode_prohibited', param: 'service_tier' })
    expect(app.upstream.requests).toEqual([])
    expect(await app.rows()).toMatchObject([{ status: 'error', httpStatus: 400, errorCode: 'fast_mode_prohibited' }])
    await expectNothingLeft(app)
  })

  test('off: the tier is sent', async () => {
    const { app, send } = await open('off')
    await send(route, getBody('hello', { service_tier: 'priority' }))
    expect(sent(app)[0].service_tier).toBe('priority')
  })
})

describe('the rule of a key', () => {
  test.each([
    ['null: the setting applies', 'strip', null, 'stripped'],
    ['off over strip', 'strip', 'off', 'sent'],
    ['off over refuse', 'refuse', 'off', 'sent'],
    ['strip over off', 'off', 'strip', 'stripped'],
    ['refuse over strip', 'strip', 'refuse', 'rejected'],
    ['strip over refuse', 'refuse', 'strip', 'stripped'],
  ] as const)('%s', async (_, setting, prohibitFastMode, outcome) => {
    for (const [route, getBody] of ROUTES.slice(0, 3)) {
      const { app, send } = await open(setting, { prohibitFastMode })
      const { status } = await send(route, getBody('hello', { service_tier: 'priority' }))
      const [body] = sent(app)
      const seen = body === undefined ? 'rejected' : body.service_tier === undefined ? 'stripped' : 'sent'
      expect([status, seen]).toEqual([outcome === 'rejected' ? 400 : 200, outcome])
    }
  })

  test.each(['strip', 'refuse'] as const)(
    'a fast tier that a key enforces is not sent under %s either',
    async (rule) => {
      for (const [route, getBody] of ROUTES) {
        const { app, send } = await open(rule, { enforcedServiceTier: 'priority' })
        expect((await send(route, getBody('hello', {}))).status).toBe(200)
        expect(sent(app)[0]).not.toHaveProperty('service_tier')
      }
    },
  )

  test.each(['strip', 'refuse'] as const)('then the client chooses among the other tiers (%s)', async (rule) => {
    for (const [route, getBody] of ROUTES) {
      const { app, send } = await open(rule, { enforcedServiceTier: 'priority' })
      expect((await send(route, getBody('hello', { service_tier: 'flex' }))).status).toBe(200)
      expect(sent(app)[0].service_tier).toBe('flex')
    }
    const { send } = await open('off', { enforcedServiceTier: 'priority' })
    expect((await send(NATIVE, codexBody('hello', { service_tier: 'flex' }))).status).toBe(400)
  })

  test('other tiers that a key enforces are sent', async () => {
    const { app, send } = await open('refuse', { enforcedServiceTier: 'flex' })
    await send(V1, codexBody('hello'))
    expect(sent(app)[0].service_tier).toBe('flex')
  })
})

describe('the bytes of a native body', () => {
  const rest = JSON.stringify(codexBody('hello', { tools: [{ type: 'x', service_tier: 'fast', n: 1 }] })).slice(1, -1)
  test.each([
    ['first', `{ "service_tier" : "priority" , ${rest} }`, `{ ${rest} }`],
    ['last', `{${rest} ,\n "service_tier":"fast"\n}`, `{${rest} }`],
    [
      'between, with an escaped name',
      `{"prompt_cache_key" :\t"\\u0061","service\\u005ftier":"fast", ${rest}}`,
      `{"prompt_cache_key" :\t"\\u0061", ${rest}}`,
    ],
  ])('stay unchanged where the tier was written %s', async (_, body, expected) => {
    const { app } = await open('strip')
    const answer = await getAnswer(app, NATIVE, { body, headers: { 'content-type': 'application/json' } })
    expect(answer.status).toBe(200)
    expect(app.upstream.requests[0]?.bodyText).toBe(expected)
  })

  test('are unchanged without a fast tier', async () => {
    const { app } = await open('refuse')
    const body = `{ ${rest}, "service_tier" : "flex" }`
    await getAnswer(app, NATIVE, { body, headers: { 'content-type': 'application/json' } })
    expect(app.upstream.requests[0]?.bodyText).toBe(body)
  })
})

test('a stripped request reserves and logs no tier', async () => {
  const { app, send } = await open('strip', {})
  app.members[0]!.sim.next({ status: 400, body: { error: { message: 'no', code: 'bad', type: null } } })
  await send(NATIVE, codexBody('hello', { service_tier: 'priority' }))
  expect((await app.rows())[0]?.serviceTier ?? null).toBeNull()
})

describe('POST /v1/messages', () => {
  const body = { model: 'gpt-5.5', max_tokens: 1024, messages: [{ role: 'user', content: 'hello' }] }
  const ask = (app: TestApp, more: object) => getAnswer(app, 'POST /v1/messages', { json: { ...body, ...more } })

  test('is fast with speed "fast", and names it as dropped where fast mode is ignored', async () => {
    const { app } = await open('off')
    await ask(app, { speed: 'fast' })
    expect(sent(app).at(-1)).toMatchObject({ service_tier: 'priority' })
    await app.change({ prohibitFastMode: 'strip' })
    const { status, headers } = await ask(app, { speed: 'fast' })
    expect([status, headers.get('x-sluice-dropped-fields')]).toEqual([200, 'speed, max_tokens'])
    expect(sent(app).at(-1)).not.toHaveProperty('service_tier')
  })

  test('is rejected in the envelope of Anthropic where fast mode is; other speeds are served', async () => {
    const { app } = await open('refuse')
    const { status, text } = await ask(app, { speed: 'fast' })
    expect([status, JSON.parse(text)]).toMatchObject([
      403,
      {
        type: 'error',
        error: {
          type: 'permission_error',
          message: 'Fast mode is not allowed for this API key. Turn it off.',
          details: { error_code: 'fast_mode_prohibited' },
        },
      },
    ])
    expect((await ask(app, { speed: 'standard' })).status).toBe(200)
    expect(await app.rows()).toMatchObject([{ status: 'error', httpStatus: 403 }, { status: 'ok' }])
  })
})

describe('configuring the rule', () => {
  test('the form of a key sets it, keeps it and clears it', async () => {
    const { app } = await open('off')
    const admin = await people(app).as('admin')
    const { row } = await app.key()
    const rule = async () => (await (await admin.ask('GET /api/api-keys')).json())[0].prohibitFastMode
    const html = { headers: { accept: 'text/html' } }
    const save = async (more: [string, string][]) => {
      const page = await (await admin.ask(`GET /keys/${row.id}/edit`, html)).text()
      return (await admin.ask(`PATCH /api/api-keys/${row.id}`, form([...getFields(page, 'form-key'), ...more]))).status
    }
    for (const [more, expected] of [
      [[['prohibitFastMode', 'refuse']], 'refuse'],
      [[], 'refuse'],
      [[['prohibitFastMode', '']], null],
    ] as [[string, string][], string | null][]) {
      expect(await save(more)).toBe(200)
      expect(await rule()).toBe(expected)
    }
    expect(app.bindings.keys.byHash(row.keyHash)).toMatchObject({ prohibitFastMode: null })
  })

  test('a key cannot enforce a fast tier and prohibit it', async () => {
    const { app } = await open('off')
    const admin = await people(app).as('admin')
    const json = { name: 'x', enforcedServiceTier: 'fast', prohibitFastMode: 'strip' }
    expect(await problem(await admin.ask('POST /api/api-keys', { json }))).toEqual([422, 'validation_error'])
    const { row } = await app.key({ enforcedServiceTier: 'priority' })
    const patch = (change: object) => admin.ask(`PATCH /api/api-keys/${row.id}`, { json: change })
    expect((await patch({ prohibitFastMode: 'refuse' })).status).toBe(422)
    expect((await patch({ prohibitFastMode: 'off' })).status).toBe(200)
    expect((await patch({ prohibitFastMode: 'refuse', enforcedServiceTier: null })).status).toBe(200)
  })

  test('an unknown rule is rejected', async () => {
    const admin = await people((await open('off')).app).as('admin')
    expect((await admin.ask('PATCH /api/settings', { json: { prohibitFastMode: 'yes' } })).status).toBe(422)
    const json = { name: 'x', prohibitFastMode: 'yes' }
    expect((await admin.ask('POST /api/api-keys', { json })).status).toBe(422)
  })
})
