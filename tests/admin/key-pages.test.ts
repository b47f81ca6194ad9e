/** The key pages in process: content, permissions and forms. */
import { describe, expect, test } from 'bun:test'
import type { ApiKey } from '../../src/model/keys/api-key-view.ts'
import { fetchCatalogs } from '../spec/catalog.ts'
import { codexBody, type TestApp, testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { people, problem, REMOTE } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const HOUR_MS = 3_600_000
const READ = { 'dashboard:read': 'all', 'api_keys:read': 'all' } as const

const open = async () => {
  const app = await testApp({ accounts: [{ email: 'ada@example.test' }], settings: { apiKeyAuthEnabled: true } })
  return { app, ...people(app) }
}

const page = async (app: Pick<TestApp, 'ask'>, path: string): Promise<string> => {
  const response = await app.ask(`GET ${path}`, { headers: HTML })
  expect([path, response.status]).toEqual([path, 200])
  return response.text()
}

const take = async (app: TestApp, key: string) => {
  await (await app.ask('POST /backend-api/codex/responses', { json: codexBody(), headers: bearer(key) })).text()
  await app.bindings.ledger.flush()
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

/** A week in which every hour differs from the one before. */
const useEveryHour = ({ sqlite, clock }: TestApp, keyId: string) => {
  const now = clock.now() - (clock.now() % HOUR_MS)
  for (let hour = 0; hour < 168; hour++)
    sqlite.run(
      `INSERT INTO request_hours (hour, account_id, key_id, model, requests, errors, cancelled, input_tokens,
         cached_input_tokens, output_tokens, cost_micros, unpriced)
       VALUES (${now - hour * HOUR_MS}, '', '${keyId}', 'gpt-5.5', 1, 0, 0, ${123_457 * (hour + 1)}, 0, 1, ${1_234_567 * (hour + 1)}, 0)`,
    )
}

const namesOn = (html: string): string[] =>
  [...html.matchAll(/class="key-name"[^>]*>([^<]+)</g)].map(([, name]) => name!)

const form = (fields: [string, string][]) => ({
  body: new URLSearchParams(fields).toString(),
  headers: {
    'content-type': 'application/x-www-form-urlencoded',
    'hx-request': 'true',
    'sec-fetch-site': 'same-origin',
  },
})

const onlyKey = async (app: Pick<TestApp, 'ask'>): Promise<ApiKey> => {
  const [key, ...others] = (await (await app.ask('GET /api/api-keys/')).json()) as ApiKey[]
  expect(others).toEqual([])
  return key!
}

describe('the key list', () => {
  test('a limit shows how much is used, as the overview does, also beyond the limit', async () => {
    const { app } = await open()
    await app.key({ limits: [{ limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 25_000_000, modelFilter: '' }] })
    app.sqlite.run('UPDATE api_key_limits SET current_value = 25499000')
    expect(await page(app, '/keys')).toContain('<b>101 %</b> of $25.00 per week')
    expect(await page(app, '/dashboard')).toContain('is at 101 % of its weekly cost')
  })

  test('sorts by any column and finds by name, prefix and owner', async () => {
    const { app, as } = await open()
    const anna = await as('admin', { username: 'anna' })
    const laptop = await app.key({ name: 'laptop' })
    await app.key({ name: 'ci', ownerUserId: anna.person.row.id })
    await take(app, laptop.key)
    expect(namesOn(await page(anna, '/keys'))).toEqual(['ci', 'laptop'])
    expect(namesOn(await page(anna, '/keys?sort=tokens&dir=desc'))).toEqual(['laptop', 'ci'])
    expect(namesOn(await page(anna, '/keys?q=ANN'))).toEqual(['ci'])
    expect(namesOn(await page(anna, `/keys?q=${laptop.row.keyPrefix}`))).toEqual(['laptop'])
    expect(await page(anna, '/keys?q=nothing')).toContain('Clear search')
  })

  test('an unknown sort order is ignored', async () => {
    const { app } = await open()
    await app.key({ name: 'b' })
    await app.key({ name: 'a' })
    expect(namesOn(await page(app, '/keys?sort=colour&dir=up'))).toEqual(['a', 'b'])
  })

  test('a page shows twenty, and every page and form stays small with a hundred keys and two hundred accounts', async () => {
    const { app } = await open()
    const limits = (['5h', 'daily', 'weekly'] as const).map(
      (limitWindow) => ({ limitType: 'requests', limitWindow, maxValue: 3, modelFilter: '' }) as const,
    )
    for (let n = 100; n < 200; n++) await app.key({ name: `key-${n}`, limits })
    for (let n = 0; n < 200; n++) await app.addAccount({ email: `account-${n}@example.test` })
    await app.bindings.pool.reload()
    const second = await page(app, '/keys?page=2')
    expect(namesOn(await page(app, '/keys?page=99'))).toEqual(namesOn(await page(app, '/keys?page=5')))
    expect(namesOn(second)).toEqual(Array.from({ length: 20 }, (_, n) => `key-${120 + n}`))
    expect(second).toContain('page=3')
    const { id } = ((await (await app.ask('GET /api/api-keys/')).json()) as ApiKey[])[0]!
    useEveryHour(app, id)
    for (const path of ['/keys', '/keys/new', `/keys/${id}`, `/keys/${id}/edit`])
      expect([path, Buffer.byteLength(await page(app, path)) < 40 * 1024]).toEqual([path, true])
  })

  test('a used key shows two charts of its week, with a labelled bar for every six hours', async () => {
    const { app } = await open()
    const { row } = await app.key()
    useEveryHour(app, row.id)
    const html = await page(app, `/keys/${row.id}`)
    const [first, second, ...others] = [...html.matchAll(/<svg class="bars".*?<\/svg>/gs)].map(([svg]) => svg)
    expect(others).toEqual([])
    for (const svg of [first!, second!]) {
      expect(svg).toMatch(/ role="img" aria-label="[^"]+ last 7 days: [^"]+"/)
      expect(svg.match(/class="bars-bar"/g)).toHaveLength(1)
      expect(svg.match(/<path d="[^"]+"><title>\d\d-\d\d \d\d:\d\d UTC: [^<]+<\/title>/g)).toHaveLength(29)
      expect(/class="bars-bar"[^>]* d="([^"]+)"/.exec(svg)?.[1]?.match(/M/g)).toHaveLength(29)
    }
    expect(html).toContain('<table class="figures">')
  })

  test('requests without a known price show a dash, not zero', async () => {
    const { app } = await open()
    const { row } = await app.key()
    useEveryHour(app, row.id)
    app.sqlite.run('UPDATE request_hours SET cost_micros = 0, unpriced = requests')
    app.sqlite.run('UPDATE api_keys SET request_count = 168, input_tokens = 1000')
    expect(await page(app, '/keys')).toContain('cell-cost number">–<')
    const html = await page(app, `/keys/${row.id}`)
    expect(html).toContain('168 requests, –)')
    expect(html).not.toContain('$0')
  })

  test('its former address redirects to it', async () => {
    const response = await (await open()).app.ask('GET /apis')
    expect([response.status, response.headers.get('location')]).toEqual([301, '/keys'])
  })

  test('a key that its owner cannot use says so', async () => {
    const { app, add, as } = await open()
    const anna = await as('admin')
    const { row } = await add({ status: 'disabled', username: 'berta' })
    await app.key()
    app.sqlite.run(`UPDATE api_keys SET owner_user_id = '${row.id}'`)
    const keys = (await (await anna.ask('GET /keys')).json()) as { keys: { state: string }[] }
    expect(keys.keys.map(({ state }) => state)).toEqual(['orphaned'])
  })
})

describe('permissions for keys', () => {
  const PAGES = ['GET /keys', 'GET /keys/:id', 'GET /api/api-keys/:id/trends', 'GET /api/api-keys/:id/usage-7d']
  const CHANGES = ['GET /keys/new', 'GET /keys/:id/edit', 'POST /api/api-keys/:id/test']

  test.each([...PAGES, ...CHANGES])(
    '%s: allowed for administrators, not for viewers, guests and visitors who are not signed in',
    async (route) => {
      const { app, as, browser, guest } = await open()
      const asked = route.replace(':id', (await app.key()).row.id)
      const ask = async (who: { ask: TestApp['ask'] }) => problem(await who.ask(asked, { json: body(route) }))
      await app.change({ guestAccessEnabled: true })
      expect((await ask(await as('admin')))[0]).toBe(200)
      const refusal = CHANGES.includes(route) ? 'read_only_access' : 'permission_required'
      expect(await ask(await as('viewer'))).toEqual([403, refusal])
      expect(await ask(await guest())).toEqual([403, refusal])
      await app.change({ guestAccessEnabled: false })
      expect((await ask(browser(REMOTE)))[0]).toBe(401)
    },
  )

  test('the browser checks are loaded with the first test, for users who can test keys', async () => {
    const { app, as, addRole } = await open()
    await addRole('auditor', { 'dashboard:read': 'all', 'api_keys:read': 'all' })
    const { row } = await app.key()
    const [, path] = /id="path-test"[^>]* data-src="([^"]+)"/.exec(await page(app, `/keys/${row.id}`))!
    const ask = ({ ask }: Pick<TestApp, 'ask'>) => ask(`GET ${path}`, { headers: { ...HTML, 'hx-request': 'true' } })
    const checks = await (await ask(app)).text()
    expect([...checks.matchAll(/data-measure="(\w+)"/g)].map(([, kind]) => kind)).toEqual([
      'stream',
      'socket',
      'upload',
      'headers',
      'path',
      'path',
      'lasting',
    ])
    expect(checks).not.toContain('<html')
    expect((await ask(await as('auditor'))).status).toBe(403)
  })

  test('users with read-only access see no form, and the disabled test with the reason', async () => {
    const { app, as, addRole } = await open()
    const { row } = await app.key()
    await addRole('auditor', { 'dashboard:read': 'all', 'api_keys:read': 'all' })
    const auditor = await as('auditor')
    const html = await page(auditor, `/keys/${row.id}`)
    expect(html).not.toContain('form-delete')
    expect(html).toMatch(/disabled="" data-path-test/)
    expect(html).toContain('You have read-only access to keys')
    expect(await page(auditor, '/keys')).not.toContain('href="/keys/new"')
  })

  test('account owners are masked for users who do not work with them', async () => {
    const { app, as, addRole } = await open()
    const { row, key } = await app.key()
    await take(app, key)
    await addRole('auditor', { 'dashboard:read': 'all', 'api_keys:read': 'all' })
    const costs = async (who: { ask: TestApp['ask'] }) =>
      ((await (await who.ask(`GET /api/api-keys/${row.id}/usage-7d`)).json()) as { accountCosts: { email: string }[] })
        .accountCosts[0]?.email
    expect(await costs(await as('admin'))).toBe('ada@example.test')
    expect(await costs(await as('auditor'))).toMatch(/^a\W+@/)
    expect(await page(await as('auditor'), `/keys/${row.id}`)).not.toContain('ada@example.test')
  })

  test.each(PAGES.slice(1))('%s: an unknown key is not found', async (route) => {
    const response = await (await open()).app.ask(route.replace(':id', 'key_x'))
    expect(await problem(response)).toEqual([404, 'not_found'])
  })
})

describe('seven days', () => {
  test('every hour has a point, and the totals match the log', async () => {
    const { app } = await open()
    const { row, key } = await app.key()
    await take(app, key)
    await app.clock.advance(3 * HOUR_MS)
    await take(app, key)
    const trends = await json<Trends>(app, `/api/api-keys/${row.id}/trends`)
    const usage = await json<Usage>(app, `/api/api-keys/${row.id}/usage-7d`)
    const logged = (await app.rows()).map(({ inputTokens, outputTokens }) => inputTokens! + outputTokens!)
    expect(trends.tokens.map(({ v }) => v).filter((v) => v > 0)).toEqual(logged)
    expect([trends.tokens.length, trends.cost.length]).toEqual([168, 168])
    expect(Date.parse(trends.tokens.at(-1)!.t)).toBe(Math.floor(app.clock.now() / HOUR_MS) * HOUR_MS)
    expect(usage).toMatchObject({ keyId: row.id, totalRequests: 2, totalTokens: logged[0]! + logged[1]! })
    expect(usage.accountCosts).toEqual([
      expect.objectContaining({ email: 'ada@example.test', costUsd: usage.totalCostUsd, isDeleted: false }),
    ])
  })

  test('accounts are shown by alias on the page, as everywhere else', async () => {
    const { app } = await open()
    const { row, key } = await app.key()
    await take(app, key)
    await app.ask(`PUT /api/accounts/${app.members[0]!.id}/alias`, { json: { alias: 'desk of Ada' } })
    const html = await page(app, `/keys/${row.id}`)
    expect(html).toContain('<span class="key-share">desk of Ada</span>')
    expect(html).not.toContain('ada@example.test')
  })

  test('accounts with the same email are distinguished, also in the test of the key', async () => {
    const seat = { email: 'ada@example.test', plan: 'plus' } as const
    const app = await testApp({ accounts: [seat, seat] })
    const { row } = await app.key()
    const named = []
    for (const { id } of app.members) {
      await app.prefer(id)
      const tested = await app.ask(`POST /api/api-keys/${row.id}/test`, { json: { model: 'gpt-5.5' } })
      named.push(`ada@example.test (plus, ${id.slice(0, 8)})`)
      expect(await tested.json()).toMatchObject({ account: named.at(-1) })
    }
    const html = await page(app, `/keys/${row.id}`)
    for (const name of named) expect(html).toContain(`<span class="key-share">${name}</span>`)
  })

  test('requests older than a week and of other keys are not counted', async () => {
    const { app } = await open()
    const { row, key } = await app.key()
    await take(app, (await app.key({ name: 'other' })).key)
    await take(app, key)
    await app.clock.advance(168 * HOUR_MS)
    expect(await json<Usage>(app, `/api/api-keys/${row.id}/usage-7d`)).toMatchObject({
      totalRequests: 0,
      accountCosts: [],
    })
    expect(await page(app, `/keys/${row.id}`)).toContain('No requests in the last 7 days')
  })
})

describe('the key forms', () => {
  test('a new key: models, expiry, limits in dollars and a chosen account', async () => {
    const { app } = await open()
    await fetchCatalogs(app)
    const account = app.members[0]!.id
    const response = await app.ask('POST /api/api-keys/', {
      ...form([
        ['name', 'laptop'],
        ['allowedModels', ''],
        ['allowedModels', 'gpt-5.5'],
        ['expiry', '30'],
        ['limits.0.amount', '12.5'],
        ['limits.0.type', 'cost_usd'],
        ['limits.0.window', 'daily'],
        ['limits.0.model', ''],
        ['limits.1.amount', ''],
        ['limits.1.type', 'total_tokens'],
        ['limits.1.window', 'weekly'],
        ['limits.1.model', ''],
        ['enforcedModel', ''],
        ['accountScope', 'chosen'],
        ['assignedAccountIds', ''],
        ['assignedAccountIds', account],
      ]),
    })
    const html = await response.text()
    const [shown] = /sk-clb-[\w-]{43}/.exec(html) ?? []
    expect(app.bindings.keys.find(shown ?? '')?.name).toBe('laptop')
    expect(html).toContain('You cannot see it again')
    expect(html).toContain('http://localhost:2455/backend-api/codex')
    expect(await onlyKey(app)).toMatchObject({
      allowedModels: ['gpt-5.5'],
      expiresAt: new Date(app.clock.now() + 30 * 24 * HOUR_MS).toISOString(),
      limits: [{ limitType: 'cost_usd', limitWindow: 'daily', maxValue: 12_500_000, modelFilter: null }],
      enforcedModel: null,
      assignedAccountIds: [account],
    })
  })

  test('a limit with more precision than is counted is rejected', async () => {
    const { app } = await open()
    const response = await app.ask('POST /api/api-keys/', {
      ...form([
        ['name', 'laptop'],
        ['limits.0.amount', '1.5'],
        ['limits.0.type', 'requests'],
        ['limits.0.window', '5h'],
        ['limits.0.model', ''],
      ]),
    })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('Limits 1 max value: must be a whole number.')
  })

  test('switches for unlimited and never expires override the fields below them', async () => {
    const { app } = await open()
    const fields = (unlimited: string, neverExpires: string, amount: string): [string, string][] => [
      ['name', 'laptop'],
      ['neverExpires', 'false'],
      ...(neverExpires === 'true' ? [['neverExpires', 'true'] as [string, string]] : []),
      ['expiry', '90'],
      ['unlimited', 'false'],
      ...(unlimited === 'true' ? [['unlimited', 'true'] as [string, string]] : []),
      ['limits.0.amount', amount],
      ['limits.0.type', 'requests'],
      ['limits.0.window', '5h'],
      ['limits.0.model', ''],
    ]
    await app.ask('POST /api/api-keys/', form(fields('true', 'true', '9')))
    const { id, ...made } = await onlyKey(app)
    expect(made).toMatchObject({ limits: [], expiresAt: null })
    await app.ask(`PATCH /api/api-keys/${id}`, form(fields('false', 'false', '9')))
    expect(await onlyKey(app)).toMatchObject({
      limits: [{ maxValue: 9 }],
      expiresAt: new Date(app.clock.now() + 90 * 24 * HOUR_MS).toISOString(),
    })
    await app.ask(`PATCH /api/api-keys/${id}`, form(fields('true', 'true', '9')))
    expect(await onlyKey(app)).toMatchObject({ limits: [], expiresAt: null })
  })

  test('a limited key needs an amount', async () => {
    const { app } = await open()
    const response = await app.ask('POST /api/api-keys/', {
      ...form([
        ['name', 'laptop'],
        ['unlimited', 'false'],
        ['limits.0.amount', ''],
        ['limits.0.type', 'requests'],
      ]),
    })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('Enter an amount for the limit, or turn on Unlimited.')
  })

  test('unchecked and untilEmpty values are removed; what is not in the form stays', async () => {
    const { app } = await open()
    const { row } = await app.key({
      allowedModels: ['a'],
      enforcedServiceTier: 'flex',
      expiresAt: app.clock.now() + HOUR_MS,
      limits: [{ limitType: 'requests', limitWindow: '5h', maxValue: 3, modelFilter: '' }],
    })
    const patch = (fields: [string, string][]) => app.ask(`PATCH /api/api-keys/${row.id}`, form(fields))
    await patch([
      ['expiry', 'keep'],
      ['allowedModels', ''],
    ])
    expect(await onlyKey(app)).toMatchObject({
      allowedModels: null,
      enforcedServiceTier: 'flex',
      limits: [{ maxValue: 3 }],
    })
    expect((await onlyKey(app)).expiresAt).not.toBeNull()
    await patch([
      ['neverExpires', 'true'],
      ['limits.0.amount', ''],
      ['limits.0.type', 'requests'],
    ])
    expect(await onlyKey(app)).toMatchObject({ expiresAt: null, limits: [] })
  })

  test('saving the form unchanged changes nothing, even if its lists no longer contain a value', async () => {
    const { app, as, add } = await open()
    const admin = await as('admin')
    const owner = await add({ username: 'bob', role: 'operator' })
    const { row } = await app.key({
      enforcedModel: 'a-model-that-went',
      ownerUserId: owner.row.id,
      enforcedServiceTier: 'flex',
      trafficClass: 'opportunistic',
      transportPolicyOverride: 'always_http',
      assignedAccountIds: [app.members[0]!.id],
      usageSections: 'upstream_limits',
      limits: [{ limitType: 'cost_usd', limitWindow: 'weekly', maxValue: 5, modelFilter: '' }],
    })
    const { status } = await admin.ask(`PATCH /api/dashboard-users/${owner.row.id}`, { json: { status: 'disabled' } })
    expect(status).toBe(200)
    const before = await onlyKey(admin)
    const html = await page(admin, `/keys/${row.id}/edit`)
    expect(html).toContain('1 account ·')
    const fields = getFields(html, 'form-key')
    expect((await admin.ask(`PATCH /api/api-keys/${row.id}`, form(fields))).status).toBe(200)
    expect(await onlyKey(admin)).toEqual(before)
  })

  test('a key loses a deleted account, and its form can be saved unchanged', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    const [gone, left] = [app.members[0]!.id, (await app.addAccount()).id]
    const { row } = await app.key({ assignedAccountIds: [gone, left] })
    const alone = await app.key({ assignedAccountIds: [gone] })
    const free = await app.key()
    expect((await admin.ask(`DELETE /api/accounts/${gone}`)).status).toBe(200)
    for (const { id } of [row, alone.row, free.row]) {
      const fields = getFields(await page(admin, `/keys/${id}/edit`), 'form-key')
      expect((await admin.ask(`PATCH /api/api-keys/${id}`, form(fields))).status).toBe(200)
    }
    const keys = (await (await admin.ask('GET /api/api-keys/')).json()) as ApiKey[]
    const getIds = (id: string) => keys.find((key) => key.id === id)?.assignedAccountIds
    expect([row, alone.row, free.row].map(({ id }) => getIds(id))).toEqual([[left], [], null])
    const turn = { json: codexBody(), headers: bearer(alone.key) }
    expect((await app.ask('POST /backend-api/codex/responses', turn)).status).toBe(400)
  })

  test('an outdated form does not undo another user’s change', async () => {
    const { app, as } = await open()
    const { row } = await app.key({ allowedModels: ['gpt-5.5', 'gpt-5.4'] })
    const anna = await as('admin')
    const opened = async () => getFields(await page(anna, `/keys/${row.id}/edit`), 'form-key')
    const save = async (fields: [string, string][]) =>
      problem(await anna.ask(`PATCH /api/api-keys/${row.id}`, form([...fields, ['name', 'renamed']])))
    const before = await opened()
    const limits = [{ limitType: 'requests', limitWindow: '5h', maxValue: 3 }]
    await (await as('admin')).ask(`PATCH /api/api-keys/${row.id}`, { json: { allowedModels: ['gpt-5.4'] } })
    expect(await save(before)).toEqual([409, 'edit_conflict'])
    const narrowed = await opened()
    await (await as('admin')).ask(`PATCH /api/api-keys/${row.id}`, { json: { limits } })
    expect(await save(narrowed)).toEqual([409, 'edit_conflict'])
    expect(await save(await opened())).toEqual([200, null])
    expect(await onlyKey(anna)).toMatchObject({ name: 'renamed', allowedModels: ['gpt-5.4'], limits })
  })

  test('users who cannot see accounts keep the selected ones, too', async () => {
    const { app, as, addRole } = await open()
    await addRole('clerk', { ...READ, 'accounts:write': 'all', 'api_keys:write': 'all', 'ops:write': 'all' })
    const { row } = await app.key({ assignedAccountIds: [app.members[0]!.id] })
    const clerk = await as('clerk')
    const before = await onlyKey(clerk)
    const fields = getFields(await page(clerk, `/keys/${row.id}/edit`), 'form-key')
    expect((await clerk.ask(`PATCH /api/api-keys/${row.id}`, form(fields))).status).toBe(200)
    expect(await onlyKey(clerk)).toEqual(before)
  })

  test('offers no option that is stored without effect', async () => {
    const html = await page((await open()).app, '/keys/new')
    expect(html).not.toMatch(/name="transportPolicyOverride"|value="credits"/)
  })

  test('invalid values are rejected as in JSON, and no key is created', async () => {
    const { app } = await open()
    const response = await app.ask('POST /api/api-keys/', {
      ...form([
        ['name', 'x'],
        ['enforcedReasoningEffort', 'high'],
        ['allowedReasoningEfforts', 'low'],
      ]),
    })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('not both')
    expect((await (await app.ask('GET /api/api-keys/')).json()) as ApiKey[]).toEqual([])
  })

  test('without scripts, redirects to the page that says what was done', async () => {
    const { app } = await open()
    const { row } = await app.key()
    const sent = form([['isActive', 'false']])
    const { 'hx-request': _, ...headers } = { ...sent.headers, ...HTML }
    const response = await app.ask(`PATCH /api/api-keys/${row.id}`, { body: sent.body, headers })
    expect([response.status, response.headers.get('location')]).toEqual([303, `/keys/${row.id}?done=api_key_updated`])
  })
})

interface Trends {
  tokens: { t: string; v: number }[]
  cost: { t: string; v: number }[]
}

interface Usage {
  totalCostUsd: number
  accountCosts: { email: string | null }[]
}

const json = async <T>(app: TestApp, path: string): Promise<T> => (await app.ask(`GET ${path}`)).json() as Promise<T> // as: tests check the fields they use

const body = (route: string) => (route.startsWith('GET') ? undefined : { model: 'gpt-5.5' })
