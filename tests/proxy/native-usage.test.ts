/**
 * Usage and reset credits in the native format: for keys, and for owners who prove their account with its ChatGPT
 * token.
 */
import { describe, expect, test } from 'bun:test'
import { DAY_MS, HOUR_MS } from '../../src/lib/durations.ts'
import { statusAndCode } from '../spec/problems.ts'
import { type TestApp, type TestOptions, testApp } from '../support/app.ts'
import type { AccountOptions } from '../support/upstream/accounts.ts'

const USAGE = ['/api/codex/usage', '/api/codex/usage/', '/wham/usage', '/backend-api/wham/usage']
const CREDITS = ['/wham/rate-limit-reset-credits', '/backend-api/wham/rate-limit-reset-credits']
const CONSUME = 'POST /api/codex/rate-limit-reset-credits/consume'
const START = (await testApp({ accounts: 0 })).clock.now()

const getUsage = (usedPercent: number) => ({
  primary: { usedPercent, windowMinutes: 300, resetAt: START + HOUR_MS },
  secondary: { usedPercent, windowMinutes: 10_080, resetAt: START + DAY_MS },
})
const TWO: AccountOptions[] = [
  { plan: 'plus', usage: getUsage(100) },
  { plan: 'plus', usage: getUsage(20) },
]

const known = async (options: TestOptions = { accounts: TWO }): Promise<TestApp> => {
  const app = await testApp(structuredClone(options)) // redeeming changes the usage
  await app.ask('POST /api/fleet/refresh', { headers: { authorization: `Bearer ${(await app.key()).key}` } })
  return app
}

type Sim = TestApp['members'][0]['sim']
const owner = (sim: Sim, token = sim.accessToken) => ({
  authorization: `Bearer ${token}`,
  'chatgpt-account-id': sim.chatgptAccountId,
})
const [first, second] = [0, 1].map((n) => (app: TestApp) => app.members[n]!) as [Pick, Pick] // as: two of two
type Pick = (app: TestApp) => TestApp['members'][0]

const proofs = ({ upstream }: TestApp, token: string): number =>
  upstream.requests.filter(({ headers }) => headers.authorization === `Bearer ${token}`).length

describe('usage for a key', () => {
  test.each(USAGE)('GET %s shows the pool and never a plan', async (path) => {
    const app = await known()
    const response = await app.ask(`GET ${path}`, { headers: { authorization: `Bearer ${(await app.key()).key}` } })
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        plan_type: 'api_key',
        rate_limit: {
          allowed: true,
          limit_reached: false,
          primary_window: {
            used_percent: 60,
            limit_window_seconds: 18_000,
            reset_after_seconds: 3600,
            reset_at: (START + HOUR_MS) / 1000,
          },
          secondary_window: {
            used_percent: 60,
            limit_window_seconds: 604_800,
            reset_after_seconds: 86_400,
            reset_at: (START + DAY_MS) / 1000,
          },
          monthly_window: null,
        },
        credits: {
          has_credits: false,
          unlimited: false,
          balance: '0',
          approx_local_messages: null,
          approx_cloud_messages: null,
        },
        rate_limit_reset_credits: { available_count: 0 },
        additional_rate_limits: [],
      },
    ])
  })

  test('allowed becomes false with the last account that can serve', async () => {
    const app = await known()
    const { key } = await app.key()
    const read = async () =>
      (await (await app.ask('GET /wham/usage', { headers: { authorization: `Bearer ${key}` } })).json()).rate_limit
    expect(await read()).toMatchObject({ allowed: true, limit_reached: false })
    second(app).sim.setUsage(getUsage(100))
    await app.clock.advance('11s')
    await app.ask('POST /api/fleet/refresh', { headers: { authorization: `Bearer ${key}` } })
    expect(await read()).toMatchObject({ allowed: false, limit_reached: true, primary_window: { used_percent: 100 } })
  })

  test.each([{ hideUpstreamQuotaFromApiKeys: true }, { clientRateLimits: 'hidden' as const }])(
    'hidden by %j: nothing of the pool, but the limits of the key',
    async (settings) => {
      const app = await known({ accounts: TWO, settings })
      const read = async (key: string) =>
        (await app.ask('GET /wham/usage', { headers: { authorization: `Bearer ${key}` } })).json()
      expect(await read((await app.key()).key)).toMatchObject({ plan_type: 'api_key', rate_limit: null, credits: null })
      const limits = [{ limitType: 'requests', limitWindow: '5h', maxValue: 4, modelFilter: '' }] as const
      expect(await read((await app.key({ limits: [...limits] })).key)).toMatchObject({
        rate_limit: { primary_window: { used_percent: 0 } },
      })
    },
  )

  test.each([...USAGE, ...CREDITS])('GET %s without a key or token is 401', async (path) => {
    const app = await testApp()
    const none: Record<string, string>[] = [{}, { authorization: 'Bearer sk-clb-wrong' }, { 'chatgpt-account-id': 'x' }]
    for (const headers of none)
      expect(await statusAndCode(path, await app.ask(`GET ${path}`, { headers }))).toEqual([401, 'invalid_api_key'])
    expect(app.upstream.requests).toEqual([])
  })

  test('everything else under /wham is 404 in the OpenAI format', async () => {
    const app = await testApp()
    for (const path of ['/wham', '/wham/accounts/check', '/wham/rate-limit-reset-credits/consume'])
      expect(await statusAndCode(path, await app.ask(`GET ${path}`))).toEqual([404, 'not_found'])
  })
})

describe('usage for the owner of an account', () => {
  test.each(USAGE)('GET %s: the pool, with the true plan', async (path) => {
    const app = await known()
    const response = await app.ask(`GET ${path}`, { headers: owner(first(app).sim) })
    expect(await response.json()).toMatchObject({
      plan_type: 'plus',
      rate_limit: { allowed: true, limit_reached: false, primary_window: { used_percent: 60 } },
    })
  })

  test.each([
    ['pooledUsageForOwners is off', { pooledUsageForOwners: false }],
    ['the pool is hidden', { clientRateLimits: 'hidden' as const }],
  ])('%s: only the account', async (_name, settings) => {
    const app = await known({ accounts: TWO, settings })
    const response = await app.ask('GET /wham/usage', { headers: owner(first(app).sim) })
    expect(await response.json()).toMatchObject({
      plan_type: 'plus',
      rate_limit: { allowed: false, limit_reached: true, primary_window: { used_percent: 100 } },
    })
  })

  test('one proof lasts five minutes, for this token only', async () => {
    const app = await known()
    const { sim } = first(app)
    const read = async () => (await app.ask('GET /wham/usage', { headers: owner(sim) })).status
    const before = proofs(app, sim.accessToken)
    for (let n = 0; n < 20; n++) expect(await read()).toBe(200)
    expect(proofs(app, sim.accessToken) - before).toBe(1)
    await app.clock.advance('299s')
    expect(await read()).toBe(200)
    expect(proofs(app, sim.accessToken) - before).toBe(1)
    await app.clock.advance('2s')
    expect(await read()).toBe(200)
    expect(proofs(app, sim.accessToken) - before).toBe(2)
  })

  test('eight wrong tokens a minute and client are checked, then 429', async () => {
    const app = await known()
    const { sim } = first(app)
    const guess = (n: number, peer?: string) =>
      app.ask('GET /wham/usage', { headers: owner(sim, `eyJwrong${n}`), ...(peer && { peer }) })
    for (let n = 0; n < 8; n++) expect((await guess(n)).status).toBe(401)
    const seen = app.upstream.requests.length
    const ninth = await guess(8)
    expect([ninth.status, ninth.headers.get('retry-after')]).toEqual([429, '60'])
    expect((await app.ask('GET /wham/usage', { headers: owner(sim) })).status).toBe(429)
    expect(app.upstream.requests.length).toBe(seen)
    expect((await guess(9, '::1')).status).toBe(401)
    await app.clock.advance('61s')
    expect((await app.ask('GET /wham/usage', { headers: owner(sim) })).status).toBe(200)
  })

  test('only eight of a hundred parallel guesses reach ChatGPT', async () => {
    const app = await known()
    const seen = app.upstream.requests.length
    const guesses = Array.from({ length: 100 }, (_, n) =>
      app.ask('GET /api/codex/usage', { headers: owner(first(app).sim, `eyJguess${n}`) }),
    )
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(8)
    expect(statuses.filter((status) => status === 429)).toHaveLength(92)
    expect(app.upstream.requests.length - seen).toBe(8)
  })

  test('valid tokens use up none of the eight', async () => {
    const app = await known({ accounts: Array.from({ length: 12 }, () => ({ usage: getUsage(5) })) })
    for (const { sim } of app.members)
      expect((await app.ask('GET /wham/usage', { headers: owner(sim) })).status).toBe(200)
  })

  test.each<[string, (app: TestApp) => Record<string, string>]>([
    ['an account that is not in the pool', (app) => owner(app.upstream.addAccount())],
    ['the token of another account', (app) => ({ ...owner(first(app).sim), ...getToken(second(app).sim) })],
    [
      'another user of the workspace',
      (app) => {
        const body = { user_id: 'user-other', email: 'other@example.com', plan_type: 'team' }
        first(app).sim.next({ on: 'usage', status: 200, body })
        return owner(first(app).sim)
      },
    ],
    [
      'a usage document without a user',
      (app) => {
        first(app).sim.next({ on: 'usage', status: 200, body: { plan_type: 'team' } })
        return owner(first(app).sim)
      },
    ],
  ])('%s proves nothing', async (_name, headersFor) => {
    const app = await known()
    const response = await app.ask('GET /wham/usage', { headers: headersFor(app) })
    expect(await statusAndCode('/wham', response)).toEqual([401, 'invalid_api_key'])
  })

  test('while ChatGPT fails it is 503, and no guess is charged', async () => {
    const app = await known()
    const { sim } = first(app)
    for (let n = 0; n < 10; n++) {
      sim.next({ status: 500, on: 'usage' })
      const response = await app.ask('GET /wham/usage', { headers: owner(sim) })
      expect(await statusAndCode('/wham', response)).toEqual([503, 'upstream_unreachable'])
    }
    expect((await app.ask('GET /wham/usage', { headers: owner(sim) })).status).toBe(200)
  })

  test('with the capability header a key is required', async () => {
    const app = await known()
    const headers = { ...owner(first(app).sim), 'x-codex-lb-required-capability': 'trusted_cyber' }
    expect(await statusAndCode('/wham', await app.ask('GET /wham/usage', { headers }))).toEqual([
      401,
      'invalid_api_key',
    ])
  })

  test('a remote client is rejected while keys are not required', async () => {
    const app = await known()
    const headers = owner(first(app).sim)
    expect((await app.ask('GET /wham/usage', { headers, peer: '192.0.2.1' })).status).toBe(401)
    await app.change({ apiKeyAuthEnabled: true })
    expect((await app.ask('GET /wham/usage', { headers, peer: '192.0.2.1' })).status).toBe(200)
  })

  test('owning an account gives no permission for model requests', async () => {
    const app = await known({ accounts: TWO, settings: { apiKeyAuthEnabled: true } })
    const response = await app.ask('POST /backend-api/codex/responses', { json: {}, headers: owner(first(app).sim) })
    expect(response.status).toBe(401)
  })
})

const getToken = (sim: Sim) => ({ authorization: `Bearer ${sim.accessToken}` })

describe('reset credits of the owner', () => {
  const withCredits = async () => {
    const app = await known()
    for (const [n, { sim }] of app.members.entries())
      sim.setResetCredits([
        { id: `late-${n}`, expiresAt: START + 9 * DAY_MS, grantedAt: START - DAY_MS },
        { id: `soon-${n}`, expiresAt: START + DAY_MS, grantedAt: START - DAY_MS },
      ])
    return app
  }

  test.each(CREDITS)('GET %s lists those of the proved account', async (path) => {
    const app = await withCredits()
    const response = await app.ask(`GET ${path}`, { headers: owner(second(app).sim) })
    expect(await response.json()).toMatchObject({
      available_count: 2,
      credits: [{ id: 'late-1', status: 'available', reset_type: 'codex_rate_limits' }, { id: 'soon-1' }],
    })
    const usage = await app.ask('GET /wham/usage', { headers: owner(second(app).sim) })
    expect(await usage.json()).toMatchObject({ rate_limit_reset_credits: { available_count: 2 } })
  })

  test.each([...CREDITS.map((path) => `GET ${path}`), CONSUME, `${CONSUME}/`])(
    '%s: a key is not enough',
    async (route) => {
      const app = await withCredits()
      const json = route.startsWith('GET') ? undefined : { redeem_request_id: 'one' }
      const response = await app.ask(route, { json, headers: { authorization: `Bearer ${(await app.key()).key}` } })
      expect(response.status).toBe(401)
      expect((await response.json()).error.message).toStartWith('ChatGPT authentication required')
    },
  )

  test.each([CONSUME, `${CONSUME}/`])(
    '%s redeems the one that expires first, once for each request id',
    async (route) => {
      const app = await withCredits()
      const headers = owner(first(app).sim)
      const redeem = async (id: string) => {
        const response = await app.ask(route, { headers, json: { redeem_request_id: id } })
        return [response.status, await response.json()]
      }
      expect(await redeem('one')).toEqual([200, { code: 'reset', windows_reset: 2 }])
      expect(await redeem('one')).toEqual([200, { code: 'reset', windows_reset: 2 }])
      const states = first(app).sim.resetCredits.map(({ id, status = 'available' }) => [id, status])
      expect(states).toEqual([
        ['late-0', 'available'],
        ['soon-0', 'redeemed'],
      ])
      const rows = app.sqlite.query("SELECT 1 FROM audit_logs WHERE event = 'reset_credit_redeemed'").all()
      expect(rows).toHaveLength(1)
    },
  )

  test.each([
    ['blank', { redeem_request_id: ' ' }, 'redeem_request_id'],
    ['missing', {}, 'redeem_request_id'],
    ['another member', { redeem_request_id: 'one', account_id: 'x' }, 'account_id'],
  ])('a body with %s is 400 and names it', async (_name, json, param) => {
    const app = await withCredits()
    const response = await app.ask(CONSUME, { headers: owner(first(app).sim), json })
    expect([response.status, (await response.json()).error.param]).toEqual([400, param])
    expect(app.upstream.requests.map(({ method }) => method)).not.toContain('POST')
  })
})
