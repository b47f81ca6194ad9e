/** Outbound proxies over the JSON API: endpoints and pools, permissions, and that no password is returned. */
import { describe, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { type TestApp, testApp } from '../support/app.ts'
import { dump } from '../support/dump.ts'
import { people } from '../support/people.ts'
import { EXIT_ADDRESS } from '../support/upstream/routes.ts'

const PATH = '/api/settings/upstream-proxy'
const PROXY = {
  name: 'Frankfurt',
  scheme: 'socks5h',
  host: 'proxy.test',
  port: 1080,
  username: 'u',
  password: 'hunter2!',
}

// biome-ignore lint/suspicious/noExplicitAny: whatever the answer is, the tests look at it
type Answer = { status: number; body: any }

const door =
  (app: TestApp) =>
  async (route: string, json?: unknown): Promise<Answer> => {
    const [method, path] = route.split(' ')
    const response = await app.ask(`${method} ${PATH}${path}`, json === undefined ? {} : { json })
    return { status: response.status, body: await response.json() }
  }

const problem = ({ status, body }: Answer) => [status, body.error?.code]

/** An endpoint, and a pool with it. */
const furnished = async () => {
  const app = await testApp({ accounts: 2 })
  const ask = door(app)
  const endpoint = (await ask('POST /endpoints', PROXY)).body
  const pool = (await ask('POST /pools', { name: 'Europe', endpointIds: [endpoint.id] })).body
  return { app, ask, endpoint, pool, accountId: app.members[0]?.id ?? '' }
}

test('without endpoints, connections follow the environment', async () => {
  expect((await door(await testApp())('GET ')).body).toEqual({
    routingEnabled: false,
    defaultPoolId: null,
    endpoints: [],
    pools: [],
    bindings: [],
  })
})

describe('a proxy endpoint', () => {
  test('is created, listed and changed without ever returning its password', async () => {
    const { app, ask, endpoint } = await furnished()
    const { password: _, ...shown } = PROXY
    expect(endpoint).toEqual({
      id: expect.stringMatching(/^egr_/),
      ...shown,
      isActive: true,
      hasPassword: true,
      lastTest: null,
      failingSince: null,
    })
    const renamed = await ask(`PATCH /endpoints/${endpoint.id}`, { name: 'Berlin', password: '' })
    expect(renamed.body).toEqual({ ...endpoint, name: 'Berlin' })
    const all = await ask('GET ')
    expect(all.body.endpoints).toEqual([renamed.body])
    expect(JSON.stringify(all.body)).not.toContain('hunter2')
    expect(JSON.stringify(dump(app.sqlite))).not.toContain('hunter2')
  })

  test('keeps its password when it is omitted or empty, but not for another host', async () => {
    const { app, ask, endpoint } = await furnished()
    const sealed = async () =>
      (await app.db.get<{ p: string | null }>(sql`SELECT password_sealed AS p FROM egress_endpoints`))?.p
    const before = await sealed()
    await ask(`PATCH /endpoints/${endpoint.id}`, { username: 'other', password: '' })
    expect(await sealed()).toBe(before)
    for (const change of [{ host: 'evil.test' }, { port: 9 }, { scheme: 'http', password: '' }]) {
      const refused = await ask(`PATCH /endpoints/${endpoint.id}`, change)
      expect(problem(refused)).toEqual([400, 'proxy_password_required'])
    }
    expect((await ask(`PATCH /endpoints/${endpoint.id}`, { host: 'new.test', password: 'again' })).status).toBe(200)
    expect((await ask(`PATCH /endpoints/${endpoint.id}`, { password: null })).body.hasPassword).toBe(false)
    expect((await ask(`PATCH /endpoints/${endpoint.id}`, { host: 'third.test' })).status).toBe(200)
  })

  test.each([
    ['another scheme', { scheme: 'ftp' }],
    ['a URL for a host', { host: 'http://proxy.test' }],
    ['a host with a path', { host: 'proxy.test/x' }],
    ['a host with a user', { host: 'u@proxy.test' }],
    ['a host with a port', { host: 'proxy.test:80' }],
    ['no host', { host: ' ' }],
    ['port 0', { port: 0 }],
    ['port 65536', { port: 65_536 }],
    ['a name of 129 letters', { name: 'x'.repeat(129) }],
    ['a user name with a line break', { username: 'a\r\nHost: b' }],
    ['a password with a line break', { password: 'a\r\nHost: b' }],
    ['a lone surrogate', { password: '\ud800' }],
    ['a colon in the user name of an HTTP proxy', { scheme: 'http', username: 'a:b' }],
    ['a SOCKS password of 256 bytes', { password: 'ä'.repeat(128) }],
    ['an unknown field', { weight: 2 }],
  ])('rejects %s', async (_what, change) => {
    expect(problem(await door(await testApp())('POST /endpoints', { ...PROXY, ...change }))).toEqual([
      422,
      'validation_error',
    ])
  })

  test.each(['::1', '[2001:db8::1]', 'PROXY.test', '192.0.2.1', 'proxy_1.internal'])('can be at %s', async (host) => {
    const { status, body } = await door(await testApp())('POST /endpoints', { ...PROXY, host })
    expect([status, body.host]).toEqual([200, host.toLowerCase().replace(/[[\]]/g, '')])
  })

  test('has a unique name', async () => {
    const { ask, endpoint } = await furnished()
    const other = (await ask('POST /endpoints', { ...PROXY, name: 'Other' })).body
    expect(problem(await ask('POST /endpoints', PROXY))).toEqual([409, 'name_taken'])
    expect(problem(await ask(`PATCH /endpoints/${other.id}`, { name: endpoint.name }))).toEqual([409, 'name_taken'])
    expect((await ask(`PATCH /endpoints/${other.id}`, { name: 'Other' })).status).toBe(200)
  })

  test('leaves its pools when it is deleted', async () => {
    const { ask, endpoint, pool } = await furnished()
    expect((await ask(`DELETE /endpoints/${endpoint.id}`)).body).toEqual({ status: 'deleted' })
    const [left] = (await ask('GET ')).body.pools
    expect(left).toMatchObject({ id: pool.id, endpointIds: [], reason: 'pool_has_no_active_endpoints' })
    expect(problem(await ask(`DELETE /endpoints/${endpoint.id}`))).toEqual([400, 'proxy_endpoint_not_found'])
  })

  test('is tested by its own request, whose result is kept until the endpoint changes', async () => {
    const { app, ask, endpoint } = await furnished()
    const seen: string[] = []
    app.wire.before = async (url) => void seen.push(url)
    const result = { ok: true, statusCode: 200, elapsedMs: 0, exitAddress: EXIT_ADDRESS, error: null }
    expect((await ask(`POST /endpoints/${endpoint.id}/test`)).body).toEqual({ endpointId: endpoint.id, ...result })
    expect(seen).toEqual(['http://upstream.test/cdn-cgi/trace'])
    const shown = async () => (await ask('GET ')).body.endpoints[0].lastTest
    expect(await shown()).toEqual({ ...result, at: new Date(app.clock.now()).toISOString() })
    await ask(`PATCH /endpoints/${endpoint.id}`, { name: 'Still the same' })
    expect(await shown()).not.toBeNull()
    await ask(`PATCH /endpoints/${endpoint.id}`, { username: 'other' })
    expect(await shown()).toBeNull()
    expect(problem(await ask('POST /endpoints/egr_gone/test'))).toEqual([400, 'proxy_endpoint_not_found'])
  })

  test('that cannot connect, gets another answer, or has an unreadable password fails its test with a message', async () => {
    const { app, ask, endpoint } = await furnished()
    const failing = async () => (await ask(`POST /endpoints/${endpoint.id}/test`)).body
    app.wire.before = async () => {
      throw new TypeError('reset')
    }
    expect(await failing()).toMatchObject({ ok: false, statusCode: null, error: expect.stringContaining('lost') })
    app.wire.before = null
    app.sqlite.run(
      `UPDATE egress_endpoints SET password_sealed = 'v1.00000000.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA'`,
    )
    await app.bindings.egress.reload()
    expect(await failing()).toMatchObject({ ok: false, error: expect.stringContaining('password') })
    const [pool] = (await ask('GET ')).body.pools
    expect(pool.reason).toBe('proxy_credentials_undecryptable')
  })
})

describe('a proxy pool', () => {
  test('uses its endpoints in order, which can be changed', async () => {
    const { ask, endpoint, pool } = await furnished()
    const second = (await ask('POST /endpoints', { ...PROXY, name: 'Second' })).body
    const added = await ask(`POST /pools/${pool.id}/members`, { endpointId: second.id })
    expect(added.body.endpointIds).toEqual([endpoint.id, second.id])
    const moved = await ask(`PATCH /pools/${pool.id}/members/${endpoint.id}`, { sortOrder: 9 })
    expect(moved.body.endpointIds).toEqual([second.id, endpoint.id])
    const off = await ask(`PATCH /pools/${pool.id}/members/${second.id}`, { isActive: false })
    expect(off.body.members).toEqual([
      { endpointId: second.id, sortOrder: 1, isActive: false },
      { endpointId: endpoint.id, sortOrder: 9, isActive: true },
    ])
    expect((await ask(`DELETE /pools/${pool.id}/members/${second.id}`)).body.endpointIds).toEqual([endpoint.id])
  })

  test('rejects unknown and duplicate entries', async () => {
    const { ask, endpoint, pool } = await furnished()
    const two = [endpoint.id, endpoint.id]
    expect(problem(await ask('POST /pools', { name: 'A', endpointIds: two }))).toEqual([
      400,
      'proxy_pool_member_duplicate',
    ])
    expect(problem(await ask('POST /pools', { name: 'A', endpointIds: ['x'] }))).toEqual([
      400,
      'proxy_endpoint_not_found',
    ])
    expect(problem(await ask('POST /pools', { name: 'Europe' }))).toEqual([409, 'name_taken'])
    const member = { endpointId: endpoint.id }
    expect(problem(await ask(`POST /pools/${pool.id}/members`, member))).toEqual([400, 'proxy_pool_member_duplicate'])
    expect(problem(await ask('POST /pools/gone/members', member))).toEqual([400, 'proxy_pool_not_found'])
    expect(problem(await ask(`POST /pools/${pool.id}/members`, { endpointId: 'x' }))).toEqual([
      400,
      'proxy_endpoint_not_found',
    ])
    expect(problem(await ask(`PATCH /pools/${pool.id}/members/x`, {}))).toEqual([400, 'proxy_endpoint_not_found'])
    expect(problem(await ask('DELETE /pools/gone'))).toEqual([400, 'proxy_pool_not_found'])
  })

  test('cannot be deleted while an account or the settings need it', async () => {
    const { app, ask, pool, accountId } = await furnished()
    const binding = { accountId, poolId: pool.id, isActive: true }
    expect((await ask(`PUT /accounts/${accountId}/binding`, { poolId: pool.id })).body).toEqual(binding)
    expect((await ask('GET ')).body.bindings).toEqual([binding])
    expect(problem(await ask(`DELETE /pools/${pool.id}`))).toEqual([409, 'proxy_pool_in_use'])
    await ask(`PUT /accounts/${accountId}/binding`, { poolId: null })
    await app.change({ egressDefaultPoolId: pool.id })
    expect(problem(await ask(`DELETE /pools/${pool.id}`))).toEqual([409, 'proxy_pool_in_use'])
    await app.change({ egressDefaultPoolId: null })
    expect((await ask(`DELETE /pools/${pool.id}`)).body).toEqual({ status: 'deleted' })
  })

  test('cannot be assigned when it no longer exists', async () => {
    const { app, ask, pool, accountId } = await furnished()
    expect(problem(await ask(`PUT /accounts/${accountId}/binding`, { poolId: 'gone' }))).toEqual([
      400,
      'proxy_pool_not_found',
    ])
    expect(problem(await ask('PUT /accounts/gone/binding', { poolId: pool.id }))).toEqual([404, 'account_not_found'])
    const patch = await app.ask('PATCH /api/settings', { json: { egressDefaultPoolId: 'gone' } })
    expect([patch.status, ((await patch.json()) as Answer['body']).error.code]).toEqual([400, 'proxy_pool_not_found'])
  })
})

describe('permissions for proxies', () => {
  const ROUTES = [
    ['POST /endpoints', { ...PROXY, name: 'Another' }],
    ['PATCH /endpoints/:endpoint', { name: 'New' }],
    ['DELETE /endpoints/:endpoint', undefined],
  ] as const
  const rights = async (role: string, isConfirmed: boolean) => {
    const { app, endpoint } = await furnished()
    const who = await people(app).as(role, { isConfirmed })
    const asked = async (route: string, json?: unknown) => {
      const response = await who.ask(route, json === undefined ? {} : { json })
      return response.status < 300 ? 'ok' : ((await response.json()) as Answer['body']).error.code
    }
    const results = []
    for (const [route, json] of ROUTES) {
      const [method, path] = route.replace(':endpoint', endpoint.id).split(' ')
      results.push(await asked(`${method} ${PATH}${path}`, json))
    }
    results.push(await asked('PATCH /api/settings', { egressRouting: true }))
    return results
  }

  test.each([
    ['operator', 'permission_required'],
    ['viewer', 'read_only_access'],
  ])('%s cannot change endpoints or the rule', async (role, ofSettings) => {
    const refused = ['permission_required', 'permission_required', 'permission_required', ofSettings]
    expect(await rights(role, true)).toEqual(refused)
  })

  test('an Admin can, after a confirmation', async () => {
    expect(await rights('admin', false)).toEqual(Array.from({ length: 4 }, () => 'step_up_required'))
    expect(await rights('admin', true)).toEqual(['ok', 'ok', 'ok', 'ok'])
  })

  test('an Operator can view, test, assign and order them; a Viewer and a guest cannot view them', async () => {
    const { app, endpoint, pool, accountId } = await furnished()
    await app.change({ guestAccessEnabled: true })
    const { as, guest } = people(app)
    const operator = await as('operator')
    const steps: [string, unknown][] = [
      [`POST ${PATH}/endpoints/${endpoint.id}/test`, undefined],
      [`PATCH ${PATH}/pools/${pool.id}/members/${endpoint.id}`, { sortOrder: 2 }],
      [`PUT ${PATH}/accounts/${accountId}/binding`, { poolId: pool.id }],
    ]
    expect((await operator.ask(`GET ${PATH}`)).status).toBe(200)
    for (const [route, json] of steps) {
      expect([route, (await operator.ask(route, json === undefined ? {} : { json })).status]).toEqual([route, 200])
      for (const who of [await as('viewer'), await guest()])
        expect([route, (await who.ask(route, json === undefined ? {} : { json })).status]).toEqual([route, 403])
    }
    for (const who of [await as('viewer'), await guest()]) expect((await who.ask(`GET ${PATH}`)).status).toBe(403)
  })
})

describe('proxies on pages', () => {
  const page = async (who: { ask: TestApp['ask'] }, path: string) =>
    (await who.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()

  test('an Operator sees proxies and pools without passwords, a Viewer and a guest see neither', async () => {
    const { app, pool, accountId, ask } = await furnished()
    await app.change({ guestAccessEnabled: true })
    await ask(`PUT /accounts/${accountId}/binding`, { poolId: pool.id })
    const { as, guest } = people(app)
    const seen = await page(await as('operator'), '/settings/network')
    for (const text of ['socks5h://u@proxy.test:1080', 'Europe', 'Used by']) expect(seen).toContain(text)
    expect(seen).not.toContain('hunter2')
    expect(await page(await as('operator'), `/accounts/${accountId}?tab=routing`)).toContain(
      'Connects through Frankfurt of the pool Europe',
    )
    expect(await page(await as('operator'), '/accounts/new/browser')).toContain('name="egressPoolId"')
    for (const who of [await as('viewer'), await guest()]) {
      for (const path of ['/settings/network', `/accounts/${accountId}?tab=routing`, '/api/settings'])
        expect(await page(who, path)).not.toMatch(/proxy\.test|Frankfurt|Europe|egressRouting|setting-egress/)
    }
  })
})
