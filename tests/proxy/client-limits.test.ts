/** The limits that clients see: in headers and events of requests, and the same in every usage document. */
import { describe, expect, test } from 'bun:test'
import { DAY_MS, HOUR_MS } from '../../src/lib/durations.ts'
import { codexBody, getAnswer, type TestApp, type TestOptions, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import type { AccountOptions } from '../support/upstream/accounts.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const START = (await testApp({ accounts: 0 })).clock.now()

const window = (usedPercent: number, windowMinutes: number, afterMs: number) => ({
  usedPercent,
  windowMinutes,
  resetAt: START + afterMs,
})
/** A Plus account (capacity 225 and 7560) and a Pro account (1500 and 50400). */
const PLUS: AccountOptions = {
  plan: 'plus',
  usage: { primary: window(92, 300, HOUR_MS), secondary: window(50, 10_080, 3 * DAY_MS) },
}
const PRO: AccountOptions = {
  plan: 'pro',
  usage: { primary: window(0, 300, HOUR_MS / 2), secondary: window(20, 10_080, 2 * DAY_MS) },
}
const POOL = [PLUS, PRO]

/** Every account has reported its usage, as after a poll. */
const known = async (options: TestOptions): Promise<TestApp> => {
  const app = await testApp(options)
  const { key } = await app.key()
  await app.ask('POST /api/fleet/refresh', { headers: { authorization: `Bearer ${key}` } })
  return app
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const getRateHeaders = (headers: Headers) =>
  Object.fromEntries([...headers].filter(([name]) => /^x-codex-(primary|secondary|monthly|credits|plan)/.test(name)))

const seconds = (afterMs: number) => String((START + afterMs) / 1000)

describe('headers of a request show the pool', () => {
  const EXPECTED = {
    'x-codex-primary-used-percent': '12',
    'x-codex-primary-window-minutes': '300',
    'x-codex-primary-reset-at': seconds(HOUR_MS),
    'x-codex-secondary-used-percent': '24',
    'x-codex-secondary-window-minutes': '10080',
    'x-codex-secondary-reset-at': seconds(2 * DAY_MS),
  }

  test.each([
    [NATIVE, codexBody()],
    ['POST /v1/responses', { model: 'gpt-5.5', input: 'hello' }],
    ['POST /v1/responses', { model: 'gpt-5.5', input: 'hello', stream: true }],
    ['POST /v1/chat/completions', { model: 'gpt-5.5', messages: [{ role: 'user', content: 'hello' }] }],
    ['POST /backend-api/codex/responses/compact', { model: 'gpt-5.5', input: [], instructions: 'x' }],
  ])('%s %#: weighted by capacity, with the earliest reset that frees something', async (route, json) => {
    const app = await known({ accounts: POOL })
    const answer = await getAnswer(app, route, { json, headers: bearer((await app.key()).key) })
    expect(answer.status).toBe(200)
    expect(getRateHeaders(answer.headers)).toMatchObject(EXPECTED)
    expect(answer.headers.has('x-codex-plan-type')).toBe(false)
  })

  test('only the accounts of the key count', async () => {
    const app = await known({ accounts: POOL })
    const { key } = await app.key({ assignedAccountIds: [app.members[1]!.id] })
    const { headers } = await getAnswer(app, NATIVE, { json: codexBody(), headers: bearer(key) })
    expect(getRateHeaders(headers)).toMatchObject({
      'x-codex-primary-used-percent': '0',
      'x-codex-secondary-used-percent': '20',
    })
  })

  test('a rejected request has them too', async () => {
    const used = { primary: window(100, 300, HOUR_MS), secondary: window(50, 10_080, DAY_MS) }
    const app = await known({ accounts: [{ usage: used }] })
    const { status, headers } = await getAnswer(app, NATIVE, { json: codexBody() })
    expect([status, headers.get('x-codex-primary-used-percent')]).toEqual([429, '100'])
  })

  test('a new report is shown immediately, one with the same whole percent within a second', async () => {
    const app = await known({ accounts: [PRO] })
    const ask = async () =>
      (await getAnswer(app, NATIVE, { json: codexBody() }, 0)).headers.get('x-codex-secondary-used-percent')
    expect(await ask()).toBe('20')
    app.members[0]?.sim.setUsage({ ...PRO.usage, secondary: window(33, 10_080, DAY_MS) })
    expect(await ask()).toBe('33')
    const before = app.bindings.clientLimits.forScope(null)
    expect(app.bindings.clientLimits.forScope(null)).toBe(before)
    app.bindings.pool.observe(app.members[0]!.id, {
      at: app.clock.now(),
      windows: app.bindings.pool.all()[0]!.usage!.windows,
      credits: app.bindings.pool.all()[0]!.usage!.credits,
      planType: null,
    })
    expect(app.bindings.clientLimits.forScope(null)).toBe(before)
    await app.clock.advance('1s')
    expect(app.bindings.clientLimits.forScope(null)).not.toBe(before)
  })

  test('a percentage that rounds to 100 is shown as 99 until the window is used up', async () => {
    const app = await known({ accounts: [{ usage: { primary: window(99.7, 300, HOUR_MS) } }] })
    const { headers } = await getAnswer(app, NATIVE, { json: codexBody() })
    expect(headers.get('x-codex-primary-used-percent')).toBe('99')
  })
})

describe('an account reserved for its owner', () => {
  test.each(['pool', 'account'] as const)('is used up for all keys but theirs (%s)', async (clientRateLimits) => {
    const app = await known({ accounts: [PRO], settings: { clientRateLimits } })
    const [ada, bob] = [await people(app).add({ username: 'ada' }), await people(app).add({ username: 'bob' })]
    const { id } = app.members[0]!
    Object.assign(app.bindings.pool.get(id)!, { maxUsedPercentSecondary: 10, exemptOwnerId: ada.row.id })
    const getLimits = async (ownerUserId: string | null) => {
      const { key } = await app.key({ ownerUserId })
      const { rate_limit } = await (await app.ask('GET /wham/usage', { headers: bearer(key) })).json()
      return [rate_limit.allowed, rate_limit.limit_reached]
    }
    const rows = [
      await getLimits(ada.row.id),
      await getLimits(bob.row.id),
      await getLimits(null),
      await getLimits(ada.row.id),
    ]
    expect(rows).toEqual([
      [true, false],
      [false, true],
      [false, true],
      [true, false],
    ])
    const view = app.bindings.clientLimits
    expect([view.forAccount(id, ada.row.id)?.allowed, view.forAccount(id)?.allowed]).toEqual([true, false])
  })
})

const BUSY: AccountOptions = {
  plan: 'plus',
  usage: { primary: window(60, 300, HOUR_MS), secondary: window(50, 10_080, DAY_MS) },
}

describe('setting clientRateLimits', () => {
  const ask = async (options: TestOptions, input = {}) => {
    const app = await known({ accounts: [BUSY, { ...PRO, plan: 'plus' }], ...options })
    await app.prefer(app.members[0]!.id)
    for (const { sim } of app.members) sim.always({ rateLimitsEvent: true })
    const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers: bearer((await app.key(input)).key) })
    const event = answer.events.find(({ type }) => type === 'codex.rate_limits')
    const limits = event?.rate_limits as { primary: { used_percent: number } } | undefined // as: checked by the tests
    expect(answer.text).not.toContain('plan_type')
    return {
      header: answer.headers.get('x-codex-primary-used-percent'),
      event: limits?.primary.used_percent,
      headers: getRateHeaders(answer.headers),
    }
  }

  test('pool: headers and event show the pool', async () => {
    expect(await ask({})).toMatchObject({ header: '30', event: 30 })
  })

  test('account: both show the account that served', async () => {
    expect(await ask({ settings: { clientRateLimits: 'account' } })).toMatchObject({ header: '60', event: 60 })
  })

  test('hidden: neither is sent', async () => {
    expect(await ask({ settings: { clientRateLimits: 'hidden' } })).toEqual({
      header: null,
      event: undefined,
      headers: {},
    })
  })

  test.each(['pool', 'account'] as const)('%s: hideUpstreamQuotaFromApiKeys hides all from keys', async (mode) => {
    const settings = { clientRateLimits: mode, hideUpstreamQuotaFromApiKeys: true }
    expect(await ask({ settings })).toEqual({ header: null, event: undefined, headers: {} })
  })

  test('a key with limits of its own shows those', async () => {
    const limits = [
      { limitType: 'requests', limitWindow: '5h', maxValue: 4, modelFilter: '' },
      { limitType: 'total_tokens', limitWindow: 'weekly', maxValue: 1_000_000_000, modelFilter: '' },
    ] as const
    const { headers, event } = await ask({}, { limits })
    expect(headers).toMatchObject({
      'x-codex-primary-used-percent': '0',
      'x-codex-primary-window-minutes': '300',
      'x-codex-secondary-used-percent': '0',
    })
    expect(event).toBe(0)
  })
})

describe('consistent figures', () => {
  const DOCUMENTS = ['/api/codex/usage', '/api/codex/usage/', '/wham/usage', '/backend-api/wham/usage']

  test.each<[string, AccountOptions[]]>([
    ['a fresh pool', [{}]],
    ['a mixed pool', POOL],
    [
      'a pool that is used up',
      [{ usage: { primary: window(100, 300, HOUR_MS), secondary: window(40, 10_080, DAY_MS) } }],
    ],
    ['a free account', [{ plan: 'free', usage: { secondary: window(7, 10_080, DAY_MS) } }]],
  ])('%s: headers, every usage document and /v1/usage agree', async (_name, accounts) => {
    const app = await known({ accounts })
    const headers = bearer((await app.key()).key)
    const answer = await getAnswer(app, NATIVE, { json: codexBody(), headers }, 0)
    const documents = []
    for (const path of DOCUMENTS) documents.push(await (await app.ask(`GET ${path}`, { headers })).json())
    const [document] = documents
    for (const other of documents) expect(other).toEqual(document)
    const { primary_window: primary, secondary_window: secondary } = document.rate_limit
    const usedIn = (slot: string) => answer.headers.get(`x-codex-${slot}-used-percent`)
    expect([usedIn('primary'), usedIn('secondary')]).toEqual([
      primary && String(primary.used_percent),
      secondary && String(secondary.used_percent),
    ])
    const usage = await (await app.ask('GET /v1/usage', { headers })).json()
    const left = usage.account_pool_usage
    expect(primary?.used_percent ?? null).toBe(left?.primary == null ? null : Math.round(100 - left.primary))
    expect(secondary?.used_percent ?? null).toBe(left?.secondary == null ? null : Math.round(100 - left.secondary))
    expect(answer.status === 200).toBe(document.rate_limit.allowed)
    expect(document.rate_limit.limit_reached).toBe(!document.rate_limit.allowed)
  })

  test('a key with its own limits: the use of a request shows everywhere after it', async () => {
    const app = await known({ accounts: POOL })
    const limits = [
      { limitType: 'requests', limitWindow: 'daily', maxValue: 4, modelFilter: '' },
      { limitType: 'requests', limitWindow: 'monthly', maxValue: 10, modelFilter: '' },
      { limitType: 'requests', limitWindow: '7d', maxValue: 2, modelFilter: 'gpt-6-astra' },
    ] as const
    const headers = bearer((await app.key({ limits: [...limits] })).key)
    for (let n = 0; n < 3; n++) await getAnswer(app, NATIVE, { json: codexBody(), headers })
    const document = await (await app.ask('GET /wham/usage', { headers })).json()
    expect(document).toMatchObject({
      plan_type: 'api_key',
      rate_limit: {
        allowed: true,
        limit_reached: false,
        primary_window: { used_percent: 75, limit_window_seconds: 86_400 },
        secondary_window: null,
        monthly_window: { used_percent: 30 },
      },
      additional_rate_limits: [{ limit_name: 'gpt-6-astra', rate_limit: { secondary_window: { used_percent: 0 } } }],
    })
    const fourth = await getAnswer(app, NATIVE, { json: codexBody(), headers })
    expect([fourth.status, fourth.headers.get('x-codex-primary-used-percent')]).toEqual([200, '75'])
    const fifth = await getAnswer(app, NATIVE, { json: codexBody(), headers })
    expect([fifth.status, fifth.headers.get('x-codex-primary-used-percent')]).toEqual([429, '100'])
    const after = await (await app.ask('GET /wham/usage', { headers })).json()
    expect(after.rate_limit).toMatchObject({ allowed: false, limit_reached: true })
  })
})
