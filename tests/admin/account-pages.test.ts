/** The account pages: list, order, details of one account, and what users with read-only access see. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { accountTotals } from '../../db/schema/accounts.ts'
import { accountEvents, usageSamples } from '../../db/schema/history.ts'
import { requestHours } from '../../db/schema/requests.ts'
import type { AccountProps } from '../../views/accounts/detail.tsx'
import type { AccountsProps } from '../../views/accounts/list.tsx'
import { type TestOptions, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { aRequestRow } from '../support/keys.ts'
import { type Browser, people, problem } from '../support/people.ts'

const HOUR_MS = 3_600_000

const NAMES = [
  { email: 'ada@example.test', plan: 'pro' },
  { email: 'grace@example.test', plan: 'plus' },
  { email: 'alan@example.test', plan: 'team' },
] as const

const open = async (options: TestOptions = { accounts: [...NAMES] }) => {
  const app = await testApp(options)
  const [ada = '', grace = '', alan = ''] = app.members.map(({ id }) => id)
  return { app, ada, grace, alan, ...people(app) }
}

const json = { headers: { accept: 'application/json' } }
const html = { headers: { accept: 'text/html' } }

const list = async (visitor: Browser, query = ''): Promise<AccountsProps> =>
  (await (await visitor.ask(`GET /accounts${query}`, json)).json()) as AccountsProps // as: the value of the page

const detail = async (visitor: Browser, id: string, query = ''): Promise<AccountProps> =>
  (await (await visitor.ask(`GET /accounts/${id}${query}`, json)).json()) as AccountProps // as: the value of the page

const emails = ({ accounts }: AccountsProps) => accounts.map(({ email }) => email.split('@')[0])

describe('the account list', () => {
  test('distinguishes two accounts with the same email without repeating the address', async () => {
    const seat = { email: 'ada@example.test', plan: 'plus' } as const
    const { app, as } = await open({ accounts: [seat, seat] })
    const named = app.members.map(({ id }) => `ada@example.test (plus, ${id.slice(0, 8)})`)
    const { accounts } = await list(await as('admin'))
    expect(accounts.map(({ displayName }) => displayName).sort()).toEqual(named.sort())
    const page = await (await (await as('admin')).ask('GET /accounts', html)).text()
    for (const name of named) expect(page).toContain(name)
    expect(page).not.toContain('ada@example.test · Plus')
  })

  test('shows the address of an account whose alias is longer', async () => {
    const { app, as, ada } = await open()
    const alias = 'ada@example.test.invalid'
    await (await as('admin')).ask(`PUT /api/accounts/${ada}/alias`, { json: { alias } })
    expect(app.bindings.pool.all().map(({ displayName }) => displayName)).toContain(alias)
    const page = await (await (await as('admin')).ask('GET /accounts', html)).text()
    expect(page).toContain('ada@example.test · ')
  })

  test('is filtered by its query string', async () => {
    const { app, as, ada, alan } = await open()
    app.bindings.pool.apply(ada, { kind: 'pause', at: app.clock.now() })
    app.bindings.pool.apply(alan, { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'x' })
    const operator = await as('operator')
    expect(emails(await list(operator))).toEqual(['ada', 'alan', 'grace'])
    expect(emails(await list(operator, '?state=paused'))).toEqual(['ada'])
    expect(emails(await list(operator, '?eligible=yes'))).toEqual(['grace'])
    expect(emails(await list(operator, '?plan=team'))).toEqual(['alan'])
    expect(emails(await list(operator, '?q=GRA'))).toEqual(['grace'])
    expect(emails(await list(operator, '?sort=state'))).toEqual(['alan', 'ada', 'grace'])
    expect(emails(await list(operator, '?sort=name&order=desc'))).toEqual(['grace', 'alan', 'ada'])
    expect((await list(operator)).states).toEqual({ active: 1, paused: 1, reauth_required: 1 })
    expect(emails(await list(operator, '?state=nonsense&sort=colour&page=x&per=7'))).toHaveLength(3)
  })

  test('sorts unknown values last in both directions', async () => {
    const { app, as, ada, grace } = await open()
    const at = app.clock.now()
    const used = (id: string, usedPercent: number) =>
      app.bindings.pool.observe(id, {
        at,
        planType: null,
        credits: null,
        windows: { fiveHour: { usedPercent, windowMinutes: 300, resetAt: at + HOUR_MS }, weekly: null, monthly: null },
      })
    used(ada, 80)
    used(grace, 20)
    const operator = await as('operator')
    expect(emails(await list(operator, '?sort=five_hour'))).toEqual(['grace', 'ada', 'alan'])
    expect(emails(await list(operator, '?sort=five_hour&order=desc'))).toEqual(['ada', 'grace', 'alan'])
  })

  test('sorts names naturally: 2 before 10, ignoring case', async () => {
    const names = ['team-10', 'Team-2', 'team-1', 'beta']
    const { as } = await open({
      accounts: names.map((name) => ({ email: `${name}@example.test`, plan: 'plus' as const })),
    })
    const order = async (query = '') => emails(await list(await as('operator'), query))
    expect(await order()).toEqual(['beta', 'team-1', 'Team-2', 'team-10'])
    expect(await order('?sort=name&order=desc')).toEqual(['team-10', 'Team-2', 'team-1', 'beta'])
    expect(await order('?sort=in_flight&order=desc')).toEqual(['beta', 'team-1', 'Team-2', 'team-10'])
  })

  test('shows the last request to the second while it is in the log, and does not count warm-ups', async () => {
    const { app, as, ada, alan } = await open()
    const startedAt = app.clock.now() - 90_000
    const row = { keyId: null, startedAt }
    await aRequestRow(app.db, { ...row, id: 'r1', accountId: ada })
    await aRequestRow(app.db, { ...row, id: 'r2', accountId: ada, startedAt: startedAt - 1000, status: 'error' })
    await aRequestRow(app.db, { ...row, id: 'r3', accountId: alan, kind: 'warmup' })
    const { accounts } = await list(await as('operator'))
    expect(accounts.map(({ lastUsedAt }) => lastUsedAt)).toEqual(['2025-12-31T23:58:30.000Z', null, null])
  })

  test('shows what each account served, sorts by it, and adds it up per plan', async () => {
    const { app, as, ada, alan } = await open()
    const used = (accountId: string, requests: number, costMicros: number) =>
      commit(app.db, async (tx) => {
        const tokens = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 }
        await tx
          .insert(accountTotals)
          .values({ accountId, requests, costMicros, ...tokens })
          .run()
        const hour = { keyId: '', model: 'gpt-5.5', errors: 0, cancelled: 0, unpriced: 0, ...tokens }
        await tx
          .insert(requestHours)
          .values({ hour: app.clock.now() - requests * HOUR_MS, accountId, requests, costMicros, ...hour })
          .run()
      })
    await used(ada, 3, 1_500_000)
    await used(alan, 12, 250_000)
    const operator = await as('operator')
    expect(emails(await list(operator, '?sort=requests&order=desc'))).toEqual(['alan', 'ada', 'grace'])
    expect(emails(await list(operator, '?sort=cost&order=desc'))).toEqual(['ada', 'alan', 'grace'])
    expect(emails(await list(operator, '?sort=used&order=desc'))).toEqual(['ada', 'alan', 'grace'])
    const { accounts, plans } = await list(operator)
    expect(accounts.map(({ requests, costUsd, lastUsedAt }) => [requests, costUsd, lastUsedAt])).toEqual([
      [3, 1.5, '2025-12-31T21:00:00.000Z'],
      [12, 0.25, '2025-12-31T12:00:00.000Z'],
      [0, 0, null],
    ])
    expect(plans).toEqual([
      { plan: 'plus', accounts: 1, available: 1, requests: 0, costUsd: 0 },
      { plan: 'pro', accounts: 1, available: 1, requests: 3, costUsd: 1.5 },
      { plan: 'team', accounts: 1, available: 1, requests: 12, costUsd: 0.25 },
    ])
    const page = await (await operator.ask('GET /accounts', html)).text()
    for (const said of ['$1.50', '$0.25', 'never', 'Totals per plan']) expect(page).toContain(said)
  })

  test('stays small with many accounts, and a page beyond the last is the last page', async () => {
    const { as } = await open({ accounts: 60 })
    const operator = await as('operator')
    const page = await (await operator.ask('GET /accounts', html)).text()
    expect(page.length).toBeLessThan(40 * 1024)
    const last = await list(operator, '?page=99')
    expect([last.accounts.length, last.found, last.pages, last.query.page]).toEqual([10, 60, 3, 3])
    expect((await list(operator, '?per=100')).accounts).toHaveLength(60)
  })

  test('shows masked names, which cannot be searched, to users with read-only access', async () => {
    const { as, guest } = await open()
    for (const visitor of [await as('viewer'), await guest('192.0.2.9')]) {
      const page = await (await visitor.ask('GET /accounts', html)).text()
      expect(page).toContain('g***@example.test')
      expect(page).not.toContain('grace@')
      expect(page).not.toContain('name="accountIds"')
      expect(emails(await list(visitor, '?q=grace'))).toEqual([])
    }
  })

  test('is not available to a member, who cannot see accounts', async () => {
    const { as, ada } = await open()
    for (const path of ['/accounts', `/accounts/${ada}`])
      expect(await problem(await (await as('member')).ask(`GET ${path}`, json))).toEqual([403, 'permission_required'])
  })
})

describe('an account page', () => {
  test('answers 404 for an unknown account, and shows the first tab for an unknown tab', async () => {
    const { as, ada } = await open()
    const operator = await as('operator')
    expect(await problem(await operator.ask('GET /accounts/acc_unknown', json))).toEqual([404, 'account_not_found'])
    expect((await detail(operator, ada, '?tab=colour')).content.tab).toBe('usage')
  })

  test('offers the actions its state allows, and says why the others would not help', async () => {
    const { app, as, ada } = await open()
    const operator = await as('operator')
    const offered = async () =>
      (await detail(operator, ada)).actions.map(({ action, refusal }) => (refusal ? `(${action})` : action))
    expect(await offered()).toEqual(['probe', 'pause', 'reauthenticate', 'delete'])
    app.bindings.pool.apply(ada, { kind: 'pause', at: app.clock.now() })
    expect(await offered()).toEqual(['resume', '(probe)', 'reauthenticate', 'delete'])
    const lost = { kind: 'auth_failed', at: app.clock.now(), code: 'invalid_grant', evidence: 'x' } as const
    app.bindings.pool.apply(ada, lost)
    expect(await offered()).toEqual(['(resume)', '(probe)', 'reauthenticate', 'delete'])
    for (const kind of ['reauthenticated', 'reactivate'] as const)
      app.bindings.pool.apply(ada, { kind, at: app.clock.now() })
    app.bindings.pool.apply(ada, lost)
    expect(await offered()).toEqual(['reauthenticate', '(probe)', '(pause)', 'delete'])
  })

  test('of a blocked account answers all five questions', async () => {
    const { app, as, ada } = await open()
    const at = app.clock.now()
    const refusal = { at, evidence: '429 too many', resetAt: at + HOUR_MS, retryAfterMs: null }
    app.bindings.pool.apply(ada, { kind: 'rate_limited', ...refusal })
    const page = await (await (await as('operator')).ask(`GET /accounts/${ada}`, html)).text()
    for (const said of ['asked this account to wait', '429 too many', 'Ends', 'in 1 h', 'Clear and retry'])
      expect(page).toContain(said)
  })

  test('shows no evidence, credentials or working buttons to users with read-only access', async () => {
    const { app, as, guest, ada } = await open()
    const at = app.clock.now()
    const refusal = { at, evidence: '429 of ada@example.test', resetAt: at + HOUR_MS, retryAfterMs: null }
    app.bindings.pool.apply(ada, { kind: 'rate_limited', ...refusal })
    await event(app, ada, 'of ada@example.test')
    for (const visitor of [await as('viewer'), await guest('192.0.2.9')]) {
      const seen = await detail(visitor, ada, '?tab=credentials')
      expect([seen.tabs, seen.content.tab, seen.account.evidence]).toEqual([
        ['usage', 'statement', 'routing', 'events'],
        'usage',
        null,
      ])
      expect(seen.actions.every(({ refusal }) => refusal !== null)).toBe(true)
      expect(seen.content).toMatchObject({ spend: { byKey: null }, resetRefusal: expect.any(String) })
      for (const tab of ['usage', 'statement', 'routing', 'events', 'credentials']) {
        const page = await (await visitor.ask(`GET /accounts/${ada}?tab=${tab}`, html)).text()
        expect(page).not.toContain('ada@')
        expect(page).not.toContain('hx-post="/api/accounts')
      }
    }
  })

  test('shows the credentials to an operator, without a way to remove them', async () => {
    const { as, ada } = await open()
    const operator = await detail(await as('operator'), ada, '?tab=credentials')
    expect(operator.content).toMatchObject({
      tab: 'credentials',
      tokens: { access: { state: 'valid' }, refresh: { state: 'unknown' }, nextRefreshAt: '2026-01-09T00:00:00.000Z' },
      exportRefusal: expect.stringContaining('Admin'),
    })
    expect((await detail(await as('admin'), ada, '?tab=credentials')).content).toMatchObject({ exportRefusal: null })
    expect(JSON.stringify(operator)).not.toMatch(/rt_\d|eyJ/)
  })

  test('lists its events newest first, in pages', async () => {
    const { app, as, ada } = await open()
    for (let n = 1; n <= 60; n += 1) await event(app, ada, `event ${n}`)
    const operator = await as('operator')
    const newest = (await detail(operator, ada, '?tab=events')).content
    if (newest.tab !== 'events') throw new Error(`This is ${newest.tab}.`)
    expect([newest.events.length, newest.events[0]?.detail]).toEqual([50, 'event 60'])
    const older = (await detail(operator, ada, `?tab=events&before=${newest.older}`)).content
    if (older.tab !== 'events') throw new Error(`This is ${older.tab}.`)
    // The import of the account is an event, too.
    expect([older.events.length >= 10, older.events[0]?.detail, older.older]).toEqual([true, 'event 10', null])
  })
})

describe('an account that recovered', () => {
  const block = (app: Awaited<ReturnType<typeof testApp>>, id: string, resetAt: number | null = null) =>
    app.bindings.pool.apply(id, {
      kind: 'rate_limited',
      at: app.clock.now(),
      evidence: '429 too many',
      resetAt,
      retryAfterMs: null,
    })
  const WINDOW = { usedPercent: 5, windowMinutes: 300, resetAt: null }

  test.each([
    [
      'a usage report',
      'The usage report shows quota again.',
      (app: Awaited<ReturnType<typeof testApp>>, id: string) => {
        const windows = { fiveHour: WINDOW, weekly: null, monthly: null }
        app.bindings.pool.observe(id, { at: app.clock.now() + 1, planType: null, credits: null, windows })
      },
    ],
    [
      'a probe',
      'ChatGPT served a probe.',
      (app: Awaited<ReturnType<typeof testApp>>, id: string) =>
        app.bindings.pool.apply(id, { kind: 'checked', at: app.clock.now(), ok: true, by: 'probe' }),
    ],
    [
      'a reset credit',
      'A reset credit was used.',
      (app: Awaited<ReturnType<typeof testApp>>, id: string) =>
        app.bindings.pool.apply(id, { kind: 'checked', at: app.clock.now(), ok: true, by: 'reset_credit' }),
    ],
    [
      'the end of a wait without a date',
      'The wait is over, so it is tried again.',
      (app: Awaited<ReturnType<typeof testApp>>, id: string) =>
        app.bindings.pool.apply(id, { kind: 'tick', at: app.clock.now() + HOUR_MS }),
    ],
  ])('because of %s says so', async (_, reason, recover) => {
    const { app, as, ada } = await open()
    block(app, ada)
    await recover(app, ada)
    await app.clock.advance(10)
    const { content } = await detail(await as('operator'), ada, '?tab=events')
    if (content.tab !== 'events') throw new Error(`This is ${content.tab}.`)
    expect(content.events.slice(0, 2).map(({ kind, result, detail }) => [kind, result, detail])).toEqual([
      ['state', 'active', reason],
      ['state', 'rate_limited', '429 too many'],
    ])
  })

  test('because of its reset says so', async () => {
    const { app, as, ada } = await open()
    block(app, ada, app.clock.now() + HOUR_MS)
    app.bindings.pool.apply(ada, { kind: 'tick', at: app.clock.now() + HOUR_MS })
    await app.clock.advance(10)
    const page = await (await (await as('operator')).ask(`GET /accounts/${ada}?tab=events`, html)).text()
    expect(page).toContain('<strong>Active</strong>')
    expect(page).toContain('The reset time has passed.')
  })
})

describe('a probe', () => {
  test.each([
    ['that succeeds', null, 'ChatGPT served the probe'],
    ['that is rejected', { status: 429 } as const, 'The probe failed: ChatGPT answered 429.'],
    ['that gets no answer', { reset: true } as const, 'The probe failed: ChatGPT could not be reached.'],
  ])('%s shows its result beside the button for an hour', async (_, fault, said) => {
    const { app, as, ada } = await open()
    const [{ sim }] = app.members as [(typeof app.members)[0]]
    if (fault) sim.next(fault)
    const operator = await as('operator')
    const answer = await operator.submit(`POST /api/accounts/${ada}/probe`)
    expect(answer.status).toBe(303)
    const page = async (who = operator) => (await who.ask(`GET /accounts/${ada}`, html)).text()
    expect(await page()).toMatch(new RegExp(`<div class="actions">.*</div><p class="probe-result.*${said}`, 's'))
    expect(await page(await as('viewer'))).not.toContain('probe-result')
    await app.clock.advance('61m')
    expect(await page()).not.toContain('probe-result')
  })
})

describe('the last seven days', () => {
  test('the trend on the page includes the current hour only if usage was reported in it', async () => {
    const { app, as, ada } = await open()
    app.bindings.pool.observe(ada, {
      at: app.clock.now(),
      planType: null,
      credits: null,
      windows: { fiveHour: { usedPercent: 80, windowMinutes: 300, resetAt: null }, weekly: null, monthly: null },
    })
    app.bindings.pool.apply(ada, { kind: 'pause', at: app.clock.now() })
    const last = async () => {
      const { content } = await detail(await as('operator'), ada)
      return content.tab === 'usage' ? content.trend.fiveHour.at(-1) : 'no trend'
    }
    expect(await last()).toBe(80)
    await app.clock.advance('61m')
    expect(await last()).toBeNull()
  })

  test('reset credits that were never fetched are unknown, not zero', async () => {
    const { app, as, ada } = await open()
    const refusal = async () => {
      const { content } = await detail(await as('operator'), ada)
      return content.tab === 'usage' ? content.resetRefusal : 'no credits'
    }
    expect(await refusal()).toStartWith('Not fetched')
    app.bindings.resetCredits.set(ada, [])
    expect(await refusal()).toStartWith('This account has no reset credits')
  })

  test('leave out hours without a sample', async () => {
    const { app, as, ada } = await open()
    const now = app.clock.now()
    await commit(app.db, async (tx) => {
      for (const back of [1, 2, 5])
        await tx
          .insert(usageSamples)
          .values({ accountId: ada, hour: now - back * HOUR_MS, fiveHourUsed: back * 10, weeklyUsed: null })
          .run()
      await tx
        .insert(usageSamples)
        .values({ accountId: ada, hour: now - 200 * HOUR_MS, fiveHourUsed: 99 })
        .run()
    })
    const trends = await (await (await as('viewer')).ask(`GET /api/accounts/${ada}/trends`)).json()
    expect(trends).toMatchObject({
      accountId: ada,
      primary: [
        { t: '2025-12-31T19:00:00.000Z', v: 50 },
        { t: '2025-12-31T22:00:00.000Z', v: 80 },
        { t: '2025-12-31T23:00:00.000Z', v: 90 },
      ],
      secondary: [],
      secondaryScheduled: [],
    })
    expect(await problem(await (await as('viewer')).ask('GET /api/accounts/acc_unknown/trends'))).toEqual([
      404,
      'account_not_found',
    ])
  })

  test('end with the current hour once something was reported in it', async () => {
    const { app, as, ada } = await open()
    const at = app.clock.now()
    const fiveHour = { usedPercent: 25, windowMinutes: 300, resetAt: at + HOUR_MS }
    const windows = { fiveHour, weekly: null, monthly: null }
    app.bindings.pool.observe(ada, { at, planType: null, credits: null, windows })
    const trends = await (await (await as('viewer')).ask(`GET /api/accounts/${ada}/trends`)).json()
    expect(trends).toMatchObject({ primary: [{ t: new Date(at).toISOString(), v: 75 }], secondary: [] })
  })

  test('show what the account was used for, without other accounts or older hours', async () => {
    const { app, as, ada, grace } = await open()
    const hour = app.clock.now()
    const { row } = await app.key({ name: 'laptop' })
    const spent = (accountId: string, over: Partial<typeof requestHours.$inferInsert>) =>
      commit(app.db, async (tx) => {
        const sums = { requests: 2, errors: 1, cancelled: 0, inputTokens: 90, cachedInputTokens: 0, outputTokens: 10 }
        const base = { hour, accountId, keyId: row.id, model: 'gpt-5.5', costMicros: 500, unpriced: 0, ...sums }
        await tx
          .insert(requestHours)
          .values({ ...base, ...over })
          .run()
      })
    await spent(ada, {})
    await spent(ada, { hour: hour - HOUR_MS, model: '', keyId: '', costMicros: 100 })
    await spent(ada, { hour: hour - 200 * HOUR_MS })
    await spent(grace, {})
    expect((await detail(await as('operator'), ada)).content).toMatchObject({
      spend: {
        total: { requests: 4, errors: 2, tokens: 200, costMicros: 600 },
        byModel: [
          { name: 'gpt-5.5', costMicros: 500 },
          { name: null, costMicros: 100 },
        ],
        byKey: [
          { name: 'laptop', requests: 2 },
          { name: null, requests: 2 },
        ],
      },
    })
  })
})

test('one form changes alias, policy and pool', async () => {
  const { app, as, ada } = await open()
  const fields = { alias: ' Work ', routingPolicy: 'preserve', securityWorkAuthorized: true }
  expect((await (await as('viewer')).send('form', `PATCH /api/accounts/${ada}`, fields)).status).toBe(403)
  const response = await (await as('operator')).send('form', `PATCH /api/accounts/${ada}`, fields)
  expect(response.status).toBe(303)
  expect(app.bindings.pool.get(ada)).toMatchObject({
    displayName: 'Work',
    routingPolicy: 'preserve',
    securityWorkAuthorized: true,
  })
})

test('an outdated account form does not undo another user’s change', async () => {
  const { app, as, ada } = await open()
  const operator = await as('operator')
  await operator.ask(`PATCH /api/accounts/${ada}`, { json: { securityWorkAuthorized: true } })
  const opened = async () => {
    const page = await (await operator.ask(`GET /accounts/${ada}?tab=routing`, html)).text()
    return Object.fromEntries(getFields(page, 'form-routing'))
  }
  const save = (fields: Record<string, string>) =>
    operator.send('form', `PATCH /api/accounts/${ada}`, { ...fields, alias: 'Work' })
  const before = await opened()
  await (await as('admin')).ask(`PATCH /api/accounts/${ada}`, { json: { securityWorkAuthorized: false } })
  await save(before)
  expect(app.bindings.pool.get(ada)).toMatchObject({ securityWorkAuthorized: false, displayName: 'ada@example.test' })
  await save(await opened())
  expect(app.bindings.pool.get(ada)).toMatchObject({ securityWorkAuthorized: false, displayName: 'Work' })
})

const event = (app: Awaited<ReturnType<typeof testApp>>, accountId: string, detailText: string) =>
  commit(app.db, async (tx) => {
    const at = app.clock.now()
    await tx.insert(accountEvents).values({ accountId, at, kind: 'state', result: 'active', detail: detailText }).run()
  })

describe('the five answers of an account', () => {
  const answers = async (visitor: Browser, id: string): Promise<Record<string, string>> => {
    const page = await (await visitor.ask(`GET /accounts/${id}`, html)).text()
    const plain = (text = '') =>
      text
        .replace(/<[^>]+>/g, ' ')
        .replace(/\s+/g, ' ')
        .trim()
    return Object.fromEntries(
      [...page.matchAll(/<dt>([^<]*)<\/dt><dd>([\s\S]*?)<\/dd>/g)].map(([, dt, dd]) => [dt, plain(dd)]),
    )
  }

  test('under a strategy that prefers another account, name the strategy and link to it', async () => {
    const { app, as, ada, grace } = await open()
    await app.change({ routingStrategy: 'single_account', singleAccountId: ada })
    const said = await answers(await as('operator'), grace)
    expect(said.What).toContain('sends every request to another account')
    expect(said.Evidence).toContain('Settings → Routing')
    expect(said.Ends).toBe('when you change the strategy')
    expect(await (await (await as('operator')).ask(`GET /accounts/${grace}`, html)).text()).toContain(
      'href="/settings/routing"',
    )
  })

  test('at its limit of parallel requests, say that it waits for one of them to end', async () => {
    const { app, as, ada, grace, alan } = await open()
    await app.change({ proxyAccountStreamLimit: 1 })
    for (const other of [grace, alan]) app.bindings.pool.apply(other, { kind: 'pause', at: app.clock.now() })
    const needs = { model: null, tried: new Set<string>(), scope: null, owner: null, restricted: false }
    const lease = await app.bindings.pool.lease(needs, new AbortController().signal)
    const said = await answers(await as('operator'), ada)
    expect(said.Ends).toBe('when one of its requests finishes')
    expect(said.Evidence).toContain('requests running')
    lease.release()
  })

  test('during cooldown, show what failed and when to users who manage accounts, and hide the error text from others', async () => {
    const { app, as, ada } = await open()
    const evidence = '503 server_is_overloaded: Overloaded.'
    const fail = () => app.bindings.pool.health(ada, { kind: 'error', at: app.clock.now(), evidence })
    fail()
    fail()
    const asked = await answers(await as('operator'), ada)
    expect(asked['Available?']).toBe('Available, used last 503 server_is_overloaded: Overloaded, now')
    expect((await answers(await as('viewer'), ada))['Available?']).toBe('Available, used last')
    fail()
    await app.clock.advance('2s')
    const said = await answers(await as('operator'), ada)
    expect(said.What).toStartWith('Recent requests failed on this account')
    expect([said.Since, said.Evidence]).toEqual(['2 s ago', evidence])
    expect(said.Ends).toStartWith('in ')
    expect((await answers(await as('viewer'), ada)).Evidence).toBe('Only users who can manage accounts see this.')
    app.bindings.pool.health(ada, { kind: 'success', at: app.clock.now() })
    expect((await answers(await as('operator'), ada))['Available?']).toStartWith('Available')
  })

  test('while paused, show the pause, and other reasons only to users who manage accounts', async () => {
    const { app, as, ada } = await open()
    app.bindings.pool.apply(ada, { kind: 'pause', at: app.clock.now() })
    const paused = await answers(await as('operator'), ada)
    expect(paused.What).toContain('Nothing is wrong with it at ChatGPT')
    expect(paused.Evidence).toBe('Paused by a user.')
    const evidence = 'Its stored tokens cannot be read.'
    app.bindings.pool.apply(ada, { kind: 'auth_failed', at: app.clock.now(), code: 'tokens_unreadable', evidence })
    const said = await answers(await as('operator'), ada)
    expect(said.What).toBe(
      'This account is paused in Sluice. It would not be available after resuming either. tokens_unreadable',
    )
    expect(said.Evidence).toBe(`Paused by a user. ${evidence}`)
    expect(said['What you can do']).toContain('Sign in again first.')
    expect((await answers(await as('viewer'), ada)).Evidence).toBe('Paused by a user.')
    await app.clock.advance(0)
    expect(await answers(await as('operator'), ada)).toMatchObject({ State: 'Paused' })
    const tokens = await (await (await as('operator')).ask(`GET /accounts/${ada}?tab=credentials`, html)).text()
    expect(tokens).toContain('none: sign in again first')
  })
})
