/** The control routes of the native client: requests, responses and permissions. */
import { describe, expect, test } from 'bun:test'
import { type Ask, codexBody, expectNothingLeft, getAnswer, type TestApp, testApp } from '../../support/app.ts'
import { type Fault, faults } from '../../support/upstream/faults.ts'

const ROOT = '/backend-api/codex'
const GOAL = { threadId: 'thread-1', objective: 'Write  it' }

interface Row {
  route: string
}

const ROWS: Row[] = [
  { route: `POST ${ROOT}/alpha/search` },
  { route: `POST ${ROOT}/analytics-events/events` },
  { route: `POST ${ROOT}/memories/trace_summarize` },
  { route: `POST ${ROOT}/safety/arc` },
  { route: `GET ${ROOT}/thread/goal/get` },
  { route: `POST ${ROOT}/thread/goal/get` },
  { route: `POST ${ROOT}/thread/goal/set` },
  { route: `POST ${ROOT}/thread/goal/clear` },
  { route: `GET ${ROOT}/agent-identities/jwks` },
  { route: 'GET /backend-api/wham/agent-identities/jwks' },
]

const forwarding = { forwardClientAnalytics: true }
const isPost = ({ route }: Row) => route.startsWith('POST')
const toPath = ({ route }: Row) => route.split(' ')[1] ?? ''
/** Written oddly, so that a body that was parsed and written again is seen. */
const bodyFor = (row: Row): Ask =>
  isPost(row)
    ? { body: `{ "threadId" : "thread-1",\n"objective":"x" }`, headers: { 'content-type': 'application/json; v=2' } }
    : {}
const send = (app: TestApp, row: Row, more: Ask = {}) => {
  const own = bodyFor(row)
  return app.ask(row.route, { ...own, ...more, headers: { ...own.headers, ...more.headers } })
}
const always = (app: TestApp, fault: Fault) => {
  for (const { sim } of app.members) sim.always({ on: 'control', ...fault })
}

describe.each(ROWS)('$route', (row) => {
  const setup = (options: Parameters<typeof testApp>[0] = {}) =>
    testApp({ ...options, settings: { ...forwarding, ...options?.settings } })

  test('sends method, query, body bytes, content type and accept unchanged, and relays the response', async () => {
    const app = await setup()
    const own = bodyFor(row)
    const headers = { ...own.headers, accept: 'application/vnd.test+json', 'openai-beta': 'b=1', cookie: 'a=b' }
    const response = await app.ask(`${row.route}?a=1&a=2&b=%2F`, { ...own, headers })
    expect(response.status).toBe(200)
    expect(response.headers.get('etag')).toBe('"e1"')
    expect(response.headers.get('openai-processing-ms')).toBe('7')
    expect(((await response.json()) as { by: string }).by).toBe(app.members[0]?.sim.email ?? '')
    const [sent] = app.upstream.requests
    expect(sent).toMatchObject({ method: row.route.split(' ')[0], path: toPath(row), search: '?a=1&a=2&b=%2F' })
    expect(sent?.bodyText).toBe(isPost(row) ? String(own.body) : '')
    expect(sent?.headers['content-type']).toBe(isPost(row) ? 'application/json; v=2' : undefined)
    expect(sent?.headers).toMatchObject({ accept: 'application/vnd.test+json', 'openai-beta': 'b=1' })
    expect(await app.rows()).toMatchObject([
      { kind: 'control', status: 'ok', httpStatus: 200, model: null, inputTokens: null, costMicros: null, attempts: 1 },
    ])
    await expectNothingLeft(app)
  })

  test('needs a key where keys are required, counts as a request of that key, and ignores its list of models', async () => {
    const app = await setup({ settings: { apiKeyAuthEnabled: true } })
    expect((await send(app, row)).status).toBe(401)
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const key = await app.key({ allowedModels: ['gpt-5.5'], limits })
    const headers = { authorization: `Bearer ${key.key}` }
    const first = await send(app, row, { headers })
    expect(first.status).toBe(200)
    await first.text()
    const second = await send(app, row, { headers })
    expect([second.status, ((await second.json()) as { error: { code: string } }).error.code]).toEqual([
      429,
      'rate_limit_exceeded',
    ])
    expect(app.upstream.requests).toHaveLength(1)
    expect((await app.rows()).map(({ kind, keyId }) => [kind, keyId])).toEqual([
      ['control', key.row.id],
      ['control', key.row.id],
    ])
  })

  test('rejects the capability header, and requests while draining or from an address outside the firewall', async () => {
    const app = await setup()
    const headers = {
      authorization: `Bearer ${(await app.key()).key}`,
      'x-codex-lb-required-capability': 'trusted_cyber',
    }
    const restricted = await send(app, row, { headers })
    expect([restricted.status, ((await restricted.json()) as { error: { code: string } }).error.code]).toEqual([
      400,
      'required_capability_transport_unsupported',
    ])
    app.bindings.lifecycle.draining = true
    expect((await send(app, row)).status).toBe(503)
    app.bindings.lifecycle.draining = false
    await app.ask('POST /api/firewall/ips', { json: { ipAddress: '203.0.113.9' } })
    const outside = await send(app, row, { peer: '198.51.100.7' })
    expect([outside.status, ((await outside.json()) as { error: { code: string } }).error.code]).toEqual([
      403,
      'ip_forbidden',
    ])
    expect(app.upstream.requests).toEqual([])
  })

  test('refreshes a rejected token once and sends the request again', async () => {
    const app = await setup()
    app.members[0]?.sim.expireAccessToken()
    const response = await send(app, row)
    expect(response.status).toBe(200)
    await response.text()
    const sent = app.upstream.requests.filter(({ path }) => path === toPath(row))
    expect(sent.map(({ status }) => status)).toEqual([401, 200])
    expect(sent[0]?.bodyText).toBe(sent[1]?.bodyText ?? '')
    expect(app.bindings.pool.all()[0]?.state.status).toBe('active')
    await expectNothingLeft(app)
  })

  test.each([
    [422, { error: { message: 'No such thing.', type: 'invalid_request_error', code: 'odd', param: 'q' } }],
    [409, { detail: 'Already there.' }],
    [400, { error: { message: 'Bad.', code: 'bad_thing' } }],
  ])(
    'an error %p of ChatGPT is returned with its status and message, and no other account is tried',
    async (status, body) => {
      const app = await setup({ accounts: 2 })
      always(app, { status, body })
      const response = await send(app, row)
      const { error } = (await response.json()) as { error: Record<string, unknown> }
      expect(response.status).toBe(status)
      expect(error.message).toBe('error' in body ? body.error?.message : body.detail)
      if ('error' in body) expect(error.code).toBe(body.error?.code)
      expect(app.upstream.requests).toHaveLength(1)
      expect(await app.rows()).toMatchObject([{ kind: 'control', status: 'error', httpStatus: status }])
      await expectNothingLeft(app)
    },
  )

  test('a failing route does not count against the account', async () => {
    const app = await setup()
    always(app, faults.serverError())
    expect((await getAnswer(app, row.route, bodyFor(row))).status).toBe(500)
    const [account] = app.bindings.pool.all()
    expect([account?.health.errors, account?.health.failing, account?.state.status]).toEqual([0, null, 'active'])
    await expectNothingLeft(app)
  })

  test('is sent on an account at its limit when there is no other', async () => {
    const app = await setup()
    app.members[0]?.sim.next(faults.usageLimit({ resetsAt: app.clock.now() + 3_600_000 }))
    await (await app.ask(`POST ${ROOT}/responses`, { json: codexBody() })).text()
    expect(app.bindings.pool.all()[0]?.state.status).not.toBe('active')
    expect((await send(app, row)).status).toBe(200)
  })
})

describe('the account', () => {
  const served = async (app: TestApp, route: string, ask: Ask) => {
    const response = await app.ask(route, ask)
    return ((await response.json()) as { by: string }).by
  }
  const turnOn = async (headers: Record<string, string>) => {
    const app = await testApp({ accounts: 5 })
    const response = await app.ask(`POST ${ROOT}/responses`, { json: codexBody(), headers })
    await response.text()
    const { accountId } = (await app.rows())[0]!
    const owner = app.members.find(({ id }) => id === accountId)?.sim.email ?? ''
    return { app, owner, turnState: response.headers.get('x-codex-turn-state') ?? '' }
  }

  test('is the one that issued the turn state', async () => {
    const { app, owner, turnState } = await turnOn({})
    for (let time = 0; time < 4; time++)
      expect(
        await served(app, `POST ${ROOT}/alpha/search`, { body: '{}', headers: { 'x-codex-turn-state': turnState } }),
      ).toBe(owner)
    expect(app.upstream.oddities).toEqual([])
  })

  test.each(['session-id', 'thread-id'])('is that of the conversation named by the %s', async (name) => {
    const { app, owner } = await turnOn({ [name]: 'thread-1' })
    for (let time = 0; time < 4; time++)
      expect(await served(app, `POST ${ROOT}/alpha/search`, { body: '{}', headers: { [name]: 'thread-1' } })).toBe(
        owner,
      )
  })

  test('of a goal is that of its thread, in the body or in the query', async () => {
    const { app, owner } = await turnOn({ 'thread-id': 'thread-1' })
    for (let time = 0; time < 4; time++) {
      const headers = { 'session-id': 'another' }
      expect(await served(app, `POST ${ROOT}/thread/goal/set`, { json: GOAL, headers })).toBe(owner)
      expect(await served(app, `GET ${ROOT}/thread/goal/get?threadId=thread-1`, { headers })).toBe(owner)
    }
  })

  test('is another one when its owner is paused, and the conversation stays with its owner', async () => {
    const { app, owner } = await turnOn({ 'thread-id': 'thread-1' })
    const id = app.members.find(({ sim }) => sim.email === owner)?.id ?? ''
    await app.ask(`POST /api/accounts/${id}/pause`)
    const headers = { 'thread-id': 'thread-1' }
    expect(await served(app, `POST ${ROOT}/alpha/search`, { body: '{}', headers })).not.toBe(owner)
    await app.ask(`POST /api/accounts/${id}/reactivate`)
    expect(await served(app, `POST ${ROOT}/alpha/search`, { body: '{}', headers })).toBe(owner)
  })

  test('at its limit is replaced by one that is not', async () => {
    const app = await testApp({ accounts: 2 })
    app.bindings.pool.apply(app.members[0]!.id, {
      kind: 'rate_limited',
      at: app.clock.now(),
      evidence: '',
      resetAt: app.clock.now() + 3_600_000,
      retryAfterMs: null,
      cause: 'usage_limit_reached',
    })
    for (let time = 0; time < 4; time++)
      expect(await served(app, `POST ${ROOT}/alpha/search`, { body: '{}' })).toBe(app.members[1]!.sim.email)
  })
})

describe('retries', () => {
  test('a change that may have been applied is not sent twice', async () => {
    const app = await testApp({ accounts: 2 })
    for (const { sim } of app.members) sim.next({ on: 'control', reset: true })
    const response = await app.ask(`POST ${ROOT}/thread/goal/set`, { json: GOAL })
    expect(response.status).toBe(502)
    expect(app.upstream.requests).toHaveLength(1)
    await expectNothingLeft(app)
  })

  test('a change that was rejected goes to another account', async () => {
    const app = await testApp({ accounts: 2 })
    for (const { sim } of app.members) sim.next({ on: 'control', ...faults.rateLimited() })
    app.members[1]?.sim.clearFaults()
    await app.prefer(app.members[0]!.id)
    expect((await app.ask(`POST ${ROOT}/thread/goal/set`, { json: GOAL })).status).toBe(200)
    expect(app.bindings.pool.all().map(({ state }) => state.status)).toEqual(['active', 'active'])
  })

  test('a search is retried', async () => {
    const app = await testApp({ accounts: 1 })
    app.members[0]?.sim.next({ on: 'control', ...faults.serverError() })
    expect((await getAnswer(app, `POST ${ROOT}/alpha/search`, { body: '{}' })).status).toBe(200)
    expect(app.upstream.requests).toHaveLength(2)
  })
})

describe('goals', () => {
  const POSTS = ['get', 'set', 'clear']

  test.each(POSTS)('%s needs a JSON object', async (action) => {
    const app = await testApp()
    for (const body of ['[]', '"goal"', 'null', '{"a":', '']) {
      const response = await app.ask(`POST ${ROOT}/thread/goal/${action}`, { body })
      expect([body, response.status]).toEqual([body, 400])
    }
    expect(app.upstream.requests).toEqual([])
    expect((await app.rows()).map(({ kind, httpStatus, phase }) => [kind, httpStatus, phase])).toEqual(
      Array.from({ length: 5 }, () => ['control', 400, 'request']),
    )
    await expectNothingLeft(app)
  })

  const NONE: [string, Fault][] = [
    ['404 not_found', { status: 404, body: { error: { message: 'No goal.', code: 'not_found' } } }],
    ['404 with a detail', { status: 404, body: { detail: 'Not Found' } }],
    ['405', { status: 405, body: { detail: 'Method Not Allowed' } }],
    ['404 as a page', { status: 404, body: '<html></html>' }],
  ]

  test.each(NONE)('get answers {goal: null} when ChatGPT says %s', async (_name, fault) => {
    const app = await testApp({ accounts: 2 })
    always(app, fault)
    for (const [route, ask] of [
      [`GET ${ROOT}/thread/goal/get?threadId=t`, {}],
      [`POST ${ROOT}/thread/goal/get`, { json: GOAL }],
    ] as const) {
      const response = await app.ask(route, ask)
      expect([response.status, await response.json()]).toEqual([200, { goal: null }])
    }
    expect(app.upstream.requests).toHaveLength(2)
    expect((await app.rows()).map(({ status, httpStatus }) => [status, httpStatus])).toEqual([
      ['ok', 200],
      ['ok', 200],
    ])
    await expectNothingLeft(app)
  })

  test('get passes on a 404 about something else, and set passes on every 404', async () => {
    const app = await testApp()
    always(app, { status: 404, body: { error: { message: 'No such thread.', code: 'thread_not_found' } } })
    const other = await app.ask(`POST ${ROOT}/thread/goal/get`, { json: GOAL })
    expect([other.status, ((await other.json()) as { error: { code: string } }).error.code]).toEqual([
      404,
      'thread_not_found',
    ])
    always(app, { status: 404, body: { detail: 'Not Found' } })
    expect((await app.ask(`POST ${ROOT}/thread/goal/set`, { json: GOAL })).status).toBe(404)
    expect((await app.rows()).map(({ status, httpStatus }) => [status, httpStatus])).toEqual([
      ['error', 404],
      ['error', 404],
    ])
  })
})

describe('telemetry of the client', () => {
  test('is accepted and sent nowhere', async () => {
    const app = await testApp()
    const response = await app.ask(`POST ${ROOT}/analytics-events/events`, { json: { events: [{ name: 'x' }] } })
    expect([response.status, await response.json()]).toEqual([202, {}])
    expect(app.upstream.requests).toEqual([])
    expect(await app.rows()).toMatchObject([
      { kind: 'control', status: 'ok', httpStatus: 202, accountId: null, attempts: 0 },
    ])
    await expectNothingLeft(app)
  })
})

describe('key sets', () => {
  const PATHS = [`GET ${ROOT}/agent-identities/jwks`, 'GET /backend-api/wham/agent-identities/jwks']

  test.each(PATHS)('%s is read again after five minutes', async (route) => {
    const app = await testApp()
    const ask = async () => (await app.ask(route)).json()
    const first = await ask()
    await app.clock.advance('299s')
    expect(await ask()).toEqual(first)
    expect(app.upstream.requests).toHaveLength(1)
    await app.clock.advance('2s')
    await ask()
    expect(app.upstream.requests).toHaveLength(2)
    expect((await app.rows()).map(({ status, accountId }) => [status, accountId !== null])).toEqual([
      ['ok', true],
      ['ok', false],
      ['ok', true],
    ])
  })

  test('an error is not cached, and one path has no effect on the other', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ on: 'control', status: 403, body: { detail: 'Forbidden' } })
    expect((await app.ask(PATHS[0]!)).status).not.toBe(200)
    for (const route of PATHS) expect((await app.ask(route)).status).toBe(200)
    expect(app.upstream.requests.map(({ path }) => path)).toEqual(
      [PATHS[0]!, ...PATHS].map((route) => route.split(' ')[1] ?? ''),
    )
  })
})

describe('the response', () => {
  const route = `POST ${ROOT}/alpha/search`

  test('is read only as fast as the client reads, and a client that disconnects ends it', async () => {
    const app = await testApp()
    let pulls = 0
    let isCancelled = false
    app.upstream.answerRelay(
      () =>
        new Response(
          new ReadableStream<Uint8Array>(
            {
              pull(controller) {
                pulls++
                controller.enqueue(new Uint8Array(1024))
              },
              cancel() {
                isCancelled = true
              },
            },
            { highWaterMark: 0 },
          ),
          { headers: { 'content-type': 'application/json', 'set-cookie': 'a=b', 'x-secret': '1', location: '/there' } },
        ),
    )
    const client = new AbortController()
    const response = await app.ask(route, { body: '{}', signal: client.signal })
    expect([...response.headers.keys()]).not.toContain('x-secret')
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(response.headers.get('location')).toBe('/there')
    const reader = response.body!.getReader()
    for (let read = 0; read < 3; read++) await reader.read()
    await app.clock.advance(0)
    expect(pulls).toBeLessThan(8)
    client.abort()
    await app.clock.advance(0)
    await app.clock.advance(0)
    expect(isCancelled).toBe(true)
    expect(await app.rows()).toMatchObject([{ kind: 'control', status: 'cancelled' }])
    await expectNothingLeft(app)
  })

  test('a client that disconnects before the response is logged as cancelled', async () => {
    const app = await testApp()
    app.members[0]?.sim.next({ on: 'control', delayHeadersMs: 60_000 })
    const client = new AbortController()
    const response = app.ask(route, { body: '{}', signal: client.signal })
    await app.clock.advance('1s')
    client.abort()
    await app.clock.advance(0)
    await response
    expect(await app.rows()).toMatchObject([{ kind: 'control', status: 'cancelled', httpStatus: 499 }])
    await expectNothingLeft(app)
  })

  test('a response without a body, and one that never comes', async () => {
    const app = await testApp()
    app.upstream.answerRelay(() => new Response(null, { status: 204 }))
    expect((await app.ask(route, { body: '{}' })).status).toBe(204)
    expect(await app.rows()).toMatchObject([{ status: 'ok', httpStatus: 204 }])
    app.members[0]?.sim.next({ on: 'control', delayHeadersMs: 3_600_000 })
    const late = await getAnswer(app, route, { body: '{}' }, 5000)
    expect(late.status).toBe(504)
    await expectNothingLeft(app)
  })

  test('a body above 32 MiB is rejected, and its memory is released', async () => {
    const app = await testApp()
    const response = await app.ask(route, { body: '{}', headers: { 'content-length': String(33 * 1024 * 1024) } })
    expect([response.status, (await app.rows())[0]?.kind]).toEqual([400, 'control'])
    await expectNothingLeft(app)
  })
})
