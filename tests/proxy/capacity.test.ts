/** `GET /v1/capacity`: can work start, how long would it wait, and why. */
import { describe, expect, test } from 'bun:test'
import { AppError } from '../../src/errors.ts'
import type { NewKey } from '../../src/model/keys/key-input.ts'
import { fetchCatalogs } from '../spec/catalog.ts'
import { codexBody, getAnswer, type TestApp, type TestOptions, testApp } from '../support/app.ts'

const HOUR_MS = 3_600_000

interface Capacity {
  can_start: boolean
  account_available: boolean
  waits_seconds: number | null
  why: string | null
  pool: { five_hour_left_percent: number | null; weekly_left_percent: number | null; used_up_at: string | null } | null
  key: { limits: { limit_type: string; remaining_value: number }[] }
}

const open = async (options: TestOptions = {}, input: Partial<NewKey> = {}) => {
  const app = await testApp(options)
  const { key } = await app.key(input)
  const headers = { authorization: `Bearer ${key}` }
  const capacity = async (query = ''): Promise<Capacity> => {
    const response = await app.ask(`GET /v1/capacity${query}`, { headers })
    expect(response.status).toBe(200)
    return (await response.json()) as Capacity // as: its contract
  }
  return { app, headers, capacity }
}

const report = ({ bindings, clock, members }: TestApp, index: number, used: { fiveHour: number; weekly: number }) =>
  bindings.pool.observe(members[index]?.id ?? '', {
    at: clock.now(),
    windows: {
      fiveHour: { usedPercent: used.fiveHour, windowMinutes: 300, resetAt: clock.now() + 2 * HOUR_MS },
      weekly: { usedPercent: used.weekly, windowMinutes: 10_080, resetAt: clock.now() + 48 * HOUR_MS },
      monthly: null,
    },
    credits: null,
    planType: 'plus',
    additional: [],
  })

/** ChatGPT rejected a request on the account, which resets in two hours. */
const block = ({ bindings, clock, members }: TestApp, index: number) =>
  bindings.pool.apply(members[index]?.id ?? '', {
    kind: 'quota_exceeded',
    at: clock.now(),
    evidence: '429 usage_limit_reached',
    cause: 'usage_limit_reached',
    resetAt: clock.now() + 2 * HOUR_MS,
    retryAfterMs: null,
  })

describe('the pool', () => {
  test('work can start while an account is available', async () => {
    const { app, capacity } = await open({ accounts: 2 })
    report(app, 0, { fiveHour: 20, weekly: 40 })
    report(app, 1, { fiveHour: 60, weekly: 20 })
    expect(await capacity()).toEqual({
      can_start: true,
      account_available: true,
      waits_seconds: 0,
      why: null,
      pool: { five_hour_left_percent: 60, weekly_left_percent: 70, used_up_at: null },
      key: { limits: [] },
    })
  })

  test('the forecast says when it is used up at the current pace', async () => {
    const { app, capacity } = await open()
    report(app, 0, { fiveHour: 90, weekly: 20 })
    const { pool } = await capacity()
    const at = Date.parse(pool?.used_up_at ?? '')
    expect(at).toBeGreaterThan(app.clock.now())
    expect(at).toBeLessThan(app.clock.now() + 2 * HOUR_MS)
  })

  test('used up: it waits until the reset, and can start if the caller waits as long', async () => {
    const { app, headers, capacity } = await open()
    report(app, 0, { fiveHour: 100, weekly: 20 })
    block(app, 0)
    const first = await capacity()
    expect(first).toMatchObject({ can_start: false, account_available: false, waits_seconds: 7200 })
    expect((await capacity('?within=7199')).can_start).toBe(false)
    expect((await capacity('?within=7200')).can_start).toBe(true)
    const refused = await getAnswer(app, 'POST /v1/responses', { json: { model: 'gpt-5.5', input: 'hi' }, headers })
    expect(refused.status).toBe(429)
    expect(JSON.parse(refused.text).error.message).toBe(first.why)
  })

  test('an account that needs an operator does not come back by waiting', async () => {
    const { app, capacity } = await open()
    app.bindings.pool.apply(app.members[0]?.id ?? '', { kind: 'pause', at: app.clock.now() })
    expect(await capacity('?within=31622400')).toMatchObject({
      can_start: false,
      account_available: false,
      waits_seconds: null,
      why: expect.stringContaining('paused'),
    })
  })

  test('all accounts at their limit of parallel requests: try again in a moment', async () => {
    const { app, capacity } = await open({ settings: { proxyAccountStreamLimit: 1 } })
    app.members[0]?.sim.next({ silence: { afterEvents: 3 } })
    const held = await app.ask('POST /backend-api/codex/responses', { json: codexBody() })
    expect(await capacity()).toMatchObject({ can_start: false, account_available: false, waits_seconds: 5 })
    await held.body?.cancel()
    expect((await capacity()).can_start).toBe(true)
  })

  test('only the accounts of the key count, and nothing is sent to ChatGPT', async () => {
    const app = await testApp({ accounts: 2 })
    const [first, second] = app.members.map(({ id }) => id)
    report(app, 0, { fiveHour: 100, weekly: 100 })
    block(app, 0)
    report(app, 1, { fiveHour: 0, weekly: 10 })
    const seen = await Promise.all(
      [first, second].map(async (id) => {
        const { key } = await app.key({ assignedAccountIds: [id ?? ''] })
        const response = await app.ask('GET /v1/capacity', { headers: { authorization: `Bearer ${key}` } })
        const { can_start, pool } = (await response.json()) as Capacity // as: its contract
        return [can_start, pool?.weekly_left_percent]
      }),
    )
    expect(seen).toEqual([
      [false, 0],
      [true, 90],
    ])
    expect(app.upstream.requests).toEqual([])
  })

  test('a model that no account of the key offers', async () => {
    const app = await testApp({ accounts: [{ models: ['one'] }, { models: ['one', 'two'] }] })
    await fetchCatalogs(app)
    const { key } = await app.key({ assignedAccountIds: [app.members[0]?.id ?? ''] })
    const capacity = async (model: string) =>
      (await app.ask(`GET /v1/capacity?model=${model}`, { headers: { authorization: `Bearer ${key}` } })).json()
    expect(await capacity('one')).toMatchObject({ can_start: true })
    expect(await capacity('two')).toMatchObject({
      can_start: false,
      waits_seconds: null,
      why: expect.stringContaining("No account offers the model 'two'"),
    })
  })

  test.each([
    ['hidden by the setting', { settings: { hideUpstreamQuotaFromApiKeys: true } }, {}],
    ['hidden for every client', { settings: { clientRateLimits: 'hidden' } }, {}],
    ['hidden for the key', {}, { usageSections: 'upstream_limits' }],
  ] as [string, TestOptions, Partial<NewKey>][])('is %s', async (_how, options, input) => {
    const { app, capacity } = await open(options, input)
    report(app, 0, { fiveHour: 20, weekly: 40 })
    expect(await capacity()).toMatchObject({ can_start: true, pool: null })
  })
})

describe('the key', () => {
  test('a model it is not allowed to use', async () => {
    const { capacity } = await open({}, { allowedModels: ['one'] })
    expect(await capacity('?model=two')).toMatchObject({
      can_start: false,
      account_available: true,
      waits_seconds: null,
      why: 'This key is not allowed to use the model two.',
    })
  })

  test('the limit that resets last counts, and the pool beside the key', async () => {
    const limit = { limitType: 'requests', maxValue: 1, modelFilter: '' } as const
    const { app, headers, capacity } = await open(
      {},
      {
        limits: [
          { ...limit, limitWindow: '5h' },
          { ...limit, limitWindow: 'daily' },
        ],
      },
    )
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody(), headers })
    const { waits_seconds: seconds, why } = await capacity()
    expect(seconds).toBeGreaterThan(20 * 3600)
    expect(why).toContain('daily')
    app.bindings.pool.apply(app.members[0]?.id ?? '', { kind: 'pause', at: app.clock.now() })
    expect(await capacity(`?within=${seconds}`)).toMatchObject({ can_start: false, waits_seconds: null })
  })

  test('a Claude name is looked up as in /v1/messages', async () => {
    const app = await testApp({ accounts: [{ models: ['one'] }] })
    await fetchCatalogs(app)
    const { key } = await app.key({ allowedModels: ['one'] })
    const response = await app.ask('GET /v1/capacity?model=claude-opus-4-5', {
      headers: { authorization: `Bearer ${key}` },
    })
    expect(await response.json()).toMatchObject({ can_start: true, why: null })
  })

  test('the share of its owner is used up', async () => {
    const { app, capacity } = await open()
    app.bindings.shares.foresee = () => ({
      isBorrowing: true,
      error: new AppError('share_used_up', { retryAfterSeconds: 90 }),
    })
    expect(await capacity()).toMatchObject({ can_start: false, account_available: true, waits_seconds: 90 })
  })

  test('a limit that is used up, until it resets', async () => {
    const { app, headers, capacity } = await open(
      {},
      { limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 1, modelFilter: '' }] },
    )
    expect((await capacity()).can_start).toBe(true)
    await getAnswer(app, 'POST /backend-api/codex/responses', { json: codexBody(), headers })
    const after = await capacity()
    expect(after).toMatchObject({
      can_start: false,
      account_available: true,
      key: { limits: [{ remaining_value: 0 }] },
    })
    expect(after.waits_seconds).toBeGreaterThan(4 * 3600)
    expect((await capacity(`?within=${after.waits_seconds}`)).can_start).toBe(true)
  })

  test('tokens that do not fit into what is left, or into the limit at all', async () => {
    const { capacity } = await open(
      {},
      {
        limits: [
          { limitType: 'total_tokens', limitWindow: 'daily', maxValue: 1000, modelFilter: '' },
          { limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 1_000_000, modelFilter: '' },
        ],
      },
    )
    expect((await capacity('?tokens=1000')).can_start).toBe(true)
    expect(await capacity('?tokens=1001')).toMatchObject({
      can_start: false,
      waits_seconds: null,
      why: 'The API key total_tokens daily limit is smaller than this request needs.',
    })
    expect((await capacity('?model=gpt-5.5&tokens=900')).can_start).toBe(true)
  })

  test('the model it enforces counts, not the one asked for', async () => {
    const { capacity } = await open({}, { enforcedModel: 'one', allowedModels: ['one'] })
    expect((await capacity('?model=two')).can_start).toBe(true)
  })
})

test('a key is required, and wrong parameters are named', async () => {
  const { app, headers } = await open()
  expect((await app.ask('GET /v1/capacity')).status).toBe(401)
  for (const query of ['tokens=-1', 'tokens=many', 'within=1.5', 'model=', 'wait=5'])
    expect([query, (await app.ask(`GET /v1/capacity?${query}`, { headers })).status]).toEqual([query, 422])
})
