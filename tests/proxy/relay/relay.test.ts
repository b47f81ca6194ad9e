/** The options of the relay, on routes made for the test: header sets, hard owners, retries, totals. */
import { describe, expect, test } from 'bun:test'
import { Hono } from 'hono'
import type { AppEnv } from '../../../src/boot/bindings.ts'
import type { RelayPlan } from '../../../src/proxy/relay/plan.ts'
import { admitRelay, type RelayRequest, readBodyFor, relay, turnRoute } from '../../../src/proxy/relay/relay.ts'
import { arrival, renderGatewayError } from '../../../src/routes/gateway.ts'
import { codexBody, expectNothingLeft, type TestApp, testApp } from '../../support/app.ts'
import { type Fault, faults } from '../../support/upstream/faults.ts'

type Options = Partial<Omit<RelayRequest, 'plan'>> & { plan?: Partial<RelayPlan> }

/** Sends to a relayed route with these options. */
const ask = (app: TestApp, { plan, ...options }: Options, headers: Record<string, string> = {}): Promise<Response> => {
  const request: RelayRequest = {
    kind: 'file',
    surface: 'file',
    isNative: true,
    path: '/codex/alpha/search',
    accept: 'application/json',
    model: null,
    headers: 'client',
    ...options,
    plan: { method: 'POST', contentType: 'application/json', timeoutMs: 60_000, retry: 'before-sent', ...plan },
  }
  const routes = new Hono<AppEnv>()
  routes.onError(renderGatewayError)
  routes.use(arrival)
  routes.post(
    '/v1/made-up',
    ...turnRoute(async (c) => relay(await admitRelay(c, request, await readBodyFor(c, request)))),
  )
  const sent = new Request('http://localhost:2455/v1/made-up', {
    method: 'POST',
    headers: { host: 'localhost:2455', 'content-type': 'application/json', ...headers },
    body: '{"a":1}',
  })
  return Promise.resolve(routes.fetch(sent, { ...app.bindings, peer: '127.0.0.1' }))
}

const getCode = async (response: Response) => ((await response.json()) as { error: { code: string } }).error.code
const always = (app: TestApp, fault: Fault) => {
  for (const { sim } of app.members) sim.always({ on: 'control', ...fault })
}

test('the smallest header set is authorization, account and user agent, beside what every request has', async () => {
  const app = await testApp()
  const headers = {
    'user-agent': 'codex/1',
    originator: 'codex_exec',
    'session-id': 's',
    'x-request-id': 'r',
    cookie: 'a=b',
  }
  await (await ask(app, { headers: 'smallest' }, headers)).text()
  const { host: _host, connection: _connection, ...sent } = app.upstream.requests[0]?.headers ?? {}
  expect(Object.keys(sent).toSorted()).toEqual(
    ['accept', 'accept-encoding', 'authorization', 'chatgpt-account-id', 'content-type', 'user-agent'].filter(
      (name) => name in sent,
    ),
  )
  expect(sent['user-agent']).toBe('codex/1')
  await expectNothingLeft(app)
})

describe('a hard owner', () => {
  const plan = (app: TestApp): Partial<RelayPlan> => ({ owner: { id: app.members[1]!.id, hard: true } })

  test('is the only account that is used', async () => {
    const app = await testApp({ accounts: 3 })
    for (let time = 0; time < 4; time++) await (await ask(app, { plan: plan(app) })).text()
    expect(new Set((await app.rows()).map(({ accountId }) => accountId))).toEqual(new Set([app.members[1]!.id]))
    always(app, faults.rateLimited())
    expect((await ask(app, { plan: plan(app) })).status).toBe(429)
    expect(app.upstream.requests).toHaveLength(5)
    await expectNothingLeft(app)
  })

  test('that is paused is 503 continuity_owner_unavailable', async () => {
    const app = await testApp({ accounts: 3 })
    await app.ask(`POST /api/accounts/${app.members[1]!.id}/pause`)
    expect(await getCode(await ask(app, { plan: plan(app) }))).toBe('continuity_owner_unavailable')
    expect(app.upstream.requests).toEqual([])
  })

  test('at its limit still serves requests without quota', async () => {
    const app = await testApp({ accounts: 3 })
    const at = app.clock.now()
    const limit = { at, evidence: '', resetAt: at + 3_600_000, retryAfterMs: null, cause: 'usage_limit_reached' }
    app.bindings.pool.apply(app.members[1]!.id, { kind: 'rate_limited', ...limit })
    expect((await ask(app, { plan: plan(app) })).status).toBe(200)
    expect((await ask(app, { surface: 'live', kind: 'live', plan: plan(app) })).status).toBe(429)
  })
})

describe('retries', () => {
  const refused = Object.assign(new Error('refused'), { code: 'ConnectionRefused' })

  test('never: a rejection is returned, and the token is not refreshed', async () => {
    const app = await testApp({ accounts: 2 })
    for (const [fault, status] of [
      [faults.rateLimited(), 429],
      [faults.unauthorized(), 502],
      [faults.serverError(), 500],
    ] as const) {
      always(app, fault)
      expect((await ask(app, { plan: { retry: 'never' } })).status).toBe(status)
    }
    expect(app.upstream.requests).toHaveLength(3)
    await expectNothingLeft(app)
  })

  test('before-sent: another account when no connection could be made', async () => {
    const app = await testApp({ accounts: 2 })
    let calls = 0
    app.wire.before = async () => {
      if (calls++ < 3) throw refused
    }
    const response = ask(app, {})
    for (let step = 0; step < 20; step++) await app.clock.advance(100)
    expect((await response).status).toBe(200)
    app.wire.before = null
  })

  test('with one account: its token is refreshed, and no other account is tried', async () => {
    const app = await testApp({ accounts: 2 })
    for (const { sim } of app.members) sim.expireAccessToken()
    expect((await ask(app, { plan: { maxAccounts: 1 } })).status).toBe(200)
    expect(app.upstream.requests.filter(({ path }) => path.endsWith('/search'))).toHaveLength(2)
    const limited = await testApp({ accounts: 2 })
    always(limited, faults.rateLimited())
    expect((await ask(limited, { plan: { maxAccounts: 1 } })).status).toBe(429)
    expect(limited.upstream.requests).toHaveLength(1)
  })
})

test.each([
  ['POST /backend-api/codex/alpha/search', 'control', { json: {} }],
  ['GET /backend-api/wham/agent-identities/jwks', 'control', {}],
  ['POST /v1/images/generations', 'image', { json: { prompt: 'a boat' } }],
  ['POST /backend-api/files', 'file', { json: { file_name: 'a.txt', file_size: 3, use_case: 'codex' } }],
] as const)('%s that rejects every token deactivates no account', async (route, on, sent) => {
  const app = await testApp({ accounts: 3 })
  for (const { sim } of app.members) sim.always({ on, ...faults.unauthorized() })
  const response = await app.ask(route, sent)
  expect([response.status, await getCode(response)]).toEqual([502, 'upstream_auth_failed'])
  expect(app.bindings.pool.all().map(({ state }) => state.status)).toEqual(['active', 'active', 'active'])
  expect((await app.ask('POST /backend-api/codex/responses', { json: codexBody() })).status).toBe(200)
})

test('a warm-up is logged, and is in no total and no limit', async () => {
  const app = await testApp()
  const limits = [{ limitType: 'requests' as const, limitWindow: 'daily' as const, maxValue: 1, modelFilter: '' }]
  const { key } = await app.key({ limits })
  for (let time = 0; time < 3; time++)
    await (await ask(app, { kind: 'warmup', surface: 'ping' }, { authorization: `Bearer ${key}` })).text()
  expect((await app.rows()).map(({ kind, status }) => [kind, status])).toEqual(
    Array.from({ length: 3 }, () => ['warmup', 'ok']),
  )
  expect(app.sqlite.query('SELECT count(*) AS n FROM request_hours').get()).toEqual({ n: 0 })
  expect(app.sqlite.query('SELECT count(*) AS n FROM account_totals').get()).toEqual({ n: 0 })
})
