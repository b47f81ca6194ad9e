/**
 * Invalid input in process: every rejection has its error format, leaves nothing behind, and the next request is
 * served.
 */
import { describe, expect, test } from 'bun:test'
import { dashboardProblem, modelProblem } from '../spec/problems.ts'
import { codexBody, getEvents, type TestApp, testApp } from '../support/app.ts'
import { faults } from '../support/upstream/faults.ts'
import { bombs, ODD, REFUSED } from './bad-bodies.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const CHAT = 'POST /v1/chat/completions'
const COMPACT = 'POST /backend-api/codex/responses/compact'
const MODEL_ROUTES = [NATIVE, PUBLIC, CHAT, COMPACT, 'POST /v1/responses/compact']
const MIB = 1024 * 1024

/** Nothing is held, nothing runs, and a good turn is answered. */
const expectWell = async ({ ask, bindings }: TestApp) => {
  expect(bindings.bodies.heldBytes).toBe(0)
  expect(bindings.turns.size).toBe(0)
  expect(bindings.pool.all().map(({ inFlight }) => inFlight)).toEqual([0])
  const response = await ask(NATIVE, { json: codexBody() })
  expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
}

describe('an invalid body', () => {
  for (const [name, [body, code]] of Object.entries(REFUSED))
    test(`${name} is rejected on every model route before any account is used`, async () => {
      const app = await testApp()
      for (const route of MODEL_ROUTES) {
        const response = await app.ask(route, { body })
        expect([route, response.status, (await modelProblem(response)).code]).toEqual([route, 400, code])
      }
      expect(app.upstream.requests).toEqual([])
      const refusals = (await app.rows()).map(({ phase, errorCode, accountId }) => [phase, errorCode, accountId])
      expect(refusals).toEqual(MODEL_ROUTES.map(() => ['request', code, null]))
      await expectWell(app)
    })

  for (const [name, [body, code]] of Object.entries(REFUSED))
    test(`${name} is rejected in the dashboard error format`, async () => {
      const app = await testApp()
      const response = await app.ask('POST /api/api-keys/', { body })
      // Invalid UTF-8 is read with replacement characters there, and nothing but its shape is wrong then.
      const isJson = code === 'invalid_request_error' || name === 'invalid UTF-8'
      const expected = isJson ? [422, 'validation_error'] : [400, 'malformed_json']
      expect([response.status, (await dashboardProblem(response)).code]).toEqual(expected)
    })
})

describe('unusual but valid JSON', () => {
  for (const [name, body] of Object.entries(ODD))
    test(`${name} is served or rejected, and never an internal error`, async () => {
      const app = await testApp()
      for (const route of MODEL_ROUTES) {
        const response = await app.ask(route, { body })
        const isServed = response.status === 200
        if (isServed) await response.text()
        else
          expect([route, response.status, (await modelProblem(response)).type]).toEqual([
            route,
            400,
            'invalid_request_error',
          ])
      }
      for (const { sim } of app.members) sim.clearFaults()
      expect(({} as { isAdmin?: unknown }).isAdmin).toBeUndefined()
      await expectWell(app)
    })

  test('the native route passes it on byte for byte', async () => {
    const { ask, upstream } = await testApp()
    const body = ODD['a lone surrogate']!
    await (await ask(NATIVE, { body })).text()
    expect(upstream.requests.at(-1)?.bodyText).toBe(new TextDecoder().decode(body))
    expect(upstream.oddities).toEqual([])
  })

  test('a duplicate key that is read here is rejected, because the upstream could read the other one', async () => {
    const { ask, upstream } = await testApp()
    const response = await ask(NATIVE, { body: ODD['the same key twice']! })
    expect([response.status, (await modelProblem(response)).param]).toEqual([400, 'model'])
    expect(upstream.requests).toEqual([])
  })
})

describe('wrong types are named', () => {
  const WRONG: [route: string, json: Record<string, unknown>, param: string][] = [
    [NATIVE, { model: 5 }, 'model'],
    [NATIVE, { model: '' }, 'model'],
    [NATIVE, { model: 'x'.repeat(201) }, 'model'],
    [PUBLIC, { model: null, input: 'x' }, 'model'],
    [PUBLIC, { model: 'gpt-5.5' }, 'input'],
    [CHAT, { model: {}, messages: [{ role: 'user', content: 'x' }] }, 'model'],
    [CHAT, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'x' }], n: 2 }, 'n'],
    [CHAT, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'x' }], tools: 'all' }, 'tools'],
    [CHAT, { model: 'gpt-5.5', messages: [{ role: 'user', content: 'x' }], stream: 'yes' }, 'stream'],
  ]
  test.each(WRONG)('%s %j', async (route, json, param) => {
    const app = await testApp()
    const response = await app.ask(route, { json })
    expect(response.status).toBe(400)
    expect((await modelProblem(response)).param).toBe(param)
    await expectWell(app)
  })
})

describe('an unknown model', () => {
  test.each([NATIVE, PUBLIC, CHAT])('%s gets the same error as from the upstream', async (route) => {
    const app = await testApp()
    const json = { ...(route === CHAT ? {} : codexBody()), model: 'gpt-0', messages: [{ role: 'user', content: 'x' }] }
    const response = await app.ask(route, { json: route === CHAT ? json : codexBody('x', { model: 'gpt-0' }) })
    expect(response.status).toBe(400)
    expect((await modelProblem(response)).message).toContain('gpt-0')
    await expectWell(app)
  })
})

describe('size', () => {
  test.each([
    [NATIVE, 400],
    [PUBLIC, 413],
    [CHAT, 413],
    [COMPACT, 400],
    ['POST /v1/responses/compact', 413],
  ])('%s: a declared length above the limit is rejected unread, with %d', async (route, status) => {
    const app = await testApp()
    const headers = { 'content-length': String(129 * MIB) }
    const response = await app.ask(route, { body: '{}', headers })
    expect([response.status, (await modelProblem(response)).code]).toEqual([status, 'payload_too_large'])
    await expectWell(app)
  })

  test('without a length it is counted, and reading stops at the limit', async () => {
    const app = await testApp()
    let chunks = 0
    let isCancelled = false
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        chunks++
        controller.enqueue(new Uint8Array(MIB).fill(0x20))
      },
      cancel() {
        isCancelled = true
      },
    })
    const response = await app.ask(CHAT, { body })
    expect([response.status, (await modelProblem(response)).code]).toEqual([413, 'payload_too_large'])
    expect(chunks).toBeLessThanOrEqual(35)
    expect(isCancelled).toBe(true)
    await expectWell(app)
  })

  test.each(['a length that is no number', '-5', '1e3', ' 12'])(
    'content-length %p does not bypass the limit',
    async (length) => {
      const app = await testApp()
      const response = await app.ask(NATIVE, { json: codexBody(), headers: { 'content-length': length } })
      expect([200, 400]).toContain(response.status)
      await response.text()
      await expectWell(app)
    },
  )
})

describe('content encodings', () => {
  const { gzip, zstd } = bombs()
  test.each([
    ['gzip', gzip],
    ['zstd', zstd],
  ] as const)('a %s bomb is rejected at the limit', async (encoding, body) => {
    expect(body.length).toBeLessThan(MIB)
    const app = await testApp()
    for (const [route, status] of [
      [NATIVE, 400],
      [PUBLIC, 413],
      [CHAT, 413],
    ] as const) {
      const response = await app.ask(route, { body, headers: { 'content-encoding': encoding } })
      expect([route, response.status, (await modelProblem(response)).code]).toEqual([
        route,
        status,
        'payload_too_large',
      ])
    }
    await expectWell(app)
  })

  const good = new TextEncoder().encode(JSON.stringify(codexBody()))
  test.each([
    ['an unknown one', 'compress', good],
    ['a list with an unknown one', 'gzip, compress', Bun.gzipSync(good)],
    ['five of them', 'gzip, gzip, gzip, gzip, gzip', good],
    ['plain bytes called gzip', 'gzip', good],
    ['plain bytes called zstd', 'zstd', good],
    ['truncated gzip', 'gzip', Bun.gzipSync(good).slice(0, 40)],
    ['truncated zstd', 'zstd', Bun.zstdCompressSync(good).slice(0, 40), 'malformed_json'],
    ['empty data called zstd', 'zstd', new Uint8Array(), 'malformed_json'],
  ] as [string, string, BodyInit, string?][])(
    '%s is rejected',
    async (_name, encoding, body, code = 'unsupported_encoding') => {
      const app = await testApp()
      const response = await app.ask(NATIVE, { body, headers: { 'content-encoding': encoding } })
      expect([response.status, (await modelProblem(response)).code]).toEqual([400, code])
      expect(app.upstream.requests).toEqual([])
      await expectWell(app)
    },
  )

  test.each([
    ['zstd', Bun.zstdCompressSync(good)],
    ['GZIP', Bun.gzipSync(good)],
    ['gzip, zstd', Bun.zstdCompressSync(Bun.gzipSync(good))],
    ['identity', good],
  ] as [string, Uint8Array<ArrayBuffer>][])(
    '%s is decoded, and the plain body goes upstream',
    async (encoding, body) => {
      const { ask, upstream } = await testApp()
      const response = await ask(NATIVE, { body, headers: { 'content-encoding': encoding } })
      expect((await getEvents(response)).at(-1)?.type).toBe('response.completed')
      expect(upstream.requests[0]?.bodyText).toBe(JSON.stringify(codexBody()))
      expect(upstream.requests[0]?.headers['content-encoding']).toBeUndefined()
    },
  )
})

describe('keys', () => {
  test.each([
    ['none', {}],
    ['a wrong one', { authorization: 'Bearer sk-clb-wrong' }],
    ['one of ten thousand characters', { authorization: `Bearer ${'x'.repeat(10_000)}` }],
    ['control characters', { authorization: 'Bearer \u0001\u0002' }],
    ['two', { authorization: 'Bearer a, Bearer b' }],
    ['no scheme', { authorization: 'sk-clb-wrong' }],
  ] as [string, Record<string, string>][])('%s', async (_name, headers) => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    for (const route of MODEL_ROUTES) {
      const response = await app.ask(route, { body: '{"not json', headers })
      expect([route, response.status, (await modelProblem(response)).code]).toEqual([route, 401, 'invalid_api_key'])
    }
    await app.change({ apiKeyAuthEnabled: false })
    await expectWell(app)
  })

  test('an expired one', async () => {
    const app = await testApp({ settings: { apiKeyAuthEnabled: true } })
    const headers = { authorization: `Bearer ${(await app.key({ expiresAt: app.clock.now() - 1 })).key}` }
    const response = await app.ask(NATIVE, { json: codexBody(), headers })
    expect(response.status).toBe(401)
    expect((await modelProblem(response)).message).toBe('API key has expired')
  })
})

describe('garbage from the upstream', () => {
  test('an upstream error page is not passed on', async () => {
    const app = await testApp()
    app.members[0]!.sim.next(faults.forbiddenHtml())
    const response = await app.ask(PUBLIC, { json: { model: 'gpt-5.5', input: 'x' } })
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(JSON.stringify(await modelProblem(response))).not.toContain('<html')
    await expectWell(app)
  })
})

describe('parameters of the dashboard', () => {
  test.each([
    ['GET /api/request-logs?limit=ten', 422],
    ['GET /api/request-logs?cursor=%00%ff', 422],
    ['GET /api/request-logs/%00', 404],
    ['DELETE /api/firewall/ips/%2e%2e%2f', 404],
    ['PATCH /api/api-keys/__proto__', 404],
    ['GET /assets/..%2f..%2fetc%2fpasswd', 404],
    ['GET /%', 404],
  ])('%s answers %d in the error format', async (route, status) => {
    const app = await testApp()
    const response = await app.ask(route, { json: route.startsWith('PATCH') ? {} : undefined })
    const problem = await dashboardProblem(response)
    expect([problem.code, response.status]).toEqual([problem.code, status])
    await expectWell(app)
  })
})
