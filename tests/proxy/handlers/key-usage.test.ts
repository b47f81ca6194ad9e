/** Usage of a client's own key, which requires the key. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../../db/commit.ts'
import type { Bindings } from '../../../src/boot/bindings.ts'
import { type ResetCredit, ResetCredits } from '../../../src/model/accounts/reset-credits.ts'
import type { PooledAccount } from '../../../src/model/overview/pool-usage.ts'
import { listResetCredits, showKeyUsage } from '../../../src/proxy/handlers/key-usage.ts'
import { writeSettings } from '../../../src/settings/store.ts'
import { fewRoutes } from '../../support/few-routes.ts'
import { aKey, anAccountRow } from '../../support/keys.ts'
import { reserveAlone as reserve } from '../../support/reserve.ts'

const NOW = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

const anAccount = (id: string, over: Partial<PooledAccount> & { used?: number } = {}): PooledAccount => ({
  id,
  tags: [],
  planType: 'plus',
  state: { status: 'active' },
  usage: {
    at: NOW,
    credits: null,
    planType: 'plus',
    windows: {
      fiveHour: { usedPercent: over.used ?? 50, windowMinutes: 300, resetAt: NOW + HOUR_MS },
      weekly: { usedPercent: 10, windowMinutes: 10_080, resetAt: null },
      monthly: null,
    },
  },
  ...over,
})

const open = async (accounts: PooledAccount[] = []) => {
  const resetCredits = new ResetCredits()
  const pool = { all: () => accounts, canServe: () => true, revision: 0 } as unknown as Bindings['pool'] // as: only the accounts are used
  const mount: Parameters<typeof fewRoutes>[0] = (app) => {
    app.get('/v1/usage', ...showKeyUsage)
    app.get('/v1/reset-credit', ...listResetCredits)
  }
  return { ...(await fewRoutes(mount, { pool, resetCredits })), resetCredits }
}

const withKey = async (app: Awaited<ReturnType<typeof open>>, input: Record<string, unknown> = {}) => {
  const { key, row } = await aKey(app.db, input, { at: NOW })
  const usage = async () => (await app.ask('GET /v1/usage', { headers: { authorization: `Bearer ${key}` } })).body
  return { key, id: row.id, usage }
}

describe('GET /v1/usage', () => {
  test('shows totals and its own limits with the remaining amount', async () => {
    const app = await open()
    const { id, key, usage } = await withKey(app, {
      limits: [{ limitType: 'total_tokens', limitWindow: 'daily', maxValue: 100, modelFilter: 'strong' }],
    })
    const estimate = { model: 'strong', inputTokens: 70, outputTokens: 0, costMicros: 0 }
    reserve(app.keys.find(key)!, estimate, NOW).settle(estimate)
    reserve(app.keys.find(key)!, estimate, NOW)
    app.sqlite.run(
      `UPDATE api_keys SET request_count = 3, input_tokens = 70, cached_input_tokens = 20, output_tokens = 5, cost_micros = 1500000 WHERE id = '${id}'`,
    )
    const limit = {
      limit_type: 'total_tokens',
      limit_window: 'daily',
      max_value: 100,
      current_value: 70,
      remaining_value: 30,
    }
    expect(await usage()).toEqual({
      request_count: 3,
      total_tokens: 75,
      cached_input_tokens: 20,
      total_cost_usd: 1.5,
      limits: [{ ...limit, model_filter: 'strong', reset_at: '2026-01-02T00:00:00.000Z', source: 'api_key_limit' }],
      upstream_limits: [],
      account_pool_usage: null,
    })
  })

  test('without its own limits shows those of the pool, weighted by plan', async () => {
    const { usage } = await withKey(await open([anAccount('acc_1'), anAccount('acc_2', { planType: 'pro', used: 0 })]))
    const { limits, upstream_limits, account_pool_usage } = await usage()
    expect(limits).toEqual(upstream_limits)
    expect(limits).toMatchObject([
      {
        limit_type: 'credits',
        limit_window: '5h',
        max_value: 1725,
        current_value: 113,
        remaining_value: 1612,
        reset_at: '2026-01-01T01:00:00.000Z',
        source: 'aggregate',
      },
      { limit_window: '7d', max_value: 57_960, current_value: 5796, reset_at: null },
    ])
    expect(account_pool_usage).toEqual({ primary: 93.48, secondary: 90 })
  })

  test('counts the accounts in scope that are in use', async () => {
    const app = await open([
      anAccount('acc_1'),
      anAccount('acc_2'),
      anAccount('acc_3', { state: { status: 'paused' } }),
    ])
    await anAccountRow(app.db, 'acc_1')
    await anAccountRow(app.db, 'acc_3')
    const { usage } = await withKey(app, { assignedAccountIds: ['acc_1', 'acc_3'] })
    expect((await usage()).upstream_limits[0].max_value).toBe(225)
  })

  test('an account on a monthly quota counts there alone', async () => {
    const monthly = { usedPercent: 25, windowMinutes: 43_200, resetAt: null }
    const account = anAccount('acc_1', { planType: 'free' })
    account.usage!.windows.monthly = monthly
    const { usage } = await withKey(await open([account]))
    const { upstream_limits, account_pool_usage } = await usage()
    expect(upstream_limits.map((limit: { limit_window: string }) => limit.limit_window)).toEqual(['monthly'])
    expect(account_pool_usage).toEqual({ primary: null, secondary: 75 })
  })

  test('omits what the key cannot see', async () => {
    const { usage } = await withKey(await open([anAccount('acc_1')]), { usageSections: 'account_pool_usage' })
    expect(Object.keys(await usage())).toEqual(expect.arrayContaining(['limits', 'account_pool_usage']))
    expect(await usage()).toMatchObject({ limits: [] })
    expect(await usage()).not.toHaveProperty('upstream_limits')
  })

  test('omits the pool for every key when the quota is hidden', async () => {
    const app = await open([anAccount('acc_1')])
    const { usage } = await withKey(app)
    await commit(app.db, (tx) => writeSettings(tx, { hideUpstreamQuotaFromApiKeys: true }, { now: NOW }))
    const body = await usage()
    expect(body.limits).toEqual([])
    expect(body).not.toHaveProperty('upstream_limits')
    expect(body).not.toHaveProperty('account_pool_usage')
  })
})

describe.each(['GET /v1/usage', 'GET /v1/reset-credit'])('%s', (route) => {
  test('needs a key, local or not', async () => {
    const app = await open()
    const { status, body } = await app.ask(route)
    expect([status, body.error]).toEqual([
      401,
      {
        message: 'Missing API key in Authorization header',
        type: 'authentication_error',
        code: 'invalid_api_key',
        param: null,
      },
    ])
  })

  test('is answered with the capability header', async () => {
    const app = await open()
    const { key } = await withKey(app)
    const headers = { authorization: `Bearer ${key}`, 'x-codex-lb-required-capability': 'trusted_cyber' }
    expect((await app.ask(route, { headers })).status).toBe(200)
  })
})

describe('GET /v1/reset-credit', () => {
  const credit = (id: string, expiresAt: number | null = NOW + HOUR_MS, status = 'available') => ({
    id,
    status,
    expiresAt,
  })

  const asked = async (credits: Record<string, ResetCredit[]>, input: Record<string, unknown> = {}) => {
    const accounts = ['acc_1', 'acc_2'].map((id) => ({ ...anAccount(id), row: { email: `${id}@example.test` } }))
    const app = await open(accounts)
    for (const { id } of accounts) await anAccountRow(app.db, id)
    for (const [id, held] of Object.entries(credits)) app.resetCredits.set(id, held)
    const { key } = await withKey(app, input)
    return app.ask('GET /v1/reset-credit', { headers: { authorization: `Bearer ${key}` } })
  }

  const getIds = async (...given: Parameters<typeof asked>) =>
    (await asked(...given)).body.map(({ redeem_id }: { redeem_id: string }) => redeem_id)

  test('lists nothing while no credits are known', async () => {
    expect(await asked({})).toEqual({ status: 200, body: [] })
  })

  test('names account, credit and expiry', async () => {
    expect((await asked({ acc_1: [credit('c1')] })).body).toEqual([
      { account_id: 'acc_1', email: 'acc_1@example.test', redeem_id: 'c1', expiredAt: '2026-01-01T01:00:00.000Z' },
    ])
  })

  test('begins with the earliest expiry of any account; credits that never expire are last', async () => {
    const acc_1 = [credit('never', null), credit('late', NOW + 3 * HOUR_MS), credit('soon', NOW + HOUR_MS)]
    expect(await getIds({ acc_1, acc_2: [credit('between', NOW + 2 * HOUR_MS)] })).toEqual([
      'soon',
      'between',
      'late',
      'never',
    ])
  })

  test('omits credits that are redeemed, being redeemed or expired', async () => {
    const gone = [credit('a', null, 'redeemed'), credit('b', null, 'redeeming'), credit('c', NOW)]
    expect(await getIds({ acc_1: [...gone, credit('left')] })).toEqual(['left'])
  })

  test('omits accounts outside the scope of the key, and deleted ones', async () => {
    const credits = { acc_1: [credit('c1')], acc_2: [credit('c2')], acc_removed: [credit('c3')] }
    expect(await getIds(credits)).toEqual(['c1', 'c2'])
    expect(await getIds(credits, { assignedAccountIds: ['acc_2'] })).toEqual(['c2'])
  })
})
