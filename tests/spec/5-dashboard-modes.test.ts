/** Spec §5, dashboard auth modes, and guest sign-in. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { identities } from '../../db/schema/people.ts'
import { warnOfOpenDashboard } from '../../src/auth/bootstrap.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, problem, REMOTE, REQUEST_FORMATS, TOTP_SECRET } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const PROXY = {
  CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
  CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
  CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
}
const VIA = { 'x-forwarded-for': '192.0.2.7' }

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

/** A browser behind the proxy, which announces `subject`, or no user. */
const proxied = (house: Awaited<ReturnType<typeof open>>, subject?: string) => {
  const browser = house.browser('10.0.0.1')
  const headers: Record<string, string> = subject === undefined ? VIA : { ...VIA, 'remote-user': subject }
  return {
    browser,
    ask: (route: string, json?: object) => browser.ask(route, { json, headers }),
    session: async () => (await browser.ask(`GET ${AUTH}/session`, { headers })).json(),
  }
}

describe('§5 mode standard', () => {
  test('ignores all headers about the user', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const refused = await browser().ask('GET /api/settings', { headers: { 'remote-user': 'admin' } })
    expect(await problem(refused)).toEqual([401, 'authentication_required'])
  })
})

describe('§5 mode disabled', () => {
  const house = () => open({ environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } })

  test('every client is the administrator, without a user', async () => {
    const { browser } = await house()
    expect(await browser(REMOTE).session()).toMatchObject({
      authenticated: true,
      authMode: 'disabled',
      authMethod: 'disabled',
      passwordManagementEnabled: false,
      role: 'admin',
      user: null,
    })
    expect((await browser(REMOTE).ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.0/24' } })).status).toBe(
      200,
    )
  })

  test.each([
    ['POST', 'password/setup', { password: 'a long password' }],
    ['POST', 'password/login', { password: 'x' }],
    ['POST', 'password/change', { currentPassword: 'x', newPassword: 'a long password' }],
    ['DELETE', 'password', { password: 'x' }],
    ['POST', 'totp/setup/start', undefined],
    ['POST', 'totp/setup/confirm', { secret: 'A'.repeat(32), code: '123456' }],
    ['POST', 'totp/verify', { code: '123456' }],
    ['POST', 'totp/disable', { code: '123456' }],
  ])('%s %s is disabled', async (method, path, json) => {
    const answer = await (await house()).browser(REMOTE).ask(`${method} ${AUTH}/${path}`, { json })
    expect(await problem(answer)).toEqual([400, 'password_management_disabled'])
  })

  const under = async (host: string, environment = {}) => {
    const { browser } = await open({ environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled', ...environment } })
    const headers = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
    const answer = await browser(REMOTE).ask('POST /api/firewall/ips', { json: { ipAddress: '192.0.2.0/24' }, headers })
    return problem(answer)
  }

  test.each(['localhost:2455', '127.0.0.1:2455', '[::1]:2455', '192.0.2.1', 'sluice:2455'])(
    'a page under %s is ours',
    async (host) => {
      expect(await under(host)).toEqual([200, null])
    },
  )

  test.each(['evil.example', 'evil.example:2455', 'localhost.evil.example', 'evil.', '127.0.0.1.evil.example'])(
    'a name that another site can point here is rejected: %s',
    async (host) => {
      expect(await under(host)).toEqual([400, 'bad_host'])
    },
  )

  test('unless it is the configured one', async () => {
    const environment = { CODEX_LB_PUBLIC_URL: 'https://sluice.example' }
    expect(await under('sluice.example', environment)).toEqual([200, null])
    expect(await under('evil.example', environment)).toEqual([400, 'bad_host'])
  })

  describe('behind a trusted proxy', () => {
    const TRUST = {
      CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled',
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
    }
    const via = async (more: Record<string, string | undefined>, peer = '10.0.0.1') => {
      const { browser } = await open({ environment: TRUST })
      const all = { 'x-forwarded-for': REMOTE, ...more }
      const headers = Object.fromEntries(Object.entries(all).flatMap(([name, value]) => (value ? [[name, value]] : [])))
      return problem(await browser(peer).ask('GET /api/settings', { headers }))
    }

    test.each<Record<string, string>>([
      { host: 'sluice.home.example', 'x-forwarded-proto': 'https' },
      { host: 'backend.internal.example', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'sluice.home.example' },
      { host: 'sluice.home.example:8080', 'x-forwarded-proto': 'http' },
      { host: '127.0.0.1:2455', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'sluice.home.example' },
      { host: 'sluice.home.example' },
      { host: 'backend.internal.example', 'x-forwarded-host': 'sluice.home.example' },
    ])('the name that the proxy forwards is ours: %j', async (headers) => {
      expect(await via(headers)).toEqual([200, null])
    })

    test.each<[Record<string, string | undefined>, peer: string]>([
      [{ host: 'evil.example', 'x-forwarded-for': undefined }, '10.0.0.1'],
      [{ host: 'evil.example', 'x-forwarded-proto': 'https' }, REMOTE],
      [{ host: 'evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'sluice.home.example' }, '127.0.0.1'],
      [{ host: 'evil.example', 'x-forwarded-host': 'sluice.example, evil.example' }, '10.0.0.1'],
    ])('a name forwarded by an untrusted peer is rejected: %j from %p', async (headers, peer) => {
      expect(await via(headers, peer)).toEqual([400, 'bad_host'])
    })
  })

  test.each(['/login', '/setup', '/totp', '/login?return=%2Fkeys', '/setup?return=%2Fkeys'])(
    '%s redirects to the dashboard',
    async (path) => {
      const { add, browser } = await house()
      const goal = path.includes('keys') ? '/keys' : '/dashboard'
      const visit = async () => {
        let response = await browser(REMOTE).ask(`GET ${path}`, { headers: { accept: 'text/html' } })
        while (response.headers.get('location')?.startsWith('/login'))
          response = await browser(REMOTE).ask(`GET ${response.headers.get('location')}`, {
            headers: { accept: 'text/html' },
          })
        return [response.status, response.headers.get('location')]
      }
      expect(await visit()).toEqual([302, goal])
      await add({ username: 'admin', role: 'admin' }) // from a time with passwords
      expect(await visit()).toEqual([302, goal])
    },
  )

  test('/login under a foreign name explains the problem', async () => {
    const { browser } = await house()
    const headers = { accept: 'text/html', host: 'evil.example' }
    for (const path of ['/login', '/setup']) {
      const response = await browser(REMOTE).ask(`GET ${path}`, { headers })
      expect([response.status, (await response.text()).includes('<code>bad_host</code>')]).toEqual([400, true])
    }
  })

  test('each start warns that every client is an administrator', async () => {
    const { app } = await house()
    warnOfOpenDashboard(app.bindings)
    expect(app.lines.join()).toContain('sign-in is turned off')
    const other = await open()
    warnOfOpenDashboard(other.app.bindings)
    expect(other.app.lines.join()).not.toContain('sign-in is turned off')
  })

  test('personal routes need a user', async () => {
    for (const route of [`GET ${AUTH}/me`, `POST ${AUTH}/step-up`, `POST ${AUTH}/logout-all`])
      expect(
        await problem(await (await house()).browser().ask(route, { json: route.startsWith('POST') ? {} : undefined })),
      ).toEqual([401, 'user_account_required'])
  })
})

describe('§5 mode trusted_header', () => {
  test('without the header, the password is the fallback', async () => {
    const house = await open({ environment: PROXY })
    await house.add({ username: 'admin', role: 'admin' })
    const here = proxied(house)
    const refused = await here.ask('GET /api/settings')
    expect([refused.status, (await refused.json()).error]).toMatchObject([
      401,
      { code: 'proxy_auth_required', details: { fallback: true } },
    ])
    expect((await here.ask(`POST ${AUTH}/password/login`, { password: PASSWORD })).status).toBe(200)
    expect((await here.ask('GET /api/settings')).status).toBe(200)
    expect(await here.session()).toMatchObject({ authMethod: 'password', passwordSessionActive: true })
  })

  test('a user with users:manage creates the local administrator and stays signed in', async () => {
    const house = await open({ environment: PROXY })
    const anna = proxied(house, 'anna')
    const setUp = async () => problem(await anna.ask(`POST ${AUTH}/password/setup`, { password: 'break glass' }))
    expect(await setUp()).toEqual([403, 'step_up_unavailable'])
    await anna.ask(`POST ${AUTH}/totp/setup/confirm`, { secret: TOTP_SECRET, code: house.code() })
    expect(await setUp()).toEqual([403, 'step_up_required'])
    expect((await anna.ask(`POST ${AUTH}/step-up`, { code: house.code(1) })).status).toBe(200)
    expect(await setUp()).toEqual([200, null])
    expect(await anna.session()).toMatchObject({ authMethod: 'trusted_header', user: { username: 'anna' } })
    const alone = proxied(house)
    const login = await alone.ask(`POST ${AUTH}/password/login`, { username: 'admin', password: 'break glass' })
    expect(login.status).toBe(200)
    expect((await alone.session()).user).toMatchObject({ username: 'admin', role: { slug: 'admin' } })
    expect((await house.audit()).find(({ event }) => event === 'password_set')?.actorName).toBe('anna')
  })

  test('others cannot: without header, permission, or a role that holds as much', async () => {
    const house = await open({ environment: PROXY })
    const setUp = async (subject?: string) =>
      problem(await proxied(house, subject).ask(`POST ${AUTH}/password/setup`, { password: 'break glass' }))
    expect(await setUp()).toEqual([401, 'proxy_auth_required'])
    await proxied(house, 'anna').ask('GET /api/settings')
    house.app.sqlite.run("UPDATE users SET role_id = 'role_viewer'")
    expect(await setUp('anna')).toEqual([403, 'permission_required'])
    const manager = await house.addRole('manager', { 'users:manage': 'all' })
    house.app.sqlite.run('UPDATE users SET role_id = ?', [manager])
    expect(await setUp('anna')).toEqual([403, 'insufficient_delegation'])
  })

  /** Anna, announced by the proxy, who also has a password here. */
  const annaWithPassword = async (hasTotp: boolean) => {
    const house = await open({ environment: PROXY })
    const { row } = await house.add({ username: 'anna', role: 'admin', hasTotp })
    const identity = { id: 'idn_1', provider: 'trusted_header', subject: 'anna' } as const
    await commit(house.app.db, async (tx) => {
      await tx
        .insert(identities)
        .values({ ...identity, userId: row.id, createdAt: 1 })
        .run()
    })
    const { browser, ask } = proxied(house, 'anna')
    const show = async (route: string, body?: Record<string, string>) => {
      const form = body && { body: new URLSearchParams(body).toString() }
      const type = body && { 'content-type': 'application/x-www-form-urlencoded' }
      const from = { referer: 'http://localhost:2455/me/two-factor', 'sec-fetch-site': 'same-origin' }
      const headers = { ...VIA, 'remote-user': 'anna', accept: 'text/html', ...type, ...from }
      const response = await browser.ask(route, { ...form, headers })
      return response.headers.get('location') ?? response.status
    }
    return { house, ask, show }
  }

  test('a proxy user with a password and second factor signs in with both, and manages them', async () => {
    const { house, ask, show } = await annaWithPassword(true)
    expect(await show('GET /login?return=%2Fme')).toBe(200)
    const login = `POST ${AUTH}/password/login?return=%2Fme`
    expect(await show(login, { username: 'anna', password: PASSWORD })).toBe('/totp?return=%2Fme')
    expect(await show('GET /login?return=%2Fme')).toBe('/totp?return=%2Fme')
    expect(await show('GET /totp?return=%2Fme')).toBe(200)
    expect(await (await ask(`POST ${AUTH}/totp/verify`, { code: house.code() })).json()).toMatchObject({
      passwordSessionActive: true,
    })
    expect(await show('GET /login?return=%2Fme')).toBe('/me')
    const change = { currentPassword: PASSWORD, newPassword: 'another password' }
    expect((await ask(`POST ${AUTH}/password/change`, change)).status).toBe(200)
  })

  test("another user's half sign-in cannot be completed by the announced user's code", async () => {
    const { house, ask } = await annaWithPassword(true)
    await house.add({ username: 'berta', hasTotp: true })
    expect((await ask(`POST ${AUTH}/password/login`, { username: 'berta', password: PASSWORD })).status).toBe(200)
    const after = await ask(`POST ${AUTH}/totp/verify`, { code: house.code() })
    expect(await after.json()).toMatchObject({ passwordSessionActive: false, user: { username: 'anna' } })
  })

  test('a proxy user at the enrollment gate can pass it', async () => {
    const { house, show } = await annaWithPassword(false)
    await house.app.change({ totpRequiredOnLogin: true })
    expect(await show('GET /dashboard')).toBe('/me/two-factor')
    const enroll = async () => show(`POST ${AUTH}/totp/setup/confirm`, { secret: TOTP_SECRET, code: house.code() })
    expect(await enroll()).toBe('/login?return=%2Fme%2Ftwo-factor')
    expect(await show('GET /login?return=%2Fme%2Ftwo-factor')).toBe(200)
    const login = `POST ${AUTH}/password/login?return=%2Fme%2Ftwo-factor`
    expect(await show(login, { username: 'anna', password: PASSWORD })).toBe('/me/two-factor')
    expect(await enroll()).toBe(200) // the page that shows the recovery codes
    expect(await show('GET /dashboard')).toBe(200)
  })

  test('managing a password requires entering it, not only the header', async () => {
    const house = await open({ environment: PROXY })
    const anna = proxied(house, 'anna')
    await anna.ask('GET /api/settings')
    const hash = (await house.add({ username: 'other' })).row.passwordHash
    house.app.sqlite.run("UPDATE users SET password_hash = ? WHERE username = 'anna'", [hash])
    const change = { currentPassword: PASSWORD, newPassword: 'another password' }
    expect(await problem(await anna.ask(`POST ${AUTH}/password/change`, change))).toEqual([
      401,
      'authentication_required',
    ])
    expect(await problem(await anna.ask(`POST ${AUTH}/totp/setup/start`))).toEqual([401, 'authentication_required'])
    await anna.ask(`POST ${AUTH}/password/login`, { username: 'anna', password: PASSWORD })
    expect(await anna.session()).toMatchObject({ authMethod: 'trusted_header', passwordSessionActive: true })
    expect((await anna.ask(`POST ${AUTH}/totp/setup/start`)).status).toBe(200)
    expect((await anna.ask(`POST ${AUTH}/password/change`, change)).status).toBe(200)
  })

  test('a user without a password can enroll, because confirming needs a factor', async () => {
    const house = await open({ environment: PROXY })
    expect((await proxied(house, 'anna').ask(`POST ${AUTH}/totp/setup/start`)).status).toBe(200)
  })

  test('a rejected identity is pending', async () => {
    const house = await open({ environment: PROXY })
    await proxied(house, 'anna').ask('GET /api/settings')
    house.app.sqlite.run("UPDATE users SET status = 'disabled'")
    const anna = proxied(house, 'anna')
    expect(await anna.session()).toMatchObject({ authenticated: false, login: { pendingIdentity: true } })
    expect(await problem(await anna.ask('GET /api/settings'))).toEqual([401, 'account_disabled'])
  })
})

describe.each(REQUEST_FORMATS)('§2 Guest: entering without a user (%s)', (how) => {
  const GUEST = `POST ${AUTH}/guest/login`
  const SET = `POST ${AUTH}/guest/password`

  test('with the password all guests share', async () => {
    const { app, as, audit, browser } = await open({ settings: { guestAccessEnabled: true } })
    const anna = await as('admin')
    expect((await anna.send(how, SET, { password: 'for all guests' })).status).toBe(how === 'json' ? 200 : 303)
    const guest = browser(REMOTE)
    expect(await guest.session()).toMatchObject({ authenticated: false, guestPasswordRequired: true })
    expect((await guest.send(how, GUEST, { password: 'for all guests' })).status).toBe(how === 'json' ? 200 : 303)
    expect(await guest.session()).toMatchObject({
      authenticated: true,
      role: 'guest',
      authMethod: 'guest',
      user: null,
      permissions: ['read', 'accounts:read:all', 'dashboard:read:all'],
    })
    expect((await guest.ask('GET /api/settings')).status).toBe(200)
    expect((await audit()).at(-1)).toMatchObject({
      event: 'login_success',
      actor: 'guest',
      details: { method: 'guest' },
    })
    await app.clock.advance('1h')
    expect((await guest.session()).authenticated).toBe(true)
  })

  test("ends the browser's previous session", async () => {
    const { as, browser } = await open({ settings: { guestAccessEnabled: true } })
    const anna = await as('admin')
    await anna.ask(SET, { json: { password: 'for all guests' } })
    const kept = Object.assign(browser(), { cookie: anna.cookie })
    await anna.send(how, GUEST, { password: 'for all guests' })
    expect([(await anna.session()).role, (await kept.session()).authenticated]).toEqual(['guest', false])
  })
})

describe('§2 Guest', () => {
  const GUEST = `POST ${AUTH}/guest/login`

  test('without a password, everyone who is not signed in is a guest', async () => {
    const { as, browser } = await open({ settings: { guestAccessEnabled: true } })
    await as('admin')
    const guest = browser(REMOTE)
    expect(await guest.session()).toMatchObject({ authenticated: true, role: 'guest', guestPasswordRequired: false })
    expect(await (await guest.ask(GUEST, { json: {} })).json()).toMatchObject({ role: 'guest' })
    expect(guest.cookie).toBeNull()
  })

  const WANTED = { accept: 'text/html' }
  const ENDS = {
    'runs out': ({ app }: Awaited<ReturnType<typeof open>>) => app.clock.advance('169h'),
    'is ended by another user': ({ app }: Awaited<ReturnType<typeof open>>) => app.sqlite.run('DELETE FROM sessions'),
  }

  test.each(Object.entries(ENDS))('are not users whose session %s, until they choose so', async (_, end) => {
    for (const how of REQUEST_FORMATS) {
      const opened = await open({ settings: { guestAccessEnabled: true } })
      const { as, browser } = opened
      const ben = await as('operator', { peer: REMOTE })
      const kept = ben.cookie
      await end(opened)
      const refused = () => ben.ask('GET /api/accounts').then(problem)
      expect([await refused(), await refused()]).toEqual(Array(2).fill([401, 'authentication_required']))
      expect(await ben.session()).toMatchObject({ authenticated: false, permissions: [] })
      const led = await ben.ask('GET /logs', { headers: WANTED })
      expect([led.status, led.headers.get('location')]).toEqual([303, '/login?return=%2Flogs'])
      expect(await (await ben.ask('GET /login', { headers: WANTED })).text()).toContain('Continue as guest')
      const entered = await ben.send(how, `${GUEST}?return=%2Flogs`)
      expect([entered.status, entered.headers.get('location')]).toEqual(how === 'json' ? [200, null] : [303, '/logs'])
      expect([ben.cookie, (await ben.session()).role]).toEqual([null, 'guest'])
      expect((await ben.ask('GET /logs', { headers: WANTED })).status).toBe(200)
      const again = Object.assign(browser(REMOTE), { cookie: kept })
      await again.ask(`POST ${AUTH}/password/login`, {
        json: { username: ben.person.row.username, password: PASSWORD },
      })
      expect((await again.session()).user).not.toBeNull()
    }
  })

  test('are accepted immediately with an old cookie if no one can sign in', async () => {
    const { as, browser } = await open({ settings: { guestAccessEnabled: true } })
    await as('admin', { hasPassword: false })
    const visitor = Object.assign(browser(REMOTE), { cookie: `sluice_session=${'x'.repeat(43)}` })
    expect(await visitor.session()).toMatchObject({ authenticated: true, role: 'guest' })
  })

  test('are not allowed by default', async () => {
    const { as, browser } = await open()
    await as('admin')
    expect(await problem(await browser(REMOTE).ask(GUEST, { json: {} }))).toEqual([400, 'guest_access_disabled'])
  })

  test('lose access on their next request when it ends, the password changes, or all are logged out', async () => {
    const { app, as, browser } = await open({ settings: { guestAccessEnabled: true } })
    const anna = await as('admin')
    const set = (password: string) => anna.ask(`POST ${AUTH}/guest/password`, { json: { password } })
    await set('for all guests')
    const enter = async (password: string) => {
      const guest = browser(REMOTE)
      await guest.ask(GUEST, { json: { password } })
      expect((await guest.session()).authenticated).toBe(true)
      return guest
    }
    const first = await enter('for all guests')
    await anna.ask(`POST ${AUTH}/guest/logout-all`)
    expect((await first.session()).authenticated).toBe(false)
    const second = await enter('for all guests')
    await set('another password')
    expect((await second.session()).authenticated).toBe(false)
    const third = await enter('another password')
    await app.change({ guestAccessEnabled: false })
    expect((await third.session()).authenticated).toBe(false)
    expect(await problem(await third.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
  })

  test('are rejected with a password that was changed during the check', async () => {
    const { app, as, browser } = await open({ settings: { guestAccessEnabled: true } })
    const anna = await as('admin')
    const set = (password: string) => anna.ask(`POST ${AUTH}/guest/password`, { json: { password } })
    await set('for all guests')
    const { passwords } = app.bindings
    app.bindings.passwords = {
      ...passwords,
      verify: async (password, hash) => {
        const isRight = await passwords.verify(password, hash)
        await set('another password')
        return isRight
      },
    }
    const guest = browser(REMOTE)
    expect(await problem(await guest.ask(GUEST, { json: { password: 'for all guests' } }))).toEqual([
      401,
      'invalid_credentials',
    ])
    expect((await guest.session()).authenticated).toBe(false)
  })

  test('an operator cannot change any of it', async () => {
    const { as } = await open()
    const operator = await as('operator')
    for (const route of ['guest/password', 'guest/logout-all'])
      expect(
        await problem(await operator.ask(`POST ${AUTH}/${route}`, { json: { password: 'for all guests' } })),
      ).toEqual([403, 'permission_required'])
  })
})
