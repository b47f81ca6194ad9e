/** Spec §2, role capability summary, over the whole route table: no response has a value hidden from the role. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { endAccount } from '../../src/model/automations/runs.ts'
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, testApp } from '../support/app.ts'
import { type Browser, people, REMOTE } from '../support/people.ts'
import { SOURCE_URL } from '../support/source/app.ts'

/** The values of the fixture below; the clients of the keys connect from `CLIENT`, which the firewall allows. */
const EMAIL = 'anna.smith@example.com'
const TAG = 'seat-of-anna'
const KEY_NAME = 'laptop of anna'
const SOURCE_KEY = 'sk-source-secret-key'
const METADATA = 'hint-for-the-source'
const CLIENT = '100.64.77.13'
const AGENT = 'secret machine'
const PROXY = {
  name: 'Egress of Grace',
  scheme: 'socks5h',
  host: 'egress.internal',
  port: 1080,
  username: 'proxy-login',
}
const POOL = 'Exit in Reykjavik'
const PROMPT = 'what an operator wrote'

/**
 * Two accounts, one of them rejected with a message that names it, a used key, a conversation, a firewall entry; then
 * the viewers.
 */
const open = async () => {
  const app = await testApp({ accounts: [{ email: EMAIL }, { email: 'grace.hopper@example.com' }] })
  const { add, as, guest } = people(app)
  const admin = await as('admin', { username: 'root' })
  await app.change({ apiKeyAuthEnabled: true })
  const { key, row } = await app.key({ name: KEY_NAME, ownerUserId: admin.person.row.id })
  const [{ id, sim }, other] = app.members as [(typeof app.members)[0], (typeof app.members)[0]]
  sim.setResetCredits([{ id: 'credit', expiresAt: app.clock.now() + 86_400_000, grantedAt: 0 }])
  const { id: automation } = (await (
    await admin.ask('POST /api/automations', {
      json: { name: 'Mornings', schedule: { time: '07:55' }, prompt: PROMPT, accountIds: [id] },
    })
  ).json()) as { id: string } // as: just created
  const { id: run } = (await (await admin.ask(`POST /api/automations/${automation}/run-now`)).json()) as { id: string } // as: the same
  await commit(app.db, (tx) =>
    endAccount(tx, run, {
      accountId: id,
      now: app.clock.now(),
      status: 'failed',
      ended: { code: 'not_for_you', message: `Not for ${EMAIL}` },
    }),
  )
  const owner = await add({ username: 'ada', role: 'viewer' })
  await admin.ask(`PATCH /api/accounts/${id}`, {
    json: { ownerUserId: owner.row.id, reserveForOwner: true, tags: [TAG] },
  })
  await admin.ask('POST /api/firewall/ips', { json: { ipAddress: '100.64.77.0/24' } })
  const metadata = JSON.stringify({ header: METADATA })
  await admin.ask('POST /api/model-sources/', {
    json: {
      name: 'Rack',
      baseUrl: SOURCE_URL,
      apiKey: SOURCE_KEY,
      models: [{ model: 'm', rawMetadataJson: metadata }],
    },
  })
  app.source.fail('echo_key')
  const [source] = app.bindings.sources.enabled
  await admin.ask(`POST /api/model-sources/${source?.id}/test`, { json: {} })
  const egress = '/api/settings/upstream-proxy'
  const { id: endpointId } = (await (await admin.ask(`POST ${egress}/endpoints`, { json: PROXY })).json()) as {
    id: string // as: just created
  }
  const { id: poolId } = (await (
    await admin.ask(`POST ${egress}/pools`, { json: { name: POOL, endpointIds: [endpointId] } })
  ).json()) as { id: string } // as: the same
  const turn = async () => {
    const response = await app.ask('POST /backend-api/codex/responses', {
      json: codexBody('hello', { prompt_cache_key: 'talk' }),
      headers: { authorization: `Bearer ${key}`, 'user-agent': `codex/1 (${AGENT})` },
      peer: CLIENT,
    })
    return response.text()
  }
  const capture = app.bindings.captures.start({
    ...{ keyId: row.id, accountId: null, minutes: 60, maxBytes: 1e6 },
    startedBy: { id: 'test', name: null },
  })
  await turn()
  await app.ask('POST /backend-api/codex/responses', {
    headers: { authorization: `Bearer ${row.keyPrefix}-of-nobody`, 'user-agent': `codex/1 (${AGENT})` },
    peer: CLIENT,
  })
  for (const member of app.members)
    member.sim.always({
      status: 400,
      body: { error: { message: `Not for ${EMAIL}`, code: 'not_for_you', type: null } },
    })
  await turn()
  // As requests that all fail leave it behind; the overview shows the newest.
  const refused = { kind: 'normal', status: 'error', errorMessage: `Not for ${EMAIL}` } as const
  for (let n = 0; n < 4; n++) app.bindings.ops.outage.count({ row: refused, isServiceFault: true })
  app.bindings.pool.apply(other.id, {
    kind: 'auth_failed',
    at: app.clock.now(),
    code: 'token_invalidated',
    evidence: `${EMAIL} was thrown out`,
  })
  await app.clock.advance(0)
  await admin.ask(`PUT ${egress}/accounts/${id}/binding`, { json: { poolId } })
  const [first] = await app.rows()
  const secrets = {
    'an e-mail address of an account': 'anna.smith',
    'the other address': 'grace.hopper',
    'a tag of an account': TAG,
    'the owner of an account': owner.row.id,
    'the address of a model source': new URL(SOURCE_URL).host,
    'what is sent to a model source': METADATA,
    'the words of a model source': 'Incorrect API key',
    'an upstream identifier': app.bindings.pool.get(id)?.row.chatgptAccountId ?? '',
    'the name of a key': KEY_NAME,
    'the prefix of a key': row.keyPrefix,
    'the id of a key': row.id,
    'the hash of a conversation': first?.conversationHash ?? '',
    'the address of a client': '100.64.77.',
    'the program of a client': AGENT,
    'the words of the upstream': 'Not for',
    'the prompt of an automation': PROMPT,
    'the name of an outbound proxy': PROXY.name,
    'the host of an outbound proxy': PROXY.host,
    'the user name of an outbound proxy': PROXY.username,
    'the name of a pool of proxies': POOL,
    'the id of a pool of proxies': poolId,
    'its words about an account': 'was thrown out',
  }
  const ids = {
    conversation: first?.conversationHash ?? '',
    account: id,
    key: row.id,
    request: first?.id ?? '',
    automation,
    run,
    person: admin.person.row.id,
    capture: capture.id,
    source: source?.id ?? '',
    channel: 'alc_1',
  }
  const lookers = { viewer: await as('viewer', { peer: REMOTE }), guest: await guest('192.0.2.9') }
  return { admin, lookers, secrets, ids }
}

/** What a viewer can read; a route with parameters has the ones that show most. */
const SHOWN = [
  '/health',
  '/health/live',
  '/health/ready',
  '/health/startup',
  '/api/settings',
  '/api/accounts',
  '/api/firewall/ips',
  '/api/model-sources/',
  '/api/model-sources',
  '/api/automations',
  '/api/automations?search=what%20an%20operator',
  '/api/automations/options',
  '/api/automations/runs',
  '/api/automations/runs/options',
  '/api/automations/runs/:id/details',
  '/api/automations/:id/runs',
  '/api/request-logs',
  '/api/request-logs?search=anna.smith',
  '/api/request-logs/export',
  '/api/request-logs/export?format=ndjson',
  '/api/usage/summary',
  '/api/usage/history',
  '/api/usage/window',
  '/api/request-logs/options',
  '/api/rejected-clients',
  '/api/request-logs/:id',
  '/api/dashboard-auth/session',
  '/api/dashboard-auth/me',
  '/api/dashboard-auth/passkeys',
  '/api/dashboard-auth/sessions',
  '/api/doctor',
  '/doctor',
  '/api/openapi.json',
  '/docs',
  '/docs/api',
  '/accounts',
  '/accounts/:id',
  '/accounts/:id?tab=statement',
  '/accounts/:id?tab=routing',
  '/accounts/:id?tab=events',
  '/accounts/:id?tab=credentials',
  '/api/accounts/:id/trends',
  '/api/accounts/:id/statement',
  '/api/accounts/:id/statement?format=csv',
  '/api/accounts/:id/rate-limit-reset-credits',
  '/logs',
  '/logs?status=error',
  '/logs?status=rejected',
  '/logs/tail?after=2020-01-01T00:00:00Z',
  '/logs/export',
  '/logs/export?format=json&status=rejected',
  '/accounts/simulator',
  '/accounts/simulator?model=gpt-5.5',
  '/logs/:id',
  '/reports',
  '/reports/strategies',
  '/reports/strategies?run=1',
  '/api/explain',
  '/api/reports',
  '/api/reports/strategies',
  '/api/quota-planner/settings',
  '/api/quota-planner/forecast',
  '/api/quota-planner/decisions',
  '/api/reports?format=csv',
  '/settings/routing',
  '/settings/automations',
  '/settings/automations/:id',
  '/settings/automations/runs/:id',
  '/settings/sources',
  '/settings/sources/:id',
  '/settings/network',
  '/settings/data',
  '/settings/about',
  '/settings/search',
  '/settings/search?q=account',
  '/search',
  '/search?q=account',
  '/search?q=a',
  '/dashboard',
  '/footer',
  '/capture-line',
  '/bell',
  '/confirm',
  '/me',
  '/me/two-factor',
  '/api/shares',
  '/settings',
]

/** What a viewer gets an error for, which reveals nothing either. */
const REFUSED = [
  '/api/api-keys/',
  '/api/api-keys',
  '/api/dashboard-users/:id/sessions',
  '/api/dashboard-users',
  '/api/dashboard-users/invites',
  '/api/dashboard-roles',
  '/api/dashboard-roles/permissions',
  '/api/auth-providers',
  '/api/audit-logs',
  '/api/oauth/status',
  '/accounts/new',
  '/accounts/new/browser',
  '/accounts/new/device',
  '/accounts/new/import',
  '/accounts/import',
  '/metrics',
  '/api/backups',
  '/api/captures',
  '/api/conversation-archive',
  '/api/conversation-archive/:id',
  '/logs/captures',
  '/logs/captures/:id',
  '/logs/:id/captured',
  '/keys',
  '/keys/new',
  '/keys/:id',
  '/keys/:id/edit',
  '/api/api-keys/:id/trends',
  '/api/api-keys/:id/usage-7d',
  '/settings/data/sizes',
  '/settings/automations/new',
  '/settings/sources/new',
  '/settings/alerts',
  '/settings/alerts/new',
  '/settings/alerts/:id',
  '/api/alerts',
  '/api/alerts/deliveries',
  '/api/alerts/channels',
  '/settings/access',
  '/settings/routing/sessions',
  '/api/sticky-sessions',
  '/api/settings/upstream-proxy',
  '/logs/conversations',
  '/logs/conversations/:hash',
  '/api/conversations',
  '/api/conversations/',
  '/api/conversations/:hash',
  '/audit',
]

/** What sends a viewer on to another page. */
const ELSEWHERE = ['/', '/apis', '/login', '/totp', '/setup', '/auth/pending']

/** Not requested, with the reason. */
const LEFT_OUT: Record<string, string> = {
  '/key': 'for the holder of a key; off here',
  '/api/events': 'an endless stream; its events name fragments, which are requested themselves',
  '/doctor/stream': 'a measurement',
  '/doctor/socket': 'a measurement',
  '/doctor/checks': 'the same for all who can test keys',
  '/api/backups/:name': 'a download of everything, for those who hold every permission',
  '/assets/:file': 'the same for everyone',
  '/docs/:guide': 'the same for everyone',
  '/logs/explain': 'a redirect to /accounts/simulator',
  '/invite/:token': 'for the holder of the link',
  '/api/dashboard-auth/invite/:token': 'for the holder of the link',
}

const ASKED = [...SHOWN, ...REFUSED, ...ELSEWHERE]
const FORMATS = ['application/json', 'text/html']

type World = Awaited<ReturnType<typeof open>>

/** The route with the id of what its path names. */
const toPath = (route: string, { ids }: World): string => {
  const begins = {
    sources: ids.source,
    alerts: ids.channel,
    runs: ids.run,
    automations: ids.automation,
    accounts: ids.account,
    keys: ids.key,
    logs: ids.request,
    users: ids.person,
    captures: ids.capture,
    'conversation-archive': ids.request,
  }
  const [, id] = Object.entries(begins).find(([of]) => route.includes(`${of}/:id`)) ?? []
  if (route.includes('/:id') && id === undefined) throw new Error(`Nobody knows an id for ${route}.`)
  return route.replace(':id', id ?? '').replace(':hash', ids.conversation)
}

interface Answer {
  route: string
  accept: string
  status: number
  text: string
}

const answersFor = async (world: World, browser: Browser): Promise<Answer[]> => {
  const answers: Answer[] = []
  for (const route of ASKED)
    for (const accept of FORMATS) {
      const response = await browser.ask(`GET ${toPath(route, world)}`, { headers: { accept } })
      const headers = [...response.headers].flat().join('\n')
      answers.push({ route, accept, status: response.status, text: `${headers}\n${await response.text()}` })
    }
  return answers
}

/** The secrets found in the responses, with their location. */
const found = (answers: readonly Answer[], { secrets }: World): string[] =>
  answers.flatMap(({ route, accept, text }) =>
    Object.entries(secrets).flatMap(([what, secret]) =>
      text.includes(secret) ? `${what} in ${route}, ${accept}` : [],
    ),
  )

test('every read route is requested, or excluded for a reason', () => {
  const known = new Set([...ASKED.map((route) => route.split('?')[0]), ...Object.keys(LEFT_OUT)])
  const reads = everyRoute
    .filter(({ method, access }) => method === 'GET' && access[0]?.access !== 'client-key')
    .map(({ path }) => path)
  expect(reads.filter((path) => !known.has(path))).toEqual([])
  expect([...known.difference(new Set(reads))]).toEqual([])
})

describe('§2 Roles: what viewers and guests cannot see', () => {
  let world: World
  beforeAll(async () => {
    world = await open()
  })

  test('is in no response to a viewer, who can read everything for viewers', async () => {
    const answers = await answersFor(world, world.lookers.viewer)
    expect(found(answers, world)).toEqual([])
    const statuses = (routes: string[]) =>
      new Set(answers.flatMap(({ route, status }) => (routes.includes(route) ? status : [])))
    expect(statuses(SHOWN)).toEqual(new Set([200]))
    expect(statuses(REFUSED).difference(new Set([401, 403, 303]))).toEqual(new Set()) // 303: to the sign-in
    expect(statuses(ELSEWHERE)).toEqual(new Set([301, 302]))
  })

  test('is in no response to a guest', async () => {
    const answers = await answersFor(world, world.lookers.guest)
    expect(found(answers, world)).toEqual([])
    const failed = answers.filter(({ status }) => status === 404 || status === 422 || status >= 500)
    expect(failed.map(({ route, status }) => [route, status])).toEqual([])
  })

  test('is all visible to an Admin, as JSON and on pages', async () => {
    const seen = found(await answersFor(world, world.admin), world).join('\n')
    for (const what of Object.keys(world.secrets)) expect(seen).toContain(`${what} in `)
    for (const [what, route] of [
      ['an e-mail address of an account', '/accounts'],
      ['the name of a key', '/dashboard'],
      ['the prefix of a key', '/keys'],
      ['the hash of a conversation', '/logs/:id'],
      ['the address of a client', '/logs/:id'],
      ['the words of the upstream', '/dashboard'],
    ])
      for (const accept of FORMATS) expect(seen).toContain(`${what} in ${route}, ${accept}`)
  })
})
