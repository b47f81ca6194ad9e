/** Spec §2, Member: sees their own keys and their requests, and nothing of other users, in any response. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, testApp } from '../support/app.ts'
import { type Browser, people, REMOTE } from '../support/people.ts'

const EMAIL = 'anna.smith@example.com'

/** A key of Mia, one of Otto and one without an owner; each answered once, failed once and was rejected once. */
const open = async () => {
  const app = await testApp({ accounts: [{ email: EMAIL }, { email: 'grace.hopper@example.com' }] })
  const { as } = people(app)
  const mia = await as('member', { username: 'mia', peer: REMOTE })
  const otto = await as('member', { username: 'otto' })
  await app.change({ apiKeyAuthEnabled: true })
  const own = await app.key({ name: 'laptop of mia', ownerUserId: mia.person.row.id })
  const keys = {
    others: await app.key({ name: 'secret laptop', ownerUserId: otto.person.row.id }),
    ownerless: await app.key({ name: 'build server', ownerUserId: null }),
  }
  const turn = async (key: string, talk: string, model?: string) =>
    (
      await app.ask(`POST ${model ? '/v1' : '/backend-api/codex'}/responses`, {
        json: codexBody('hello', { prompt_cache_key: talk, ...(model && { model }) }),
        headers: { authorization: `Bearer ${key}`, 'user-agent': `${talk}/1` },
        peer: '100.64.77.13',
      })
    ).text()
  for (const [name, { key }] of Object.entries({ own, ...keys })) await turn(key, `talk-${name}`)
  for (const { sim } of app.members)
    sim.always({ status: 400, body: { error: { message: `Not for ${EMAIL}`, code: 'not_for_you', type: null } } })
  for (const [name, { key }] of Object.entries({ own, ...keys })) await turn(key, `talk-${name}`)
  const admin = await as('admin', { username: 'root' })
  for (const [model, { row, key }] of Object.entries({ 'model-own': own, 'model-others': keys.others })) {
    await admin.ask(`PATCH /api/api-keys/${row.id}`, { json: { allowedModels: ['gpt-5.5'] } })
    await turn(key, 'talk', model)
    await app.clock.advance('1m')
  }
  app.bindings.captures.start({
    ...{ keyId: keys.others.row.id, accountId: null, minutes: 60, maxBytes: 1e6 },
    startedBy: { id: otto.person.row.id, name: 'otto' },
  })
  const rows = await app.rows()
  const getRequest = (id: string) => rows.find(({ keyId }) => keyId === id)?.id ?? ''
  const secrets = {
    ...Object.fromEntries(
      Object.entries(keys).flatMap(([whose, { row }]) => [
        [`the id of the ${whose} key`, row.id],
        [`the name of the ${whose} key`, row.name],
        [`the prefix of the ${whose} key`, row.keyPrefix],
        [`a request of the ${whose} key`, getRequest(row.id)],
        [`the client of the ${whose} key`, `talk-${whose}`],
      ]),
    ),
    'the rejected model of the other key': 'model-others',
    'the id of the other owner': otto.person.row.id,
    'the name of the other owner': 'otto',
    'an account': 'anna.smith',
    'another account': 'grace.hopper',
    'the id of an account': app.members[0]!.id,
    'the id of another account': app.members[1]!.id,
    'the words of ChatGPT': 'Not for',
    'the address of a client': '100.64.77.13',
  }
  return { app, mia, otto, admin, own, keys, getRequest, secrets }
}

/** With the ids of Mia's own key and request. */
const OPEN = [
  '/dashboard',
  '/dashboard?range=today',
  '/dashboard?range=30d',
  '/keys',
  '/keys?q=laptop',
  '/keys/new',
  '/keys/:id',
  '/keys/:id/edit',
  '/logs',
  '/logs?status=error',
  '/logs?status=rejected',
  '/logs?search=secret',
  '/logs?live=true&columns=tool',
  '/logs/:id',
  '/logs/tail?after=2020-01-01T00:00:00Z',
  '/logs/export',
  '/logs/export?format=json',
  '/logs/export?format=json&status=rejected',
  '/reports',
  '/reports?stack=key',
  '/reports?stack=account',
  '/reports?stack=client&measure=tokens',
  '/reports?measure=latency&range=today',
  '/search',
  '/search?q=laptop',
  '/search?q=a',
  '/api/api-keys',
  '/api/api-keys/',
  '/api/api-keys/:id/trends',
  '/api/api-keys/:id/usage-7d',
  '/api/request-logs',
  '/api/request-logs?search=laptop',
  '/api/request-logs/options',
  '/api/request-logs/export',
  '/api/request-logs/export?format=ndjson&status=error',
  '/api/request-logs/:id',
  '/api/rejected-clients',
  '/api/reports',
  '/api/reports?format=csv',
  '/api/dashboard-auth/session',
  '/api/dashboard-auth/me',
  '/api/dashboard-auth/passkeys',
  '/api/dashboard-auth/sessions',
  '/api/shares',
  '/api/openapi.json',
  '/me',
  '/me/two-factor',
  '/settings',
  '/capture-line',
  '/bell',
  '/confirm',
  '/docs',
  '/docs/api',
  '/docs/operating',
]

/** Readable by everyone, or no page: not about anyone's data. */
const UNGUARDED =
  /^\/$|^\/(health|assets)\b|^\/(key|apis|login|totp|setup|auth\/pending|metrics|footer)$|^\/(api\/dashboard-auth\/)?invite\/|^\/doctor|^\/api\/events$|^\/api\/codex|^\/api\/fleet/

type World = Awaited<ReturnType<typeof open>>

const withIds = (route: string, { key, request }: { key: string; request: string }): string =>
  route.replace(/(api-keys|keys)\/:id/, `$1/${key}`).replace(/(logs)\/:id/, `$1/${request}`)

const leaks = (text: string, { secrets }: World): string[] =>
  Object.entries(secrets).flatMap(([what, secret]) => (secret !== '' && text.includes(secret) ? [what] : []))

const answer = async (browser: Browser, path: string, accept: string) => {
  const response = await browser.ask(`GET ${path}`, { headers: { accept } })
  return { status: response.status, text: `${[...response.headers].flat().join('\n')}\n${await response.text()}` }
}

describe('§2 Member: own views', () => {
  let world: World
  beforeAll(async () => {
    world = await open()
  })

  test('are available to a Member, and do not reveal other keys, their owners, or accounts', async () => {
    const { mia, own, getRequest } = world
    const found: unknown[] = []
    for (const route of OPEN)
      for (const accept of ['application/json', 'text/html']) {
        const path = withIds(route, { key: own.row.id, request: getRequest(own.row.id) })
        const { status, text } = await answer(mia, path, accept)
        if (status !== 200 || leaks(text, world).length > 0) found.push([path, accept, status, ...leaks(text, world)])
      }
    expect(found).toEqual([])
  })

  test('show their own data', async () => {
    const { mia, own } = world
    const keys = (await (await mia.ask('GET /api/api-keys')).json()) as { id: string }[] // as: checked here
    expect(keys.map(({ id }) => id)).toEqual([own.row.id])
    const logs = (await (await mia.ask('GET /api/request-logs')).json()) as object // as: checked here
    expect(logs).toMatchObject({
      total: 2,
      requests: [
        { apiKeyId: own.row.id, accountId: null, accountName: null, planType: null, errorMessage: null },
        { apiKeyId: own.row.id, apiKeyName: 'laptop of mia' },
      ],
    })
    expect(await (await mia.ask('GET /api/rejected-clients')).json()).toMatchObject({
      items: [{ apiKeyId: own.row.id, model: 'model-own' }],
    })
    const report = await (await mia.ask('GET /api/reports')).json()
    expect(report).toMatchObject({
      summary: { requests: 2, errors: 1, activeAccounts: 0 },
      byKey: [{ id: own.row.id, requests: 2 }],
      byAccount: [],
      byClient: [{ id: 'talk-own' }],
    })
    const csv = await (await mia.ask('GET /api/reports?format=csv')).text()
    expect(
      csv
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => line.split(',').slice(2, 5)),
    ).toEqual([
      ['', 'laptop of mia', '1'],
      ['', 'laptop of mia', '1'],
    ])
    expect(await (await mia.ask('GET /dashboard')).json()).toMatchObject({
      summary: { requests: 2 },
      keys: [{ id: own.row.id, state: 'active' }],
    })
    expect(await (await mia.ask('GET /api/request-logs/options')).json()).toMatchObject({
      accountIds: [],
      apiKeys: [{ id: own.row.id }],
    })
  })

  test('answer 404 for the key or request of another user, the same as for an unknown id', async () => {
    const { mia, keys, getRequest } = world
    for (const [key, request] of [
      ...Object.values(keys).map(({ row }) => [row.id, getRequest(row.id)] as const),
      ['key_unknown', 'unknown'] as const,
    ])
      for (const route of OPEN.filter((path) => path.includes('/:id'))) {
        const path = withIds(route, { key, request })
        const response = await mia.ask(`GET ${path}`)
        const { error } = (await response.json()) as { error: object } // as: every error has it
        const unknown = await mia.ask(`GET ${withIds(route, { key: 'key_unknown', request: 'unknown' })}`)
        expect([path, response.status, error]).toEqual([path, 404, ((await unknown.json()) as { error: object }).error])
      }
  })

  test('filter by other keys to nothing, and by accounts and conversations not at all', async () => {
    const { mia, app, keys } = world
    for (const { row } of Object.values(keys)) {
      const logs = await (await mia.ask(`GET /api/request-logs?apiKeyId=${row.id}`)).json()
      expect(logs).toMatchObject({ requests: [], total: 0 })
      const report = await (await mia.ask(`GET /api/reports?api_key_id=${row.id}`)).json()
      expect(report).toMatchObject({ summary: { requests: 0 }, byKey: [] })
    }
    expect(await (await mia.ask('GET /api/reports?api_key_id=(none)')).json()).toMatchObject({ byKey: [] })
    for (const [path, param] of [
      [`/api/request-logs?accountId=${app.members[0]!.id}`, 'accounts:read'],
      [`/api/reports?account_id=${app.members[0]!.id}`, 'accounts:read'],
      [`/logs?accountId=${app.members[0]!.id}`, 'accounts:read'],
      ['/api/request-logs?conversation_id=x', 'conversations:read'],
    ]) {
      const response = await mia.ask(`GET ${path}`)
      expect([path, response.status, await response.json()]).toEqual([
        path,
        403,
        { error: expect.objectContaining({ code: 'permission_required', param }) },
      ])
    }
  })

  test('are all a Member can read: every other route answers 403 and names the missing permission', async () => {
    const { mia, own, getRequest, app } = world
    const opened = new Set(OPEN.map((route) => route.split('?')[0]))
    const others = everyRoute.filter(
      ({ method, path, access }) =>
        method === 'GET' && access[0]?.access !== 'client-key' && !UNGUARDED.test(path) && !opened.has(path),
    )
    const answers: unknown[] = []
    for (const { path } of others) {
      if (path === '/docs/:guide') continue
      const place = withIds(path, { key: own.row.id, request: getRequest(own.row.id) })
        .replace(/accounts\/:id/, `accounts/${app.members[0]!.id}`)
        .replace(/:\w+/g, 'x')
      const response = await mia.ask(`GET ${place}`)
      const { error } = (await response.json()) as { error?: { code: string; param?: string } } // as: an error response
      const isNamed = error?.code === 'permission_required' && error.param !== undefined
      if (response.status !== 403 || !isNamed) answers.push([path, response.status, error])
    }
    expect(others.length).toBeGreaterThan(20)
    expect(answers).toEqual([])
  })
})
