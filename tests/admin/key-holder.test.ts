/** `/key`: the page for the holder of a key, with its own session. */
import { describe, expect, test } from 'bun:test'
import { keySessions } from '../../db/schema/keys.ts'
import { codexBody, testApp } from '../support/app.ts'
import { type Browser, people, problem, REMOTE } from '../support/people.ts'

const HTML = { accept: 'text/html' }
const HOUR_MS = 3_600_000

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 1, ...options })
  const crowd = people(app)
  await app.change({ keyHolderPage: true, apiKeyAuthEnabled: true })
  const enter = async (secret: string, browser = crowd.browser(REMOTE)) => {
    const response = await browser.ask('POST /api/key/session', { json: { secret } })
    return { response, browser }
  }
  const turn = async (key: string) =>
    (
      await app.ask('POST /backend-api/codex/responses', {
        json: codexBody(),
        headers: { authorization: `Bearer ${key}`, 'user-agent': 'secret machine' },
        peer: '100.64.77.13',
      })
    ).text()
  return { app, ...crowd, enter, turn }
}

const USAGE = { usedPercent: 25, windowMinutes: 300, resetAt: Date.UTC(2027, 0) }

const view = async (browser: Browser) => (await browser.ask('GET /key')).json()

describe('entering a key', () => {
  test('the page and its routes answer 404 while the setting is off', async () => {
    const { app, browser } = await open()
    await app.change({ keyHolderPage: false })
    for (const route of ['GET /key', 'POST /api/key/session', 'POST /api/key/logout', 'POST /api/key/secret'])
      expect([route, ...(await problem(await browser(REMOTE).ask(route)))]).toEqual([route, 404, 'not_found'])
  })

  test('shows only the key that was entered', async () => {
    const { app, enter, turn, browser } = await open()
    const own = await app.key({
      name: 'laptop',
      limits: [{ limitType: 'requests', limitWindow: 'daily', maxValue: 10, modelFilter: '' }],
    })
    const other = await app.key({ name: 'other key' })
    for (const { sim } of app.members) sim.setUsage({ primary: USAGE })
    await turn(own.key)
    await turn(other.key)
    await app.rows()
    expect(await view(browser(REMOTE))).toMatchObject({ isKeyNeeded: true })
    const { response, browser: mine } = await enter(own.key)
    expect([response.status, await response.json()]).toEqual([200, { keyId: own.row.id, name: 'laptop' }])
    const shown = await view(mine)
    expect(shown).toMatchObject({
      name: 'laptop',
      state: 'active',
      limits: [{ limitType: 'requests', currentValue: 1, maxValue: 10, resetAt: expect.any(String) }],
      requests: [{ status: 'ok', model: 'gpt-5.5' }],
      pool: [{ window: '5h', remainingPercent: 75 }],
      mayRegenerate: false,
    })
    const text = JSON.stringify(shown) + (await (await mine.ask('GET /key', { headers: HTML })).text())
    for (const secret of ['100.64.77.13', 'secret machine', 'other key', other.row.id, own.key, 'example.test'])
      expect([secret, text.includes(secret)]).toEqual([secret, false])
    for (const { id } of app.members) expect(text).not.toContain(id)
  })

  test('works without script, by a form', async () => {
    const { app, browser } = await open()
    const { key } = await app.key({ name: 'laptop' })
    const visitor = browser(REMOTE)
    const headers = { ...HTML, referer: 'http://localhost:2455/key' }
    const form = (secret: string) => ({
      body: new URLSearchParams({ secret }).toString(),
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
    })
    const wrong = await visitor.ask('POST /api/key/session', form('wrong'))
    expect([wrong.status, wrong.headers.get('location')]).toEqual([303, '/key?problem=invalid_key'])
    expect(await (await visitor.ask('GET /key?problem=invalid_key', { headers: HTML })).text()).toContain(
      'does not work',
    )
    const right = await visitor.ask('POST /api/key/session', form(key))
    expect([right.status, right.headers.get('location')]).toEqual([303, '/key'])
    expect(await (await visitor.ask('GET /key', { headers: HTML })).text()).toContain('<h1>laptop</h1>')
    await visitor.ask('POST /api/key/logout', { headers })
    expect(await view(visitor)).toMatchObject({ isKeyNeeded: true })
    expect(await app.db.select().from(keySessions).all()).toEqual([])
  })

  test.each([
    ['unknown', async () => 'sk-clb-unknown'],
    [
      'disabled',
      async ({ app, as }: Awaited<ReturnType<typeof open>>) => {
        const { key, row } = await app.key()
        await (await as('admin')).ask(`PATCH /api/api-keys/${row.id}`, { json: { isActive: false } })
        return key
      },
    ],
    [
      'expired',
      async ({ app }: Awaited<ReturnType<typeof open>>) => (await app.key({ expiresAt: app.clock.now() - 1 })).key,
    ],
  ])('rejects one that is %s with the same message', async (_, toKey) => {
    const world = await open()
    const { response } = await world.enter(await toKey(world))
    const { error } = (await response.json()) as { error: object } // as: an error response
    expect([response.status, error]).toEqual([
      401,
      { code: 'invalid_key', message: 'This key does not work. It may be wrong, turned off, expired or replaced.' },
    ])
  })

  test('checks eight wrong keys per minute and client', async () => {
    const { app, enter, browser, audit } = await open()
    const { key } = await app.key()
    const attacker = browser('192.0.2.50')
    for (let n = 0; n < 8; n++) expect((await enter(`wrong ${n}`, attacker)).response.status).toBe(401)
    const limited = await enter(key, attacker)
    expect(await problem(limited.response)).toEqual([429, 'key_rate_limited'])
    expect((await enter(key)).response.status).toBe(200)
    await app.clock.advance('1m')
    expect((await enter(key, attacker)).response.status).toBe(200)
    expect((await audit()).filter(({ event }) => event === 'login_failed')).toHaveLength(8)
  })

  test('is for clients the firewall allows', async () => {
    const { app, as, enter, browser } = await open()
    const { key } = await app.key()
    await (await as('admin')).ask('POST /api/firewall/ips', { json: { ipAddress: '100.64.77.0/24' } })
    expect(await problem((await enter(key)).response)).toEqual([403, 'ip_forbidden'])
    expect((await enter(key, browser('100.64.77.1'))).response.status).toBe(200)
  })

  test('is rejected from another site', async () => {
    const { app, browser } = await open()
    const { key } = await app.key()
    const misled: Record<string, string>[] = [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }]
    for (const headers of misled)
      for (const route of ['POST /api/key/session', 'POST /api/key/secret', 'POST /api/key/logout'])
        expect(await problem(await browser(REMOTE).ask(route, { json: { secret: key }, headers }))).toEqual([
          403,
          'cross_site_request_rejected',
        ])
  })
})

describe('the session', () => {
  test('has its own cookie, and neither cookie opens the other session', async () => {
    const { app, as, enter, browser } = await open()
    const { key } = await app.key()
    const admin = await as('admin', { peer: REMOTE })
    const { response, browser: holder } = await enter(key)
    expect(response.headers.get('set-cookie')).toMatch(
      /^sluice_key=[^;]{40,}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
    )
    expect(await problem(await holder.ask('GET /api/api-keys'))).toEqual([401, 'authentication_required'])
    expect(await problem(await holder.ask('GET /dashboard'))).toEqual([401, 'authentication_required'])
    expect(await view(admin)).toMatchObject({ isKeyNeeded: true })
    const token = holder.cookie?.replace('sluice_key=', '')
    const swapped = Object.assign(browser(REMOTE), { cookie: `sluice_session=${token}` })
    expect(await problem(await swapped.ask('GET /api/api-keys'))).toEqual([401, 'authentication_required'])
    const other = Object.assign(browser(REMOTE), {
      cookie: admin.cookie?.replace('sluice_session', 'sluice_key') ?? null,
    })
    expect(await view(other)).toMatchObject({ isKeyNeeded: true })
  })

  test('is a __Host- cookie on https, where one without the prefix is ignored', async () => {
    const { app } = await open({
      environment: {
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
        CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.1/32',
      },
    })
    const { key } = await app.key()
    const headers = { host: 'sluice.test', 'x-forwarded-for': REMOTE, 'x-forwarded-proto': 'https' }
    const peer = '10.0.0.1'
    const response = await app.ask('POST /api/key/session', { json: { secret: key }, headers, peer })
    const set = response.headers.get('set-cookie') ?? ''
    expect(set).toMatch(/^__Host-sluice_key=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
    const [pair = ''] = set.split(';')
    const shownTo = async (cookie: string) =>
      (await app.ask('GET /key', { headers: { ...headers, cookie }, peer })).json()
    expect(await shownTo(pair)).toMatchObject({ state: 'active' })
    expect(await shownTo(pair.replace('__Host-', ''))).toMatchObject({ isKeyNeeded: true })
  })

  const ENDS: Record<
    string,
    (world: Awaited<ReturnType<typeof open>>, id: string) => Promise<Promise<unknown> | unknown>
  > = {
    'after 12 hours': ({ app }) => app.clock.advance(12 * HOUR_MS),
    'when the key is deleted': async ({ as }, id) => (await as('admin')).ask(`DELETE /api/api-keys/${id}`),
    'when the key gets a new secret': async ({ as }, id) =>
      (await as('admin')).ask(`POST /api/api-keys/${id}/regenerate`),
    'when the key is turned off, also when it is turned on again': async ({ as }, id) => {
      const admin = await as('admin')
      for (const isActive of [false, true]) await admin.ask(`PATCH /api/api-keys/${id}`, { json: { isActive } })
    },
    'when the key expires': ({ app }) => app.clock.advance(2 * HOUR_MS),
    'when the page is turned off': ({ app }) => app.change({ keyHolderPage: false }),
  }

  test.each(Object.keys(ENDS))('ends %s', async (when) => {
    const world = await open()
    const { key, row } = await world.app.key({
      expiresAt: when.includes('expires') ? world.app.clock.now() + HOUR_MS : null,
    })
    const { browser: holder } = await world.enter(key)
    expect(await view(holder)).toMatchObject({ state: 'active' })
    await ENDS[when]?.(world, row.id)
    expect(await view(holder)).not.toMatchObject({ state: 'active' })
  })

  test('ends when the owner of the key is disabled, also when they are enabled again', async () => {
    const world = await open()
    const owner = (await world.add({ role: 'member' })).row.id
    const { browser: holder } = await world.enter((await world.app.key({ ownerUserId: owner })).key)
    const admin = await world.as('admin')
    for (const status of ['disabled', 'active'])
      await admin.ask(`PATCH /api/dashboard-users/${owner}`, { json: { status } })
    await admin.ask(`POST /api/dashboard-users/${owner}/reactivate-keys`)
    expect(await view(holder)).toMatchObject({ isKeyNeeded: true })
  })

  test('a key has at most 20; the oldest end', async () => {
    const { app, enter } = await open()
    const { key } = await app.key()
    const first = (await enter(key)).browser
    for (let n = 0; n < 20; n++) {
      await app.clock.advance('10s')
      await enter(key)
    }
    expect(await app.db.select().from(keySessions).all()).toHaveLength(20)
    expect(await view(first)).toMatchObject({ isKeyNeeded: true })
  })
})

describe('a new secret', () => {
  test('is created if the owner allows it; the old secret and its other sessions end', async () => {
    const { app, enter, audit } = await open()
    const { key, row } = await app.key({ name: 'laptop', holderMayRegenerate: true })
    const { browser: holder } = await enter(key)
    const { browser: elsewhere } = await enter(key)
    const response = await holder.ask('POST /api/key/secret')
    const made = (await response.json()) as { key: string } // as: checked here
    expect([response.status, made]).toMatchObject([200, { id: row.id, name: 'laptop' }])
    expect(await view(holder)).toMatchObject({ name: 'laptop', keyPrefix: made.key.slice(0, 15) })
    expect(await view(elsewhere)).toMatchObject({ isKeyNeeded: true })
    expect((await enter(key)).response.status).toBe(401)
    expect((await enter(made.key)).response.status).toBe(200)
    expect((await audit()).filter(({ event }) => event === 'api_key_regenerated')).toMatchObject([
      { actor: row.id, actorName: 'laptop', method: 'api_key', target: row.id },
    ])
  })

  test('is created once by a session that asks twice at the same time', async () => {
    const { app, enter } = await open()
    const { browser: holder } = await enter((await app.key({ holderMayRegenerate: true })).key)
    const twice = await Promise.all([holder.ask('POST /api/key/secret'), holder.ask('POST /api/key/secret')])
    expect(twice.map(({ status }) => status).toSorted()).toEqual([200, 401])
  })

  test('is shown on a page without scripts, and not to users without the permission', async () => {
    const { app, enter, browser } = await open()
    const allowed = await enter((await app.key({ holderMayRegenerate: true })).key)
    const page = await allowed.browser.ask('POST /api/key/secret', { headers: HTML })
    expect([page.status, (await page.text()).includes('sk-clb-')]).toEqual([200, true])
    const denied = await enter((await app.key()).key)
    expect(await problem(await denied.browser.ask('POST /api/key/secret'))).toEqual([403, 'holder_may_not_regenerate'])
    expect(await problem(await browser(REMOTE).ask('POST /api/key/secret'))).toEqual([401, 'key_session_ended'])
  })

  test('the pool is hidden as it is from the client', async () => {
    const { app, enter, turn } = await open()
    for (const { sim } of app.members) sim.setUsage({ primary: USAGE })
    await turn((await app.key()).key)
    const { browser: closed } = await enter((await app.key({ usageSections: 'upstream_limits' })).key)
    expect(await view(closed)).toMatchObject({ pool: null })
    const { browser: opened } = await enter((await app.key()).key)
    expect(await view(opened)).toMatchObject({ pool: [{ remainingPercent: 75 }] })
    await app.change({ hideUpstreamQuotaFromApiKeys: true })
    expect(await view(opened)).toMatchObject({ pool: null })
  })
})
