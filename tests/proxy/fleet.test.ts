/** `/api/fleet` for companion tools: scope of the key, masked addresses, hidden quota, activity and refresh. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { users } from '../../db/schema/people.ts'
import { DAY_MS, HOUR_MS } from '../../src/lib/durations.ts'
import { dashboardProblem } from '../spec/problems.ts'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'

const START = (await testApp({ accounts: 0 })).clock.now()
const ROUTES = ['GET /api/fleet/summary', 'GET /api/fleet/observability', 'POST /api/fleet/refresh']
const usage = () => ({
  primary: { usedPercent: 30, windowMinutes: 300, resetAt: START + HOUR_MS },
  secondary: { usedPercent: 10, windowMinutes: 10_080, resetAt: START + DAY_MS },
})
const open = () =>
  testApp({
    accounts: [
      { email: 'ada.lovelace@example.com', plan: 'plus', usage: usage() },
      { email: 'grace.hopper@example.com', plan: 'pro', usage: usage() },
    ],
  })

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const read = async (app: TestApp, route: string, key: string) => {
  const response = await app.ask(route, { headers: bearer(key) })
  expect(response.status).toBe(200)
  return response.json()
}

describe.each(ROUTES)('%s', (route) => {
  test('needs a key, also on this machine, and answers in the dashboard’s error format', async () => {
    const app = await open()
    for (const headers of [{}, bearer('sk-clb-wrong')]) {
      const response = await app.ask(route, { headers })
      expect([response.status, (await dashboardProblem(response)).code]).toEqual([401, 'invalid_api_key'])
    }
    expect(app.upstream.requests).toEqual([])
  })
})

describe('GET /api/fleet/summary', () => {
  test('lists the accounts with the remaining share of their windows', async () => {
    const app = await open()
    const { key } = await app.key()
    await read(app, 'POST /api/fleet/refresh', key)
    const { accounts } = await read(app, 'GET /api/fleet/summary', key)
    expect(accounts).toHaveLength(2)
    expect(accounts[0]).toEqual({
      accountId: app.members[0]!.id,
      displayName: 'a***@example.com',
      email: 'a***@example.com',
      status: 'active',
      planType: 'plus',
      primary: { remainingPercent: 70, resetAt: new Date(START + HOUR_MS).toISOString(), windowMinutes: 300 },
      secondary: { remainingPercent: 90, resetAt: new Date(START + DAY_MS).toISOString(), windowMinutes: 10_080 },
      lastRefreshAt: expect.any(String),
      usageRefreshedAt: new Date(START).toISOString(),
    })
  })

  test('a key sees its own accounts only', async () => {
    const app = await open()
    const { key } = await app.key({ assignedAccountIds: [app.members[1]!.id] })
    const { accounts } = await read(app, 'GET /api/fleet/summary', key)
    expect(accounts.map(({ accountId }: { accountId: string }) => accountId)).toEqual([app.members[1]!.id])
  })

  test.each([
    ['admin', true],
    ['operator', true],
    ['viewer', false],
    [null, false],
  ] as const)('the key of %p sees full email addresses: %p', async (role, isWhole) => {
    const app = await open()
    const ownerUserId = role && (await people(app).as(role)).person.row.id
    const { key } = await app.key({ ownerUserId })
    for (const route of ['GET /api/fleet/summary', 'GET /api/fleet/observability']) {
      await getAnswer(app, 'POST /backend-api/codex/responses', {
        json: codexBody('hi', { prompt_cache_key: 'talk' }),
        headers: bearer(key),
      })
      await app.bindings.ledger.flush()
      const text = JSON.stringify(await read(app, route, key))
      expect([route, /ada\.lovelace|grace\.hopper/.test(text)]).toEqual([route, isWhole])
    }
  })

  test('an owner who loses the permission loses the addresses', async () => {
    const app = await open()
    const { person } = await people(app).as('operator')
    const { key } = await app.key({ ownerUserId: person.row.id })
    const email = async () => (await read(app, 'GET /api/fleet/summary', key)).accounts[0].email
    expect(await email()).toBe('ada.lovelace@example.com')
    await commit(app.db, (tx) =>
      tx.update(users).set({ roleId: 'role_viewer' }).where(eq(users.id, person.row.id)).run(),
    )
    expect(await email()).toBe('a***@example.com')
  })

  test.each([
    ['a key without one of the sections', { usageSections: 'upstream_limits' }, {}],
    ['hideUpstreamQuotaFromApiKeys', {}, { hideUpstreamQuotaFromApiKeys: true }],
    ['clientRateLimits hidden', {}, { clientRateLimits: 'hidden' as const }],
  ])('%s: no usage', async (_name, input, settings) => {
    const app = await open()
    await app.change(settings)
    const { key } = await app.key(input as Parameters<TestApp['key']>[0]) // as: the sections are text in the table
    await read(app, 'POST /api/fleet/refresh', key)
    const { accounts } = await read(app, 'GET /api/fleet/summary', key)
    expect(accounts[0]).toMatchObject({ primary: null, secondary: null, usageRefreshedAt: null, status: 'active' })
  })
})

describe('GET /api/fleet/observability', () => {
  const requestBy = (app: TestApp, key: string, userAgent: string, more = {}) =>
    getAnswer(app, 'POST /backend-api/codex/responses', {
      json: codexBody('hi', more),
      headers: { ...bearer(key), 'user-agent': userAgent },
    })

  test('counts requests, errors and conversations, by account, kind and client', async () => {
    const app = await open()
    const { key } = await app.key()
    await requestBy(app, key, 'codex_exec/0.169.0 (Linux)', { prompt_cache_key: 'talk' })
    await requestBy(app, key, 'codex_exec/0.140.0 (Linux)', { prompt_cache_key: 'talk' })
    for (const { sim } of app.members)
      sim.always({ status: 400, body: { error: { message: 'Not for ada.lovelace', code: 'not_for_you', type: null } } })
    await requestBy(app, key, 'OpenAI/JS 7.55.0')
    await app.bindings.ledger.flush()
    const { available, source, generatedAt, pressure, sticky } = await read(app, 'GET /api/fleet/observability', key)
    expect([available, source, generatedAt]).toEqual([
      true,
      'request_log',
      app.clock.now() === START ? new Date(START).toISOString() : expect.any(String),
    ])
    expect(pressure.windows.map(({ key }: { key: string }) => key)).toEqual(['30m', '2h'])
    const [half] = pressure.windows
    expect(half).toMatchObject({
      label: 'Last 30 minutes',
      seconds: 1800,
      requestCount: 3,
      errorCount: 1,
      cancelledCount: 0,
      truncated: false,
      topErrorCode: 'not_for_you',
      byKind: [{ name: 'normal', requestKind: 'normal', requestCount: 3 }],
      byClient: [
        { name: 'codex_exec', clientGroup: 'codex_exec', requestCount: 2 },
        { name: 'OpenAI', requestCount: 1 },
      ],
    })
    expect(half.outputTokens).toBeGreaterThan(0)
    expect(half.byAccount[0]).toMatchObject({
      label: expect.stringMatching(/^[ag]\*\*\*@example.com$/),
      lastSelectedAt: expect.any(String),
    })
    expect(sticky).toMatchObject({ available: true, staleCount: 0, staleThresholdSeconds: 2_592_000, truncated: false })
    expect(sticky.total).toBe(sticky.recentCount)
    expect(sticky.byAccount[0].kinds.conversation).toBe(1)
    expect(JSON.stringify([pressure, sticky])).not.toContain('Not for')
  })

  test('a window ends where it says, and warm-ups do not count', async () => {
    const app = await open()
    const { key } = await app.key()
    await requestBy(app, key, 'codex_exec/1')
    await requestBy(app, key, 'codex_exec/1')
    const [row] = await app.rows()
    app.sqlite.run(`UPDATE requests SET kind = 'warmup' WHERE id = '${row?.id}'`)
    await app.clock.advance(45 * 60_000)
    const { pressure } = await read(app, 'GET /api/fleet/observability', key)
    expect(pressure.windows.map(({ requestCount }: { requestCount: number }) => requestCount)).toEqual([0, 1])
  })

  test('a key sees the activity of its own accounts only', async () => {
    const app = await open()
    const all = (await app.key()).key
    await requestBy(app, (await app.key({ assignedAccountIds: [app.members[0]!.id] })).key, 'a/1', {
      prompt_cache_key: 'x',
    })
    await app.bindings.ledger.flush()
    const other = (await app.key({ assignedAccountIds: [app.members[1]!.id] })).key
    const { pressure, sticky } = await read(app, 'GET /api/fleet/observability', other)
    expect([pressure.windows[0].requestCount, sticky.total]).toEqual([0, 0])
    expect((await read(app, 'GET /api/fleet/observability', all)).pressure.windows[0].requestCount).toBe(1)
  })

  test('more than ten clients are truncated and marked', async () => {
    const app = await open()
    const { key } = await app.key()
    for (let n = 0; n < 12; n++) await requestBy(app, key, `client${n}/1`)
    await app.bindings.ledger.flush()
    const [half] = (await read(app, 'GET /api/fleet/observability', key)).pressure.windows
    expect([half.byClient.length, half.truncated, half.requestCount]).toEqual([10, true, 12])
  })
})

describe('POST /api/fleet/refresh', () => {
  test('reads the usage of the key’s accounts, at most once in ten seconds for each key', async () => {
    const app = await open()
    const { key } = await app.key({ assignedAccountIds: [app.members[0]!.id] })
    expect(await read(app, 'POST /api/fleet/refresh', key)).toEqual({
      ok: true,
      usageWritten: true,
      accountCount: 1,
      attemptedCount: 1,
      generatedAt: new Date(START).toISOString(),
    })
    expect(app.upstream.requests.map(({ path }) => path)).toEqual(['/backend-api/wham/usage'])
    const again = await app.ask('POST /api/fleet/refresh', { headers: bearer(key) })
    expect([again.status, again.headers.get('retry-after')]).toEqual([429, '10'])
    expect(await read(app, 'POST /api/fleet/refresh', (await app.key()).key)).toMatchObject({ attemptedCount: 2 })
    await app.clock.advance('10s')
    expect(await read(app, 'POST /api/fleet/refresh', key)).toMatchObject({ ok: true })
  })

  test('a failing account is counted, a paused one is not polled', async () => {
    const app = await open()
    const admin = await people(app).as('admin')
    await admin.ask(`POST /api/accounts/${app.members[1]!.id}/pause`)
    app.members[0]!.sim.next({ on: 'usage', status: 404 })
    expect(await read(app, 'POST /api/fleet/refresh', (await app.key()).key)).toMatchObject({
      ok: false,
      usageWritten: false,
      accountCount: 2,
      attemptedCount: 1,
    })
  })

  test('is rejected while draining', async () => {
    const app = await open()
    app.bindings.lifecycle.draining = true
    const response = await app.ask('POST /api/fleet/refresh', { headers: bearer((await app.key()).key) })
    expect([response.status, (await dashboardProblem(response)).code]).toEqual([503, 'draining'])
  })
})

/** What a menu bar tool does every minute: refresh, then show one line per account and one for the pool. */
test('a companion tool reads fleet and usage with one key', async () => {
  const app = await open()
  const { key } = await app.key()
  const get = (path: string) => read(app, `GET ${path}`, key)
  const tool = async () => {
    await read(app, 'POST /api/fleet/refresh', key)
    const { accounts } = await get('/api/fleet/summary')
    const { rate_limit: pool } = await get('/api/codex/usage')
    return [
      ...accounts.map(
        (account: { displayName: string; primary: { remainingPercent: number } }) =>
          `${account.displayName} ${account.primary.remainingPercent} %`,
      ),
      `pool ${100 - pool.primary_window.used_percent} %`,
    ]
  }
  expect(await tool()).toEqual(['a***@example.com 70 %', 'g***@example.com 70 %', 'pool 70 %'])
})
