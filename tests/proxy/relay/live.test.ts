/** Creating live calls: the upstream request, which responses bind a call to its account, and what is never logged. */
import { describe, expect, test } from 'bun:test'
import { liveCalls } from '../../../db/schema/live-calls.ts'
import { accountOfCall } from '../../../src/model/conversations/live-calls.ts'
import { type Ask, expectNothingLeft, type TestApp, type TestOptions, testApp } from '../../support/app.ts'
import { runRetention } from '../../support/retention.ts'
import type { RelayCall } from '../../support/upstream/relay-routes.ts'

const ROWS = [
  { route: 'POST /backend-api/codex/realtime/calls', upstream: '/backend-api/codex/realtime/calls', tooLarge: 400 },
  { route: 'POST /v1/realtime/calls', upstream: '/backend-api/codex/realtime/calls', tooLarge: 413 },
  { route: 'POST /backend-api/codex/live', upstream: '/backend-api/codex/live', tooLarge: 400 },
  { route: 'POST /v1/live', upstream: '/backend-api/codex/live', tooLarge: 413 },
]
const ROUTE = 'POST /v1/realtime/calls'
const SDP = 'v=0 secret-sdp-line'
/** Written oddly, so that a body that was parsed and written again is seen. */
const OFFER = `{ "sdp" : "${SDP}",\n"session":{"type":"realtime"}}`

const setup = async (options: TestOptions = {}) => {
  const app = await testApp(options)
  const key = await app.key()
  const create = (route = ROUTE, { headers, ...ask }: Ask = {}) =>
    app.ask(route, { body: OFFER, ...ask, headers: { authorization: `Bearer ${key.key}`, ...headers } })
  return { ...app, app, key, create }
}
const getCode = async (response: Response) => [
  response.status,
  ((await response.json()) as { error: { code: string } }).error.code,
]
const bound = ({ db }: TestApp) => db.select().from(liveCalls).all()
const locatedAt =
  (location: string | null, status = 201) =>
  (_: RelayCall) =>
    new Response('v=0', { status, headers: location === null ? {} : { location } })

describe.each(ROWS)('$route', ({ route, upstream: path, tooLarge }) => {
  test('sends the offer unchanged to one account, and relays the response with its location', async () => {
    const { app, key, create, members, upstream, clock } = await setup({ accounts: 2 })
    const headers = {
      'content-type': 'application/json; v=2',
      'openai-alpha': 'a=1',
      'x-session-id': 'session',
      'x-oai-attestation': 'proof',
      cookie: 'a=b',
    }
    const response = await create(route, { headers })
    expect([response.status, await response.text()]).toEqual([201, expect.stringContaining('s=answer')])
    const location = response.headers.get('location') ?? ''
    expect(location).toMatch(/^\/v1\/realtime\/calls\/rtc_/)
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(upstream.requests).toHaveLength(1)
    expect(upstream.requests[0]).toMatchObject({ path, bodyText: OFFER, search: '' })
    const { cookie: _, ...sent } = headers
    expect(upstream.requests[0]?.headers).toMatchObject(sent)
    const call = { keyId: key.row.id, callId: location.slice('/v1/realtime/calls/'.length) }
    const serving = members.find(({ sim }) => sim.chatgptAccountId === upstream.requests[0]?.account)
    expect(await accountOfCall(app.db, call, clock.now())).toBe(serving?.id ?? '')
    expect(await app.rows()).toMatchObject([
      {
        kind: 'live',
        route: route.slice(5),
        status: 'ok',
        httpStatus: 201,
        model: null,
        inputTokens: null,
        costMicros: null,
      },
    ])
    await expectNothingLeft(app)
  })

  test('always needs a key, and rejects the capability header, requests while draining, and other addresses', async () => {
    const { app, create, upstream } = await setup()
    expect(await getCode(await app.ask(route, { body: OFFER }))).toEqual([401, 'invalid_api_key'])
    const restricted = await create(route, { headers: { 'x-codex-lb-required-capability': 'trusted_cyber' } })
    expect(await getCode(restricted)).toEqual([400, 'required_capability_transport_unsupported'])
    app.bindings.lifecycle.draining = true
    expect((await create(route)).status).toBe(503)
    app.bindings.lifecycle.draining = false
    await app.ask('POST /api/firewall/ips', { json: { ipAddress: '203.0.113.9' } })
    expect(await getCode(await create(route, { peer: '198.51.100.7' }))).toEqual([403, 'ip_forbidden'])
    expect(upstream.requests).toEqual([])
  })

  test('an offer of 17 MiB is rejected, and nothing is sent or counted', async () => {
    const { app, create, upstream } = await setup()
    const response = await create(route, { body: `{"sdp":"${'x'.repeat(17 * 1024 * 1024)}"}` })
    expect(await getCode(response)).toEqual([tooLarge, 'payload_too_large'])
    expect(upstream.requests).toEqual([])
    expect(await bound(app)).toEqual([])
    await expectNothingLeft(app)
  })
})

describe('the query', () => {
  test.each([
    ['?a=1&a=2&b=%2F', '?a=1&a=2&b=%2F'],
    ['?key=sk-clb-x&model=m', '?model=m'],
    ['?token=1&Authorization=2&api_key=3&access_token=4&call_id=5&z=%20', '?z=%20'],
    ['?%6bey=1&c', '?c'],
    ['?call_id=rtc_1', ''],
  ])('%s is sent as %s', async (query, sent) => {
    const { app, create, upstream } = await setup()
    expect((await create(ROUTE + query)).status).toBe(201)
    expect(upstream.requests.map(({ search }) => search)).toEqual([sent])
    expect(upstream.oddities).toEqual([])
    expect(app.lines.join('\n')).not.toContain('sk-clb-x')
  })
})

describe('never sent twice', () => {
  test.each([
    ['a dropped connection', { reset: true }],
    ['a server error', { status: 500, body: {} }],
    ['a rejected token', { status: 401, body: {} }],
    ['a rate limit', { status: 429, body: {} }],
    ['a rejected offer', { status: 400, body: { error: { code: 'invalid_offer', message: SDP } } }],
  ])('%s ends the request', async (_, fault) => {
    const { app, create, members, upstream } = await setup({ accounts: 3 })
    for (const { sim } of members) sim.always({ on: 'live', ...fault })
    const response = await create()
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(await response.text()).not.toContain(SDP)
    expect(upstream.requests).toHaveLength(1)
    expect(await bound(app)).toEqual([])
    const [row] = await app.rows()
    expect(row).toMatchObject({ kind: 'live', status: 'error' })
    expect(JSON.stringify([await app.rows(), await app.attemptRows(), app.lines])).not.toContain(SDP)
    await expectNothingLeft(app)
  })
})

describe('the location of a created call', () => {
  const UUID = '0f8fad5b-d9cb-469f-a165-70867728950e'
  test.each([
    '/v1/realtime/calls/rtc_a',
    `/v1/realtime/calls/${UUID}`,
    'https://api.openai.com/v1/realtime/calls/rtc_A.b~c-d?x=/y',
    `/v1/realtime/calls/rtc_${'a'.repeat(252)}`,
  ])('%s binds the call', async (location) => {
    const { app, create, upstream } = await setup()
    upstream.answerRelay(locatedAt(location))
    const response = await create()
    expect([response.status, response.headers.get('location')]).toEqual([201, location])
    expect(await bound(app)).toHaveLength(1)
  })

  test.each([
    null,
    '',
    '/v1/realtime/calls/',
    '/v1/realtime/calls/abc',
    '/v1/realtime/calls/rtc_',
    '/v1/realtime/calls/rtc_a/b',
    '/v1/realtime/calls/rtc_a%20b',
    '/v1/live/rtc_a',
    'ftp://api.openai.com/v1/realtime/calls/rtc_a',
    'v1/realtime/calls/rtc_a',
    `/v1/realtime/calls/${UUID.toUpperCase()}`,
    `/v1/realtime/calls/rtc_${'a'.repeat(253)}`,
  ])('%s does not, and the call is not created again', async (location) => {
    const { app, key, create, upstream } = await setup({ accounts: 2 })
    upstream.answerRelay(locatedAt(location))
    expect(await getCode(await create())).toEqual([503, 'realtime_call_binding_failed'])
    expect(upstream.requests).toHaveLength(1)
    expect(await bound(app)).toEqual([])
    expect(await app.rows()).toMatchObject([{ kind: 'live', status: 'error', httpStatus: 503 }])
    expect(app.bindings.keys.find(key.key)?.limits ?? []).toEqual([])
    await expectNothingLeft(app)
  })

  test('a second response for one call changes nothing and fails', async () => {
    const { app, create, upstream } = await setup({ accounts: 2 })
    upstream.answerRelay(locatedAt('/v1/realtime/calls/rtc_same'))
    const first = await create()
    expect([first.status, await first.text()]).toEqual([201, 'v=0'])
    const before = await bound(app)
    for (const route of [ROUTE, 'POST /backend-api/codex/live'])
      expect(await getCode(await create(route))).toEqual([503, 'realtime_call_binding_failed'])
    expect(await bound(app)).toEqual(before)
    await expectNothingLeft(app)
  })

  test('another key can have a call of the same id', async () => {
    const { app, create, upstream } = await setup()
    upstream.answerRelay(locatedAt('/v1/realtime/calls/rtc_same'))
    const other = { authorization: `Bearer ${(await app.key()).key}` }
    expect([(await create()).status, (await create(ROUTE, { headers: other })).status]).toEqual([201, 201])
    expect(await bound(app)).toHaveLength(2)
  })
})

describe('limits', () => {
  test('a created call counts as one request of its key, a failed one as none', async () => {
    const app = await testApp()
    const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
    const { key } = await app.key({ limits, allowedModels: ['gpt-5.5'] })
    const create = () => app.ask(ROUTE, { body: OFFER, headers: { authorization: `Bearer ${key}` } })
    app.upstream.answerRelay(locatedAt(null))
    expect((await create()).status).toBe(503)
    app.upstream.answerRelay(null)
    const created = await create()
    expect(created.status).toBe(201)
    await created.text()
    expect(await getCode(await create())).toEqual([429, 'rate_limit_exceeded'])
  })
})

describe('the binding', () => {
  const call = (app: Awaited<ReturnType<typeof setup>>) => ({ keyId: app.key.row.id, callId: 'rtc_kept' })

  test('survives a restart, and ends after two hours', async () => {
    const app = await setup()
    app.upstream.answerRelay(locatedAt('/v1/realtime/calls/rtc_kept'))
    await (await app.create()).text()
    await app.app.restart()
    const at = (ms: number) => accountOfCall(app.db, call(app), app.clock.now() + ms)
    expect(await at(7_199_999)).toBe(app.members[0]?.id ?? '')
    expect(await at(7_200_000)).toBeNull()
  })

  test('is deleted by the retention job when it has expired, and not before', async () => {
    const app = await setup()
    await (await app.create()).text()
    await app.clock.advance(7_100_000)
    await runRetention(app.app)
    expect(await bound(app.app)).toHaveLength(1)
    await app.clock.advance(100_000)
    await runRetention(app.app)
    expect(await bound(app.app)).toEqual([])
  })

  test('stores neither the call id nor the key', async () => {
    const app = await setup()
    app.upstream.answerRelay(locatedAt('/v1/realtime/calls/rtc_kept'))
    await (await app.create()).text()
    const stored = JSON.stringify([await bound(app.app), await app.app.rows(), await app.app.attemptRows(), app.lines])
    for (const secret of ['rtc_kept', app.key.key, SDP]) expect(stored).not.toContain(secret)
  })
})
