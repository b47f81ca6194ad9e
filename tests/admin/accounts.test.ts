/** `/api/accounts`: importing accounts, their availability and its reasons, changing and removing them. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { onChange } from '../../db/commit.ts'
import { auditLogs } from '../../db/schema/system.ts'
import { findMatchingAccount } from '../../src/model/accounts/account-intake.ts'
import { parseAuthJson } from '../../src/model/accounts/auth-json.ts'
import { describeAccounts } from '../../src/proxy/pool/describe.ts'
import { publicModels, store } from '../spec/catalog.ts'
import { codexBody, type TestApp, type TestOptions, testApp } from '../support/app.ts'
import { people } from '../support/people.ts'
import { getPlans } from '../support/query-plans.ts'
import { unsignedJwt } from '../support/upstream/tokens.ts'

const anApp = async (options: TestOptions = {}) => {
  const app = await testApp(options)
  return {
    ...app,
    events: async () =>
      (await app.db.select().from(auditLogs).all()).map(({ event }) => event).slice(app.members.length),
  }
}

const body = async (response: Response | Promise<Response>) => {
  const settled = await response
  // biome-ignore lint/suspicious/noExplicitAny: a test reads whatever was answered
  return { status: settled.status, body: (await settled.json()) as any }
}

const upload = (app: TestApp, files: Record<string, string>) => {
  const form = new FormData()
  for (const [name, text] of Object.entries(files)) form.append('auth_json', new File([text], name))
  return body(sendForm(app, form))
}

const sendForm = async (app: TestApp, form: FormData) => {
  const request = new Request('http://localhost', { method: 'POST', body: form })
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  return app.ask('POST /api/accounts/import', { body: await request.arrayBuffer(), headers })
}

const authJson = (app: TestApp, email: string): string => {
  const sim = app.upstream.addAccount({ email, plan: 'pro' })
  return sim.authJson()
}

describe('import', () => {
  test('of one file returns its account', async () => {
    const app = await anApp({ accounts: 0 })
    const answer = await upload(app, { 'auth.json': authJson(app, 'ada@example.test') })
    expect(answer).toEqual({
      status: 200,
      body: {
        accountId: expect.stringMatching(/^acc_/),
        email: 'ada@example.test',
        workspaceId: null,
        workspaceLabel: null,
        seatType: null,
        planType: 'pro',
        status: 'active',
        tokensKept: false,
      },
    })
    expect(app.bindings.pool.all()).toHaveLength(1)
    expect(await app.events()).toEqual(['account_imported'])
  })

  test('of several files keeps the valid ones and names the others', async () => {
    const app = await anApp({ accounts: 0 })
    const { status, body: answer } = await upload(app, {
      'one.json': authJson(app, 'one@example.test'),
      'two.json': '{"tokens":{}}',
      'three.json': authJson(app, 'three@example.test'),
    })
    expect(status).toBe(200)
    expect(answer.accounts.map(({ email }: { email: string }) => email)).toEqual([
      'one@example.test',
      'three@example.test',
    ])
    expect(answer.failures).toEqual([{ file: 'two.json', message: 'two.json has no access_token.' }])
  })

  test('of many accounts reads the table once for each memory view, not once per batch', async () => {
    const app = await anApp({ accounts: 0 })
    let announced = 0
    onChange(app.db, async (topics) => {
      if (topics.has('accounts')) announced++
    })
    const files = Array.from({ length: 35 }, (_, n) => [`${n}.json`, authJson(app, `a${n}@example.test`)])
    let isDone = false
    const answer = upload(app, Object.fromEntries(files)).finally(() => {
      isDone = true
    })
    while (!isDone) await app.clock.advance(5)
    expect((await answer).status).toBe(200)
    expect(app.bindings.pool.all()).toHaveLength(35)
    expect(announced).toBe(1)
  })

  test('announces what was stored when it fails partway', async () => {
    const app = await anApp({ accounts: 0 })
    const files = Array.from({ length: 15 }, (_, n) => [`${n}.json`, authJson(app, `a${n}@example.test`)])
    let isDone = false
    const answer = upload(app, Object.fromEntries(files)).finally(() => {
      isDone = true
    })
    const full =
      "CREATE TRIGGER full BEFORE INSERT ON accounts WHEN (SELECT count(*) FROM accounts) >= 10 BEGIN SELECT RAISE(ABORT, 'full'); END"
    app.sqlite.run(full)
    while (!isDone) await app.clock.advance(5)
    expect((await answer).status).toBe(500)
    expect(app.bindings.pool.all()).toHaveLength(10)
  })

  test('finds the account of a file through an index', async () => {
    const app = await anApp({ accounts: 0 })
    const identity = parseAuthJson(authJson(app, 'ada@example.test'), 'a').identity
    const seats = [identity, { ...identity, chatgptAccountId: null }, { ...identity, chatgptUserId: null }]
    for (const seat of seats)
      expect(await getPlans(app.sqlite, /accounts/, () => findMatchingAccount(app.db, seat))).toEqual([
        expect.stringContaining('SEARCH accounts USING INDEX accounts_seat'),
      ])
  })

  test('without a valid file is rejected, naming each file and the reason', async () => {
    const app = await anApp({ accounts: 0 })
    const { status, body: answer } = await upload(app, { 'a.json': 'x', 'b.json': '{}' })
    expect(status).toBe(400)
    expect(answer.error).toMatchObject({ code: 'invalid_auth_json', param: 'a.json' })
    expect(answer.error.message).toContain('a.json is not valid JSON')
    expect(answer.error.message).toContain('b.json has no tokens')
    expect(await app.events()).toEqual([])
  })

  test('without the field, or without a form, says what to send', async () => {
    const app = await anApp({ accounts: 0 })
    const other = new FormData()
    other.append('file', new File(['{}'], 'auth.json'))
    expect((await body(sendForm(app, other))).body.error).toMatchObject({
      code: 'invalid_auth_json',
      param: 'auth_json',
    })
    expect(await body(app.ask('POST /api/accounts/import', { json: {} }))).toMatchObject({ status: 400 })
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const broken = app.ask('POST /api/accounts/import', { body: 'garbage', headers })
    expect(await body(broken)).toMatchObject({ status: 400, body: { error: { code: 'invalid_auth_json' } } })
  })

  test('over 32 MiB is rejected', async () => {
    const app = await anApp({ accounts: 0 })
    const { status, body: answer } = await upload(app, { 'auth.json': ' '.repeat(33 * 1024 * 1024) })
    expect([status, answer.error.code]).toEqual([413, 'payload_too_large'])
  })

  test('of a known account replaces its tokens instead of adding it again', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    app.bindings.pool.apply(id, { kind: 'auth_failed', at, code: 'refresh_token_reused', evidence: 'seen' })
    sim.signInAgain()
    const { body: answer } = await upload(app, { 'auth.json': sim.authJson() })
    expect(answer).toMatchObject({ accountId: id, status: 'active', tokensKept: false })
    expect(app.bindings.proxyDeps.credentials.fresh(id)).toMatchObject({ accessToken: sim.accessToken })
  })

  test('of an account that was paused and then lost its tokens leaves it paused', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const url = `/api/accounts/${id}`
    const { credentials } = app.bindings.proxyDeps
    await app.ask(`POST ${url}/pause`)
    app.sqlite.run("UPDATE accounts SET refresh_token_sealed = replace(refresh_token_sealed, '.', '-')")
    await credentials.reload()
    await Promise.resolve(credentials.fresh(id)).catch(() => {})
    await app.clock.advance(0)
    expect(await body(app.ask(`POST ${url}/reactivate`))).toMatchObject({
      status: 409,
      body: { error: { code: 'account_state_transition_invalid' } },
    })
    const { body: answer } = await upload(app, { 'auth.json': sim.authJson() })
    expect(answer).toMatchObject({ accountId: id, status: 'paused', tokensKept: false })
    expect(app.bindings.pool.get(id)?.state.status).toBe('paused')
    expect((await app.ask(`POST ${url}/reactivate`)).status).toBe(200)
    expect(app.bindings.pool.get(id)?.state.status).toBe('active')
  })

  test('of a file older than the last refresh leaves the tokens unchanged and says so', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const old = sim.authJson()
    await app.clock.advance('1h')
    await app.bindings.proxyDeps.credentials.refresh(id, sim.accessToken)
    const { body: answer } = await upload(app, { 'auth.json': old })
    expect(answer).toMatchObject({ accountId: id, status: 'active', tokensKept: true })
    expect(app.bindings.proxyDeps.credentials.fresh(id)).toMatchObject({ accessToken: sim.accessToken })
  })

  test('requires a local client', async () => {
    const app = await anApp({ accounts: 0 })
    expect((await app.ask('POST /api/accounts/import', { peer: '203.0.113.9' })).status).toBe(401)
  })
})

describe('the account list', () => {
  const list = async (app: TestApp) => (await body(app.ask('GET /api/accounts'))).body.accounts

  test('shows usage as the remaining share, and that the account would be selected', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    app.bindings.pool.observe(id, {
      at,
      planType: 'plus',
      credits: { hasCredits: true, unlimited: false, balance: 5 },
      windows: {
        fiveHour: { usedPercent: 25, windowMinutes: 300, resetAt: at + 60_000 },
        weekly: { usedPercent: 90, windowMinutes: 10_080, resetAt: at - 1 },
        monthly: null,
      },
    })
    expect(await list(app)).toMatchObject([
      {
        accountId: id,
        email: sim.email,
        status: 'active',
        eligible: true,
        why: null,
        usage: { primaryRemainingPercent: 75, secondaryRemainingPercent: 100, monthlyRemainingPercent: null },
        resetAtPrimary: new Date(at + 60_000).toISOString(),
        windowMinutesSecondary: 10_080,
        capacityCreditsPrimary: 225,
        remainingCreditsPrimary: 168.75,
        creditsHas: true,
        creditsBalance: 5,
        isEmailDuplicate: false,
      },
    ])
  })

  test('shows no past reset, on the pages either', async () => {
    const app = await anApp({ accounts: 1 })
    const { id } = app.members[0]!
    const at = app.clock.now()
    const weekly = { usedPercent: 90, windowMinutes: 10_080, resetAt: at + 60_000 }
    const windows = { fiveHour: null, weekly, monthly: null }
    app.bindings.pool.observe(id, { at, planType: 'plus', credits: null, windows })
    app.bindings.pool.apply(id, { kind: 'pause', at })
    await app.clock.advance('3d')
    expect(await list(app)).toMatchObject([{ usage: { secondaryRemainingPercent: 100 }, resetAtSecondary: null }])
    const page = await app.ask(`GET /accounts/${id}`, { headers: { accept: 'text/html' } })
    expect(await page.text()).not.toContain(' · resets ')
  })

  test('says why an account is unavailable, and until when', async () => {
    const app = await anApp({ accounts: 2 })
    const [first, second] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
    const at = app.clock.now()
    const refusal = { at, evidence: '429 usage_limit_reached', resetAt: at + 60_000, retryAfterMs: null }
    app.bindings.pool.apply(first.id, { kind: 'rate_limited', ...refusal, cause: 'usage_limit_reached' })
    app.bindings.pool.apply(second.id, { kind: 'pause', at })
    expect(await list(app)).toMatchObject([
      {
        status: 'rate_limited',
        eligible: false,
        why: 'Usage limit reached',
        state: {
          cause: 'usage_limit_reached',
          evidence: '429 usage_limit_reached',
          since: new Date(at).toISOString(),
          until: new Date(at + 60_000).toISOString(),
        },
      },
      { status: 'paused', eligible: false, why: 'Paused' },
    ])
  })

  test('shows a block without a known end by its next check, on its page too', async () => {
    const app = await anApp({ accounts: 1 })
    const { id } = app.members[0]!
    const at = app.clock.now()
    const refusal = { at, evidence: '429 rate_limit_exceeded', resetAt: null, retryAfterMs: null }
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal })
    const nextCheckAt = new Date(at + 60_000).toISOString()
    expect(await list(app)).toMatchObject([{ status: 'rate_limited', state: { until: null, nextCheckAt } }])
    const getPage = async (path: string) => (await app.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
    expect(await getPage(`/accounts/${id}`)).toContain('unknown; next check')
    for (const path of ['/accounts', '/dashboard']) expect(await getPage(path)).toContain('next check')
    expect((await getPage('/dashboard')).match(/next check/g)).toHaveLength(2)
  })

  test('never contains a token', async () => {
    const app = await anApp({ accounts: 1 })
    const text = JSON.stringify(await list(app))
    const { sim } = app.members[0]!
    for (const token of [sim.accessToken, sim.refreshToken]) expect(text).not.toContain(token)
    expect(text).not.toMatch(/sealed|eyJ/i)
  })

  test('shows what each account has served since it was added, according to the log', async () => {
    const app = await anApp({ accounts: 2 })
    const [busy, idle] = app.members.map(({ id }) => id) as [string, string]
    await app.prefer(busy)
    const none = { requestCount: 0, totalTokens: 0, cachedInputTokens: 0, totalCostUsd: 0 }
    const usage = async () =>
      Object.fromEntries(
        (await list(app)).map((one: { accountId: string; requestUsage: object }) => [one.accountId, one.requestUsage]),
      )
    expect(await usage()).toEqual({ [busy]: none, [idle]: none })
    for (const text of ['one', 'two'])
      await (await app.ask('POST /backend-api/codex/responses', { json: codexBody(text) })).text()
    const rows = await app.rows()
    const sum = (of: (row: (typeof rows)[0]) => number | null) => rows.reduce((total, row) => total + (of(row) ?? 0), 0)
    expect(sum(({ costMicros }) => costMicros)).toBeGreaterThan(0)
    expect(await usage()).toEqual({
      [busy]: {
        requestCount: 2,
        totalTokens: sum(({ inputTokens }) => inputTokens) + sum(({ outputTokens }) => outputTokens),
        cachedInputTokens: sum(({ cachedInputTokens }) => cachedInputTokens),
        totalCostUsd: sum(({ costMicros }) => costMicros) / 1e6,
      },
      [idle]: none,
    })
    await app.ask(`DELETE /api/accounts/${busy}`)
    expect(await usage()).toEqual({ [idle]: none })
  })

  test('lists additional quotas under the upstream’s names and ours', async () => {
    const app = await anApp({ accounts: 1 })
    const at = app.clock.now()
    const window = (usedPercent: number, resetAt: number) => ({ usedPercent, windowMinutes: 300, resetAt })
    const spark = { limitName: 'GPT-5.3-Codex-Spark', meteredFeature: 'codex_bengalfox' }
    app.bindings.pool.observe(app.members[0]!.id, {
      at,
      planType: 'pro',
      credits: null,
      windows: { fiveHour: null, weekly: null, monthly: null },
      additional: [
        { ...spark, primary: window(40, at + 60_000), secondary: window(90, at - 1) },
        { limitName: 'Code Review', meteredFeature: null, primary: null, secondary: null },
      ],
    })
    expect((await list(app))[0].additionalQuotas).toEqual([
      {
        ...spark,
        quotaKey: 'codex_spark',
        displayLabel: 'GPT-5.3-Codex-Spark',
        routingPolicy: 'inherit',
        primaryWindow: { usedPercent: 40, resetAt: at / 1000 + 60, windowMinutes: 300 },
        secondaryWindow: { usedPercent: 0, resetAt: Math.floor((at - 1) / 1000), windowMinutes: 300 },
      },
      {
        limitName: 'Code Review',
        meteredFeature: null,
        quotaKey: 'code_review',
        displayLabel: 'Code Review',
        routingPolicy: 'inherit',
        primaryWindow: null,
        secondaryWindow: null,
      },
    ])
  })

  test('shows how long the tokens are valid, only to users who work with accounts', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ auth, limitWarmupEnabled, limitWarmup }] = await list(app)
    expect(auth).toEqual({
      access: { expiresAt: expect.stringMatching(/^2026-\d\d-\d\dT.*Z$/), state: 'valid' },
      refresh: { expiresAt: null, state: 'unknown' },
      idToken: expect.objectContaining({ state: expect.stringMatching(/^(valid|unknown)$/) }),
    })
    expect([limitWarmupEnabled, limitWarmup]).toEqual([false, null])
    const { as } = people(app)
    const seenBy = async (role: string) => (await body((await as(role)).ask('GET /api/accounts'))).body.accounts[0].auth
    expect([await seenBy('viewer'), (await seenBy('operator')).access.state]).toEqual([null, 'valid'])
  })

  test('gives users who see masked names no version that could confirm a guessed name', async () => {
    const app = await anApp({ accounts: 1 })
    const { as } = people(app)
    const path = `PATCH /api/accounts/${app.members[0]!.id}`
    const versionFor = async (role: string, alias: string) => {
      await (await as('operator')).ask(path, { json: { alias } })
      return (await body((await as(role)).ask('GET /api/accounts'))).body.accounts[0].version
    }
    for (const [role, isTold] of [
      ['viewer', false],
      ['operator', true],
    ] as const) {
      const [one, other] = [await versionFor(role, 'grace@example.test'), await versionFor(role, 'gwen@example.test')]
      expect([role, one !== other]).toEqual([role, isTold])
    }
  })
})

describe('whether an account would be selected', () => {
  const views = async (app: TestApp, settings: Parameters<TestApp['change']>[0] = {}) => {
    await app.change(settings)
    const { pool, settings: cache } = app.bindings
    return describeAccounts(pool, { now: app.clock.now(), settings: cache.current() })
  }

  test('an account with a lower preference is available; one that is not the selected single account is not', async () => {
    const app = await anApp({ accounts: 2 })
    const [first] = app.members as [(typeof app.members)[0]]
    app.bindings.pool.health(first.id, { kind: 'error', at: app.clock.now(), evidence: '500' })
    app.bindings.pool.health(first.id, { kind: 'error', at: app.clock.now(), evidence: '500' })
    expect((await views(app)).map(({ eligible }) => eligible)).toEqual([true, true])
    const single = await views(app, { routingStrategy: 'single_account', singleAccountId: first.id })
    expect(single).toMatchObject([
      { eligible: true },
      { eligible: false, why: 'Excluded by its routing policy or the strategy' },
    ])
  })

  test('a block whose time is over counts as ended, even before it is cleared', async () => {
    const app = await anApp({ accounts: 1 })
    const at = app.clock.now()
    const refusal = { at, evidence: 'seen', resetAt: at + 1000, retryAfterMs: null }
    app.bindings.pool.apply(app.members[0]!.id, { kind: 'rate_limited', ...refusal })
    expect(await views(app)).toMatchObject([{ status: 'rate_limited', eligible: false }])
    await app.clock.advance('1s')
    expect(await views(app)).toMatchObject([{ status: 'active', eligible: true, why: null, until: null }])
  })

  test('an account at its limit of parallel requests says so', async () => {
    const app = await anApp({ accounts: 1 })
    app.bindings.pool.all()[0]!.inFlight = 8
    expect(await views(app)).toMatchObject([{ eligible: false, why: 'At its limit of parallel requests', inFlight: 8 }])
  })
})

describe('changes', () => {
  test.each([
    ['POST', '/pause', undefined, { status: 'paused' }, 'account_paused'],
    ['PUT', '/alias', { alias: '  Work ' }, { alias: 'Work' }, 'account_updated'],
    ['PUT', '/routing-policy', { routingPolicy: 'burn_first' }, { routingPolicy: 'burn_first' }, 'account_updated'],
    ['PATCH', '', { securityWorkAuthorized: true }, { status: 'updated' }, 'account_updated'],
    ['DELETE', '', undefined, { status: 'deleted' }, 'account_deleted'],
  ] as const)('%s %s %j', async (method, path, json, expected, event) => {
    const app = await anApp({ accounts: 1 })
    const url = `/api/accounts/${app.members[0]!.id}${path}`
    expect(await body(app.ask(`${method} ${url}`, { json }))).toMatchObject({ status: 200, body: expected })
    expect(await app.events()).toEqual([event])

    const unknown = await body(app.ask(`${method} /api/accounts/acc_unknown${path}`, { json }))
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: 'account_not_found' } } })
    expect((await app.ask(`${method} ${url}`, { json, peer: '203.0.113.9' })).status).toBe(401)
    expect(await app.events()).toEqual([event])
  })

  test.each([
    ['PUT', '/alias', {}],
    ['PUT', '/alias', { alias: 'x'.repeat(256) }],
    ['PUT', '/routing-policy', { routingPolicy: 'always' }],
    ['PATCH', '', { securityWorkAuthorized: 'yes' }],
    ['PATCH', '', { status: 'active' }],
  ])('%s %s rejects %j', async (method, path, json) => {
    const app = await anApp({ accounts: 1 })
    const refused = await body(app.ask(`${method} /api/accounts/${app.members[0]!.id}${path}`, { json }))
    expect(refused).toMatchObject({ status: 422, body: { error: { code: 'validation_error' } } })
  })

  test('that change nothing leave no trace, and neither does an account that was never unavailable', async () => {
    const app = await anApp({ accounts: 1 })
    const url = `/api/accounts/${app.members[0]!.id}`
    const strip = async () => {
      const overview = await app.ask('GET /dashboard', { headers: { accept: 'application/json' } })
      return JSON.stringify(await overview.json())
    }
    expect(await body(app.ask(`POST ${url}/reactivate`))).toMatchObject({
      status: 200,
      body: { status: 'reactivated' },
    })
    expect(await app.events()).toEqual([])
    expect(await strip()).not.toContain('blocked"')
    for (const verb of ['pause', 'pause', 'reactivate', 'reactivate'])
      expect((await app.ask(`POST ${url}/${verb}`)).status).toBe(200)
    expect(await app.events()).toEqual(['account_paused', 'account_reactivated'])
  })

  test('are recorded as what they changed, however many fields the form has', async () => {
    const app = await anApp({ accounts: 1 })
    const url = `/api/accounts/${app.members[0]!.id}`
    const form = { alias: 'Work', routingPolicy: 'normal', securityWorkAuthorized: false }
    for (const json of [{}, form, form, { ...form, alias: ' ' }, { alias: null }])
      expect((await app.ask(`PATCH ${url}`, { json })).status).toBe(200)
    expect(await body(app.ask(`PUT ${url}/alias`, { json: { alias: '' } }))).toMatchObject({ body: { alias: null } })
    const rows = await app.db.select().from(auditLogs).where(eq(auditLogs.event, 'account_updated')).all()
    expect(rows.map(({ details }) => details)).toEqual([{ alias: 'Work' }, { alias: null }])
  })

  test('take effect in the pool immediately', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id }] = app.members as [(typeof app.members)[0]]
    await app.ask(`POST /api/accounts/${id}/pause`)
    expect(app.bindings.pool.get(id)?.state.status).toBe('paused')
    await app.ask(`DELETE /api/accounts/${id}`)
    expect(app.bindings.pool.get(id)).toBeNull()
  })

  test('a deletion removes models that no other account has from the list', async () => {
    const app = await anApp({ accounts: 2 })
    const [kept, gone] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
    await store(app, kept.id, [{ slug: 'common' }])
    await store(app, gone.id, [{ slug: 'common' }, { slug: 'rare' }])
    const listed = async () => (await publicModels(app)).map(({ id }) => id)
    expect(await listed()).toEqual(['common', 'rare'])
    await app.ask(`DELETE /api/accounts/${gone.id}`)
    expect(await listed()).toEqual(['common'])
    await app.ask(`DELETE /api/accounts/${kept.id}`)
    expect(await listed()).toEqual([])
  })

  test('of an account that needs sign-in are rejected', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    app.bindings.pool.apply(id, { kind: 'auth_failed', at, code: 'token_invalidated', evidence: 'seen' })
    await app.clock.advance(0)
    for (const action of ['pause', 'reactivate'])
      expect(await body(app.ask(`POST /api/accounts/${id}/${action}`))).toMatchObject({
        status: 409,
        body: { error: { code: 'account_state_transition_invalid' } },
      })
  })

  test('a deletion removes the log only when requested', async () => {
    const app = await anApp({ accounts: 2 })
    const [kept, gone] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
    const row = (id: string, accountId: string) =>
      app.sqlite.run(
        `INSERT INTO requests (id, request_id, started_at, route, kind, transport, account_id, moved, status, http_status, attempts, total_ms)
         VALUES ('${id}', '${id}', 1, '/v1/responses', 'normal', 'http', '${accountId}', 0, 'ok', 200, 1, 1)`,
      )
    row('one', kept.id)
    row('two', gone.id)
    await app.ask(`DELETE /api/accounts/${kept.id}`)
    await app.ask(`DELETE /api/accounts/${gone.id}?delete_history=true`)
    await app.clock.advance(1)
    expect(app.sqlite.query('SELECT id FROM requests').values()).toEqual([['one']])
  })
})

test('a deletion with the log keeps the hourly totals', async () => {
  const app = await anApp({ accounts: 1 })
  const { id } = app.members[0]!
  await (await app.ask('POST /backend-api/codex/responses', { json: codexBody() })).text()
  await app.bindings.ledger.flush()
  const sums = () =>
    app.sqlite.query('SELECT account_id, requests, input_tokens, cost_micros FROM request_hours').values()
  const before = sums()
  expect(before).toEqual([[id, 1, expect.any(Number), expect.any(Number)]])
  await app.ask(`DELETE /api/accounts/${id}?delete_history=true`)
  await app.clock.advance(1)
  expect(await app.rows()).toEqual([])
  expect(sums()).toEqual(before)
})

describe('a probe', () => {
  const probe = (app: TestApp, id: string, json: unknown = {}) =>
    body(app.ask(`POST /api/accounts/${id}/probe`, { json }))

  test('is one small request, after which the usage is known', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const resetAt = app.clock.now() + 3_600_000
    sim.setUsage({ primary: { usedPercent: 12, windowMinutes: 300, resetAt } })
    expect(await probe(app, id, { model: 'gpt-5.5' })).toEqual({
      status: 200,
      body: {
        status: 'probed',
        served: true,
        accountId: id,
        probeStatusCode: 200,
        primaryUsedPercentBefore: null,
        primaryUsedPercentAfter: 12,
        secondaryUsedPercentBefore: null,
        secondaryUsedPercentAfter: null,
        accountStatusBefore: 'active',
        accountStatusAfter: 'active',
      },
    })
    expect(app.upstream.oddities).toEqual([])
    expect(await app.events()).toEqual(['account_probed'])
  })

  test('that succeeds ends a block', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    const refusal = { at, evidence: 'seen', resetAt: at + 3_600_000, retryAfterMs: null }
    app.bindings.pool.apply(id, { kind: 'rate_limited', ...refusal })
    const { body: answer } = await probe(app, id)
    expect(answer).toMatchObject({ accountStatusBefore: 'rate_limited', accountStatusAfter: 'active' })
  })

  test.each([
    ['a refusal', { status: 429 }, 429],
    ['a broken connection', { reset: true }, 0],
    ['a failure inside the stream', { failAfterCreated: { code: 'rate_limit_exceeded', message: 'No.' } }, 200],
  ])('that fails with %s does not end a block', async (_, fault, status) => {
    const app = await anApp({ accounts: 1 })
    const [{ id, sim }] = app.members as [(typeof app.members)[0]]
    const at = app.clock.now()
    app.bindings.pool.apply(id, { kind: 'rate_limited', at, evidence: 'seen', resetAt: null, retryAfterMs: null })
    sim.next(fault)
    sim.always({ on: 'usage', status: 400 })
    expect((await probe(app, id)).body).toMatchObject({ probeStatusCode: status, accountStatusAfter: 'rate_limited' })
  })

  test('of an account that is not in use is rejected, and of an unknown one not found', async () => {
    const app = await anApp({ accounts: 1 })
    const [{ id }] = app.members as [(typeof app.members)[0]]
    app.bindings.pool.apply(id, { kind: 'pause', at: app.clock.now() })
    expect(await probe(app, id)).toMatchObject({ status: 409, body: { error: { code: 'account_not_probable' } } })
    expect(await probe(app, 'acc_unknown')).toMatchObject({ status: 404 })
  })
})

test('an ID token with a hostile address is harmless', async () => {
  const app = await anApp({ accounts: 0 })
  const id_token = unsignedJwt({ email: '<script>alert(1)</script>@x' })
  const file = JSON.stringify({ tokens: { id_token, access_token: 'a', refresh_token: 'r' } })
  expect((await upload(app, { 'auth.json': file })).status).toBe(200)
})
