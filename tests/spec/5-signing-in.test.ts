/** Spec §5, signing in: names and passwords, what a failure reveals, and the limit of attempts. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { passkeys } from '../../db/schema/people.ts'
import { rotateBootstrapToken } from '../../src/model/users/bootstrap-token.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, problem, REMOTE, REQUEST_FORMATS, type RequestFormat } from '../support/people.ts'

const LOGIN = 'POST /api/dashboard-auth/password/login'
const SETUP = 'POST /api/dashboard-auth/password/setup'

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

/** A JSON client gets the current user, a browser a redirect to the next page. */
const expectIn = (how: RequestFormat, response: Response, page = '/dashboard') => {
  expect(response.status).toBe(how === 'json' ? 200 : 303)
  if (how === 'form') expect(response.headers.get('location')?.split('?')[0]).toBe(page)
}

describe.each(REQUEST_FORMATS)('§5 Signing in 1: per user, by name and password (%s)', (how) => {
  test('correct ones sign in, and the cookie is HttpOnly and SameSite', async () => {
    const { add, browser } = await open()
    const anna = await add({ username: 'anna', role: 'admin' })
    const here = browser(REMOTE)
    const response = await here.send(how, LOGIN, { username: ' Anna ', password: PASSWORD })
    expectIn(how, response)
    expect(response.headers.getSetCookie()[0]).toMatch(/^sluice_session=[\w-]{43}; .*HttpOnly; SameSite=Lax$/)
    expect(await here.session()).toMatchObject({
      authenticated: true,
      authMethod: 'password',
      role: 'admin',
      user: { id: anna.row.id, username: 'anna', role: { slug: 'admin' } },
      passwordSessionActive: true,
    })
  })

  test('if only one user has a password, no name is required', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    await add({ username: 'proxied', hasPassword: false })
    const here = browser(REMOTE)
    expect((await here.session()).login).toMatchObject({ usernameField: 'hidden', username_field: 'hidden' })
    expectIn(how, await here.send(how, LOGIN, { password: PASSWORD }))
    expect((await here.session()).user?.username).toBe('admin')
  })

  test('a given name is checked there, too', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    const response = await here.send(how, LOGIN, { username: 'somebody', password: PASSWORD })
    expect(response.headers.getSetCookie()).toEqual([])
    expect((await here.session()).authenticated).toBe(false)
  })
})

describe('§5 Signing in 2: username_required', () => {
  test('once a second user has a password, and without costing an attempt', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    await add({ username: 'anna' })
    const here = browser(REMOTE)
    expect((await here.session()).login.usernameField).toBe('shown')
    for (let i = 0; i < 12; i++)
      expect(await problem(await here.ask(LOGIN, { json: { password: PASSWORD } }))).toEqual([422, 'username_required'])
    expect((await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })).status).toBe(200)
  })

  test('a disabled user does not count as the second', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    await add({ username: 'gone', status: 'disabled' })
    expect((await browser(REMOTE).ask(LOGIN, { json: { password: PASSWORD } })).status).toBe(200)
  })

  test('an empty field of a form is no name', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    expectIn('form', await browser(REMOTE).submit(LOGIN, { username: '', password: PASSWORD }))
  })
})

describe('§5 Signing in 3: invalid_credentials', () => {
  const WRONG: [what: string, fields: { username: string; password: string }][] = [
    ['a wrong name', { username: 'nobody', password: PASSWORD }],
    ['a name no account can have', { username: '<script>', password: PASSWORD }],
    ['a wrong password', { username: 'anna', password: 'not it at all' }],
    ['an empty password', { username: 'anna', password: '' }],
    ['a disabled account', { username: 'gone', password: PASSWORD }],
    ['an invited account', { username: 'new', password: PASSWORD }],
    ['an account without a password', { username: 'proxied', password: PASSWORD }],
  ]
  const house = async () => {
    const opened = await open()
    await opened.add({ username: 'anna' })
    await opened.add({ username: 'berta' })
    await opened.add({ username: 'gone', status: 'disabled' })
    await opened.add({ username: 'new', status: 'invited', hasPassword: false })
    await opened.add({ username: 'proxied', hasPassword: false })
    return opened
  }

  test('is the same response to the byte, whatever is wrong', async () => {
    const answers = []
    for (const [, fields] of WRONG) {
      const response = await (await house()).browser(REMOTE).ask(LOGIN, { json: fields })
      const headers = [...response.headers].filter(([name]) => name !== 'x-request-id')
      answers.push(JSON.stringify([response.status, headers, await response.text()]))
    }
    expect(JSON.parse(answers[0]!)[0]).toBe(401)
    expect(answers[0]).toContain('invalid_credentials')
    expect(new Set(answers).size).toBe(1)
  })

  test.each(WRONG)('hashes once for %s', async (_what, fields) => {
    const { app, browser } = await house()
    const checked: (string | null)[] = []
    const { passwords } = app.bindings
    app.bindings.passwords = {
      ...passwords,
      verify: (password, hash) => {
        checked.push(hash)
        return passwords.verify(password, hash)
      },
    }
    await browser(REMOTE).ask(LOGIN, { json: fields })
    expect(checked).toHaveLength(1)
  })

  test('is recorded without the input', async () => {
    const { browser, audit } = await house()
    await browser(REMOTE).ask(LOGIN, { json: { username: 'hunter2-oops', password: 'hunter2-secret' } })
    expect(await audit()).toMatchObject([
      { event: 'login_failed', actor: 'anonymous', address: REMOTE, target: null, severity: 'warning' },
    ])
    expect(JSON.stringify(await audit())).not.toContain('hunter2')
  })

  test('with no known actor, for the user it was tried on', async () => {
    const { browser, audit, add } = await open()
    const { id } = (await add({ username: 'anna' })).row
    await browser(REMOTE).ask(LOGIN, { json: { username: 'anna', password: 'wrong' } })
    expect(await audit()).toMatchObject([{ event: 'login_failed', actor: 'anonymous', target: id }])
  })

  test('a user who was disabled while their password was checked is not signed in', async () => {
    const { app, browser, add } = await open()
    const anna = await add({ username: 'anna' })
    const { passwords } = app.bindings
    app.bindings.passwords = {
      ...passwords,
      verify: async (password, hash) => {
        const isRight = await passwords.verify(password, hash)
        app.sqlite.run('UPDATE users SET status = ? WHERE id = ?', ['disabled', anna.row.id])
        return isRight
      },
    }
    const refused = await browser(REMOTE).ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
    expect(await problem(refused)).toEqual([401, 'invalid_credentials'])
  })
})

describe('§5 Signing in 4: eight failed attempts per minute and client, and no lockout', () => {
  test('only eight of a hundred parallel attempts are checked', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const { passwords } = app.bindings
    let looked = 0
    app.bindings.passwords = {
      ...passwords,
      verify: async () => {
        looked++
        return false
      },
    }
    const here = browser(REMOTE)
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () => problem(await here.ask(LOGIN, { json: { password: 'wrong' } }))),
    )
    const codes = Object.groupBy(answers, ([, code]) => code ?? '')
    expect([codes.invalid_credentials?.length, codes.password_rate_limited?.length, looked]).toEqual([8, 92, 8])
  })

  test('then even the right password waits, with the time, and works a minute later and from elsewhere immediately', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    for (let i = 0; i < 8; i++) await here.ask(LOGIN, { json: { password: 'wrong' } })
    const limited = await here.ask(LOGIN, { json: { password: PASSWORD } })
    expect(limited.headers.get('retry-after')).toBe('60')
    expect(await problem(limited)).toEqual([429, 'password_rate_limited'])
    expect((await browser('192.0.2.8').ask(LOGIN, { json: { password: PASSWORD } })).status).toBe(200)
    await app.clock.advance(60_000)
    expect((await here.ask(LOGIN, { json: { password: PASSWORD } })).status).toBe(200)
  })

  test('a success gives back its own attempt and no other', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    for (let i = 0; i < 7; i++) await here.ask(LOGIN, { json: { password: 'wrong' } })
    for (let i = 0; i < 3; i++) expect((await here.ask(LOGIN, { json: { password: PASSWORD } })).status).toBe(200)
    expect(await problem(await here.ask(LOGIN, { json: { password: 'wrong' } }))).toEqual([401, 'invalid_credentials'])
    expect(await problem(await here.ask(LOGIN, { json: { password: PASSWORD } }))).toEqual([
      429,
      'password_rate_limited',
    ])
  })

  test('successful ones are thirty per minute, client and user, because each is a row of the audit log', async () => {
    const { app, add, browser, audit } = await open()
    for (const username of ['anna', 'berta']) await add({ username, role: 'viewer' })
    const here = browser(REMOTE)
    const signIn = (from: typeof here, username = 'anna') => from.ask(LOGIN, { json: { username, password: PASSWORD } })
    for (let i = 0; i < 30; i++) {
      expect((await signIn(here)).status).toBe(200)
      await here.ask('POST /api/dashboard-auth/logout')
    }
    const limited = await signIn(here)
    expect(limited.headers.get('retry-after')).toBe('60')
    expect(await problem(limited)).toEqual([429, 'password_rate_limited'])
    const page = await here.submit(LOGIN, { username: 'anna', password: PASSWORD })
    expect(await page.text()).toContain('Too many attempts. Try again in 60 seconds.')
    expect(await audit()).toHaveLength(60)
    expect((await signIn(here, 'berta')).status).toBe(200)
    expect((await signIn(browser('192.0.2.8'))).status).toBe(200)
    await app.clock.advance(60_000)
    expect((await signIn(here)).status).toBe(200)
  })

  test('guests can enter thirty times per minute and client', async () => {
    const { as, browser } = await open({ settings: { guestAccessEnabled: true } })
    const json = { password: 'for all guests' }
    await (await as('admin')).ask('POST /api/dashboard-auth/guest/password', { json })
    const come = (peer: string) => browser(peer).ask('POST /api/dashboard-auth/guest/login', { json })
    for (let i = 0; i < 30; i++) expect((await come(REMOTE)).status).toBe(200)
    expect(await problem(await come(REMOTE))).toEqual([429, 'guest_password_rate_limited'])
    expect((await come('192.0.2.8')).status).toBe(200)
  })

  test('a forwarded address does not make another client of an untrusted peer', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    const from = (i: number) => ({ 'x-forwarded-for': `198.51.100.${i}` })
    for (let i = 0; i < 8; i++) await here.ask(LOGIN, { json: { password: 'wrong' }, headers: from(i) })
    const limited = await here.ask(LOGIN, { json: { password: 'wrong' }, headers: from(99) })
    expect(await problem(limited)).toEqual([429, 'password_rate_limited'])
  })

  test('all checks of a secret share the limit', async () => {
    const { app, add, as, browser } = await open({ settings: { guestAccessEnabled: true } })
    await add({ username: 'admin', role: 'admin' })
    const anna = await as('admin', { peer: REMOTE, isConfirmed: false, hasTotp: true })
    const local = await as('admin')
    await local.ask('POST /api/dashboard-auth/guest/password', { json: { password: 'for all guests' } })
    const stranger = browser(REMOTE)
    const wrong: [route: string, json: object, code: string][] = [
      ['POST /api/dashboard-auth/step-up', { password: 'wrong' }, 'invalid_credentials'],
      ['POST /api/dashboard-auth/totp/disable', { code: '000000' }, 'invalid_totp_code'],
      [
        'POST /api/dashboard-auth/password/change',
        { currentPassword: 'x', newPassword: 'long enough' },
        'invalid_credentials',
      ],
      ['DELETE /api/dashboard-auth/password', { password: 'x' }, 'invalid_credentials'],
    ]
    for (const [route, json, code] of wrong) expect((await problem(await anna.ask(route, { json })))[1]).toBe(code)
    for (let i = 0; i < 2; i++) {
      const guest = await stranger.ask('POST /api/dashboard-auth/guest/login', { json: { password: 'wrong' } })
      expect(await problem(guest)).toEqual([401, 'invalid_credentials'])
      const login = await stranger.ask(LOGIN, { json: { username: 'admin', password: 'wrong' } })
      expect(await problem(login)).toEqual([401, 'invalid_credentials'])
    }
    const limits: [browser: typeof stranger, route: string, json: object, code: string][] = [
      [anna, wrong[0]![0], wrong[0]![1], 'step_up_rate_limited'],
      [anna, wrong[1]![0], wrong[1]![1], 'totp_rate_limited'],
      [anna, wrong[2]![0], wrong[2]![1], 'password_rate_limited'],
      [anna, wrong[3]![0], wrong[3]![1], 'password_rate_limited'],
      [stranger, 'POST /api/dashboard-auth/guest/login', { password: 'wrong' }, 'guest_password_rate_limited'],
      [stranger, LOGIN, { username: 'admin', password: PASSWORD }, 'password_rate_limited'],
    ]
    for (const [who, route, json, code] of limits)
      expect(await problem(await who.ask(route, { json }))).toEqual([429, code])
    expect(app.lines.join('\n')).not.toContain('for all guests')
  })
})

describe('§5 Signing in 5: sessions belong to a user', () => {
  test('an invalid cookie is no session', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    here.cookie = `sluice_session=${'A'.repeat(43)}`
    expect(await problem(await here.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
  })

  test.each(['disabled', 'invited'] as const)('a session of a user who is %s is no session', async (status) => {
    const { as } = await open()
    const anna = await as('admin', { status, peer: REMOTE })
    expect(await problem(await anna.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
  })

  test('signing in again leaves no session behind, and the old cookie is invalid', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    await here.ask(LOGIN, { json: { password: PASSWORD } })
    const old = here.cookie
    await here.ask(LOGIN, { json: { password: PASSWORD } })
    expect(here.cookie).not.toBe(old)
    here.cookie = old
    expect((await here.session()).authenticated).toBe(false)
    expect(app.sqlite.query('SELECT count(*) AS n FROM sessions').get()).toEqual({ n: 1 })
  })

  test('the database stores only the hash of the token', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    await here.ask(LOGIN, { json: { password: PASSWORD } })
    const token = here.cookie?.split('=')[1] ?? ''
    expect(token).toHaveLength(43)
    expect(JSON.stringify(app.sqlite.query('SELECT * FROM sessions').all())).not.toContain(token)
  })

  test('they end at their expiry', async () => {
    const { app, add, browser } = await open({ settings: { dashboardSessionTtlSeconds: 3600 } })
    await add({ username: 'admin', role: 'admin' })
    const here = browser(REMOTE)
    await here.ask(LOGIN, { json: { password: PASSWORD } })
    await app.clock.advance(3_599_000)
    expect((await here.session()).authenticated).toBe(true)
    await app.clock.advance(1000)
    expect((await here.session()).authenticated).toBe(false)
  })

  test('the users table has the time and method of the last sign-in', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    await add({ username: 'other', role: 'viewer' })
    const here = browser(REMOTE)
    await here.ask(LOGIN, { json: { username: 'admin', password: PASSWORD } })
    const shown = (await (await here.ask('GET /api/dashboard-users')).json()) as { username: string }[] // as: the type of the list
    expect(shown.toSorted((a, b) => (a.username < b.username ? -1 : 1))).toMatchObject([
      { lastLoginAt: new Date(app.clock.now()).toISOString(), lastLoginMethod: 'password' },
      { lastLoginAt: null, lastLoginMethod: null },
    ])
  })

  test.each(REQUEST_FORMATS)('logout ends this one, and the cookie cannot be used again (%s)', async (how) => {
    const { as, audit } = await open()
    const anna = await as('admin', { peer: REMOTE })
    const old = anna.cookie
    const response = await anna.send(how, 'POST /api/dashboard-auth/logout')
    expectIn(how, response, '/login')
    expect(anna.cookie).toBeNull()
    anna.cookie = old
    expect((await anna.session()).authenticated).toBe(false)
    const { id, username } = anna.person.row
    expect(await audit()).toMatchObject([{ event: 'logout', actor: id, actorName: username, actorRole: 'admin' }])
  })

  test.each(REQUEST_FORMATS)('logout-all ends every one of the user and no other (%s)', async (how) => {
    const { as, signInAs } = await open()
    const anna = await as('admin', { peer: REMOTE })
    const phone = await signInAs(anna.person, { peer: '192.0.2.8' })
    const berta = await as('viewer', { peer: REMOTE })
    expectIn(how, await anna.send(how, 'POST /api/dashboard-auth/logout-all'), '/login')
    expect((await phone.session()).authenticated).toBe(false)
    expect((await berta.session()).authenticated).toBe(true)
  })

  test('logging out needs no session', async () => {
    const { browser, audit } = await open()
    expect((await browser(REMOTE).ask('POST /api/dashboard-auth/logout')).status).toBe(200)
    expect(await audit()).toEqual([])
  })
})

describe.each(REQUEST_FORMATS)('§5 Signing in 8: a passwordless local install (%s)', (how) => {
  test('makes local clients the administrator, without a user, until a password is set', async () => {
    const { browser } = await open()
    const local = browser()
    expect(await local.session()).toMatchObject({
      authenticated: true,
      authMethod: 'local_bootstrap',
      user: null,
      stepUp: null,
      passwordRequired: false,
    })
    expectIn(how, await local.send(how, SETUP, { password: 'a long password' }))
    expect(await local.session()).toMatchObject({
      authMethod: 'password',
      user: { username: 'admin', role: { slug: 'admin' } },
      passwordRequired: true,
      stepUp: { methods: ['password'] },
    })
    const other = browser()
    expect(await problem(await other.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
  })
})

describe('§5 Signing in 7, 8: who is the administrator without a user', () => {
  test('no one, once there is any active user, however they sign in', async () => {
    const { app, add, as, browser } = await open()
    const admin = await add({ username: 'admin', role: 'admin' })
    const eve = await as('admin', { username: 'eve', hasPassword: false, method: 'passkey', hasTotp: true })
    expect((await eve.ask(`DELETE /api/dashboard-users/${admin.row.id}`)).status).toBe(204)
    const here = browser()
    expect(await here.session()).toMatchObject({ authenticated: false, permissions: [], bootstrapRequired: true })
    expect(await problem(await here.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
    expect(await problem(await here.ask(SETUP, { json: { password: 'a long password' } }))).toEqual([
      401,
      'bootstrap_unavailable',
    ])
    const token = await commit(app.db, (tx) =>
      rotateBootstrapToken(tx, {
        random: app.bindings.random,
        actor: { id: 'system', method: null, address: null, at: app.clock.now() },
      }),
    )
    const json = { password: 'a long password' }
    expect(await problem(await here.ask(SETUP, { json }))).toEqual([401, 'bootstrap_required'])
    expect((await here.ask(SETUP, { json: { ...json, bootstrapToken: token } })).status).toBe(200)
  })

  test('a user with a passkey is not sent to the setup', async () => {
    const { app, add, browser } = await open()
    const { row } = await add({ username: 'eve', role: 'admin', hasPassword: false })
    const page = async () => {
      const response = await browser().ask('GET /login', { headers: { accept: 'text/html' } })
      return response.headers.get('location') ?? response.status
    }
    expect(await page()).toBe('/setup')
    const key = { id: 'pk_1', credentialId: 'x', name: 'x', publicKey: 'x', counter: 0, transports: [] }
    await commit(app.db, async (tx) => {
      await tx
        .insert(passkeys)
        .values({ ...key, userId: row.id, createdAt: 1 })
        .run()
    })
    expect(await page()).toBe(200)
  })

  test('a disabled user with a password keeps the install closed', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin', status: 'disabled' })
    expect(await browser().session()).toMatchObject({ authenticated: false })
  })

  test('everyone on this machine, while there is no active user and no password', async () => {
    const { add, browser } = await open()
    await add({ username: 'anna', status: 'invited', hasPassword: false })
    expect(await browser().session()).toMatchObject({ authMethod: 'local_bootstrap' })
    expect(await problem(await browser().ask('GET /api/dashboard-users'))).toEqual([200, null])
    const json = { username: 'berta', role: 'viewer' }
    expect(await problem(await browser().ask('POST /api/dashboard-users', { json }))).toEqual([
      409,
      'admin_account_required',
    ])
  })
})
