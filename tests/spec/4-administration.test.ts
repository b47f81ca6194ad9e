/** Spec §2, role capability summary, over the administration routes of §4: visible and hidden fields of each role. */
import { describe, expect, test } from 'bun:test'
import { everyRoute } from '../../src/routes/every-route.ts'
import { codexBody, testApp } from '../support/app.ts'
import { type Browser, people, problem } from '../support/people.ts'

/** One account with a rejected request, one key, one firewall entry; then a browser of each role. */
const open = async () => {
  const app = await testApp({ accounts: [{ email: 'anna.smith@example.com' }] })
  const { as, guest, addRole } = people(app)
  const id = app.members[0]?.id ?? ''
  const admin = await as('admin')
  await admin.ask('PATCH /api/settings', { json: { apiKeyAuthEnabled: true } })
  const made = await admin.ask('POST /api/api-keys/', { json: { name: 'laptop of anna' } })
  const { key, id: keyId } = (await made.json()) as { key: string; id: string } // as: just created
  const turn = await app.ask('POST /backend-api/codex/responses', {
    json: codexBody('hello', { prompt_cache_key: 'talk' }),
    headers: { authorization: `Bearer ${key}`, 'user-agent': 'codex/1 (secret machine)' },
  })
  await turn.text()
  await app.bindings.ledger.flush()
  await admin.ask('POST /api/firewall/ips', { json: { ipAddress: '127.0.0.1' } })
  await addRole('blank', {})
  const browsers = {
    admin,
    operator: await as('operator'),
    viewer: await as('viewer'),
    guest: await guest(),
    blank: await as('blank'),
  }
  const get = async (who: keyof typeof browsers, path: string) => {
    const response = await browsers[who].ask(`GET ${path}`)
    return { status: response.status, text: await response.text() }
  }
  return { app, id, keyId, browsers, get }
}

const READS = [
  '/api/accounts',
  '/api/request-logs',
  '/api/request-logs/options',
  '/api/settings',
  '/api/firewall/ips',
  '/dashboard',
]
const LOOKERS = ['viewer', 'guest'] as const

describe('§2 Roles: Operator', () => {
  test('sees accounts and keys unmasked', async () => {
    const { get } = await open()
    expect((await get('operator', '/api/accounts')).text).toContain('anna.smith@example.com')
    expect((await get('operator', '/api/api-keys/')).text).toContain('laptop of anna')
    expect((await get('operator', '/api/firewall/ips')).text).toContain('127.0.0.1')
    expect((await get('operator', '/api/request-logs')).text).toContain('laptop of anna')
  })

  test.each(['users:manage', 'security:write', 'audit:read'])('lacks %s', async (permission) => {
    const route = {
      'users:manage': '/api/dashboard-users',
      'security:write': '/api/auth-providers',
      'audit:read': '/api/audit-logs',
    }[permission]
    const { status, text } = await (await open()).get('operator', route ?? '')
    expect([status, JSON.parse(text)]).toEqual([
      403,
      { error: { code: 'permission_required', message: expect.any(String), param: permission } },
    ])
  })

  test('cannot read sensitive log metadata', async () => {
    const { get } = await open()
    const { requests } = JSON.parse((await get('operator', '/api/request-logs')).text)
    expect(requests[0]).toMatchObject({
      conversationId: null,
      useragent: null,
      clientIp: null,
      useragentGroup: 'codex',
    })
    expect(JSON.parse((await get('admin', '/api/request-logs')).text).requests[0]).toMatchObject({
      useragent: expect.stringContaining('secret machine'),
      clientIp: '127.0.0.1',
    })
    expect((await get('operator', '/api/request-logs?conversation_id=x')).status).toBe(403)
  })
})

describe.each(LOOKERS)('§2 Roles: %s', (who) => {
  test('reads accounts with masked addresses and without upstream identifiers', async () => {
    const { id, get } = await open()
    const { status, text } = await get(who, '/api/accounts')
    expect(status).toBe(200)
    expect(JSON.parse(text).accounts).toMatchObject([
      {
        accountId: id,
        email: 'a***@example.com',
        displayName: 'a***@example.com',
        chatgptAccountId: null,
        workspaceId: null,
        workspaceLabel: null,
      },
    ])
  })

  test.each(READS)('finds no address, key or client in %s', async (path) => {
    const { keyId, get } = await open()
    const { status, text } = await get(who, path)
    expect(status).toBe(200)
    for (const secret of ['anna.smith', 'laptop of anna', keyId, 'secret machine']) expect(text).not.toContain(secret)
  })

  test('sees that there is a firewall, but not its addresses', async () => {
    const { get } = await open()
    expect(JSON.parse((await get(who, '/api/firewall/ips')).text)).toEqual({ mode: 'allowlist_active', entries: [] })
  })

  test('has no key inventory', async () => {
    const { status, text } = await (await open()).get(who, '/api/api-keys/')
    expect([status, JSON.parse(text).error]).toEqual([
      403,
      { code: 'permission_required', message: expect.any(String), param: 'api_keys:read' },
    ])
  })

  test('cannot search for hidden values', async () => {
    const { get } = await open()
    const found = async (search: string) =>
      JSON.parse((await get(who, `/api/request-logs?search=${encodeURIComponent(search)}`)).text).requests.length
    expect(await Promise.all(['anna.smith', 'laptop', 'secret machine', 'gpt-5.5'].map(found))).toEqual([0, 0, 0, 1])
  })

  test('while an Admin sees and finds all of it', async () => {
    const { keyId, get } = await open()
    const { text } = await get('admin', '/api/request-logs')
    for (const shown of ['anna.smith', 'laptop of anna', keyId, 'secret machine']) expect(text).toContain(shown)
    for (const search of ['anna.smith', 'laptop', 'secret%20machine'])
      expect(JSON.parse((await get('admin', `/api/request-logs?search=${search}`)).text).requests).toHaveLength(1)
  })

  test('opens one request with the same fields hidden as in the list', async () => {
    const { get } = await open()
    const [entry] = JSON.parse((await get(who, '/api/request-logs')).text).requests
    const { text } = await get(who, `/api/request-logs/${entry.id}`)
    expect(JSON.parse(text)).toMatchObject({
      accountName: 'a***@example.com',
      apiKeyName: null,
      attempts: [{ accountName: 'a***@example.com' }],
    })
  })

  test('reads the settings, but not the number of users without a second factor', async () => {
    const { get } = await open()
    const shown = async (role: 'admin' | typeof who) => JSON.parse((await get(role, '/api/settings')).text)
    expect(await shown(who)).toMatchObject({ usersWithoutTotpCount: null, adminsWithoutTotpCount: null })
    expect(await shown('admin')).toMatchObject({ usersWithoutTotpCount: 4, adminsWithoutTotpCount: 1 })
  })

  test('changes nothing', async () => {
    const { id, keyId, browsers } = await open()
    const asked: [string, unknown, string][] = [
      ['PATCH /api/settings', { capacityWaitSeconds: 1 }, 'read_only_access'],
      ['POST /api/api-keys/', { name: 'x' }, 'read_only_access'],
      [`DELETE /api/api-keys/${keyId}`, undefined, 'read_only_access'],
      [`POST /api/accounts/${id}/pause`, undefined, 'permission_required'],
      ['POST /api/firewall/ips', { ipAddress: '10.0.0.1' }, 'permission_required'],
      ['POST /api/dashboard-users', { username: 'x', role: 'viewer' }, 'permission_required'],
      ['POST /api/dashboard-roles', { name: 'x', grants: [] }, 'permission_required'],
      ['PATCH /api/auth-providers/idp_trusted_header', {}, 'permission_required'],
    ]
    for (const [route, json, code] of asked)
      expect([route, ...(await problem(await browsers[who].ask(route, { json })))]).toEqual([route, 403, code])
  })
})

describe('§2 Roles: one without permissions', () => {
  test.each([...READS, '/api/api-keys/', '/api/dashboard-users', '/api/dashboard-roles', '/api/auth-providers'])(
    '%s is rejected',
    async (path) => {
      const { browsers } = await open()
      expect(await problem(await (browsers.blank as Browser).ask(`GET ${path}`))).toEqual([403, 'permission_required'])
    },
  )
})

const CHANGES = everyRoute.filter(
  ({ method, path }) => method !== 'GET' && /^\/api\/(dashboard-users|dashboard-roles|auth-providers)\b/.test(path),
)

describe('§4 Dashboard administration: every change about users', () => {
  test('the list of routes is not empty', () => {
    expect(CHANGES.length).toBeGreaterThanOrEqual(13)
  })

  for (const { method, path } of CHANGES) {
    const route = `${method} ${path.replaceAll(/:\w+/g, 'usr_x')}`

    test(`${method} ${path} is rejected for all except a confirmed Admin`, async () => {
      const app = await testApp({ accounts: 0 })
      const { as, add, guest, browser } = people(app)
      await add({ role: 'admin' })
      const { key } = await app.key()
      const ask = async (who: Browser, headers = {}) => problem(await who.ask(route, { json: {}, headers }))
      expect(await ask(browser())).toEqual([401, 'authentication_required'])
      expect(await ask(browser(), { authorization: `Bearer ${key}` })).toEqual([401, 'authentication_required'])
      for (const who of [await guest(), await as('viewer'), await as('operator'), await as('member')])
        expect(await ask(who)).toEqual([403, 'permission_required'])
      expect(await ask(await as('admin', { isConfirmed: false }))).toEqual([403, 'step_up_required'])
      expect(await ask(await as('admin'), { origin: 'https://evil.example' })).toEqual([
        403,
        'cross_site_request_rejected',
      ])
      const [status] = await ask(await as('admin'))
      expect([404, 422]).toContain(status)
    })
  }
})
