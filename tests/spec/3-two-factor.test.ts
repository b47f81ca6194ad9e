/** Spec §3, the two-factor enrollment gate, and §5 Signing in 6: authenticators. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import {
  codeAt,
  PASSWORD,
  people,
  problem,
  REMOTE,
  REQUEST_FORMATS,
  type TestUser,
  TOTP_SECRET,
} from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const LOGIN = `POST ${AUTH}/password/login`
const VERIFY = `POST ${AUTH}/totp/verify`

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

/** Signs `anna` in up to her password. */
const half = async ({ add, browser }: Awaited<ReturnType<typeof open>>, peer = REMOTE) => {
  await add({ username: 'anna', role: 'admin', hasTotp: true })
  const here = browser(peer)
  await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
  return here
}

const enroll = async (app: Awaited<ReturnType<typeof testApp>>, who: TestUser) => {
  const offer = (await (await who.ask(`POST ${AUTH}/totp/setup/start`)).json()) as { secret: string }
  const code = codeAt(app.clock.now(), offer.secret)
  return who.ask(`POST ${AUTH}/totp/setup/confirm`, { json: { secret: offer.secret, code } })
}

describe.each(REQUEST_FORMATS)('§5 Signing in 6: the second factor of signing in (%s)', (how) => {
  test('the password opens a half session, the code the rest, with a new cookie', async () => {
    const house = await open()
    const { app, add, browser, code, audit } = house
    const { row } = await add({ username: 'anna', role: 'admin', hasTotp: true })
    const here = browser(REMOTE)
    const first = await here.send(how, LOGIN, { username: 'anna', password: PASSWORD })
    if (how === 'form') expect(first.headers.get('location')).toBe('/totp')
    expect(await here.session()).toMatchObject({
      authenticated: false,
      totpRequiredOnLogin: true,
      totpConfigured: true,
      permissions: [],
    })
    expect(await problem(await here.ask('GET /api/settings'))).toEqual([401, 'totp_required'])
    expect(await audit()).toEqual([])
    const halfCookie = here.cookie
    const second = await here.send(how, VERIFY, { code: code() })
    expect(second.status).toBe(how === 'json' ? 200 : 303)
    expect(await here.session()).toMatchObject({
      authenticated: true,
      authMethod: 'totp',
      totpRequiredOnLogin: false,
      stepUp: { methods: ['password', 'totp'] },
    })
    expect(await audit()).toMatchObject([{ event: 'login_success', actor: row.id, details: { method: 'totp' } }])
    const [shown] = (await (await here.ask('GET /api/dashboard-users')).json()) as unknown[] // as: the type of the list
    expect(shown).toMatchObject({ lastLoginAt: new Date(app.clock.now()).toISOString(), lastLoginMethod: 'totp' })
    here.cookie = halfCookie
    expect((await here.session()).authenticated).toBe(false)
    expect(app.sqlite.query('SELECT count(*) AS n FROM sessions').get()).toEqual({ n: 1 })
  })
})

describe('§5 Signing in 6: the second factor of signing in', () => {
  test('the code of the step before and after is valid, others are not', async () => {
    for (const [steps, status] of [
      [-2, 400],
      [-1, 200],
      [0, 200],
      [1, 200],
      [2, 400],
    ] as const) {
      const house = await open()
      const here = await half(house)
      expect([steps, (await here.ask(VERIFY, { json: { code: house.code(steps) } })).status]).toEqual([steps, status])
    }
  })

  test('spaces in a code are accepted, and anything else is a wrong code', async () => {
    const house = await open()
    const here = await half(house)
    for (const wrong of ['', 'letters', '12345', '1234567'])
      expect(await problem(await here.ask(VERIFY, { json: { code: wrong } }))).toEqual([400, 'invalid_totp_code'])
    const code = house.code()
    expect((await here.ask(VERIFY, { json: { code: ` ${code.slice(0, 3)} ${code.slice(3)} ` } })).status).toBe(200)
  })

  test('only one of fifty parallel uses passes', async () => {
    const house = await open()
    await house.add({ username: 'anna', hasTotp: true })
    const browsers = Array.from({ length: 50 }, (_, i) => house.browser(`192.0.2.${i + 1}`))
    await Promise.all(browsers.map((one) => one.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })))
    const code = house.code()
    const answers = await Promise.all(browsers.map((one) => one.ask(VERIFY, { json: { code } })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const others = answers.filter(({ status }) => status !== 200)
    expect(new Set(await Promise.all(others.map(async (answer) => (await problem(answer))[1])))).toEqual(
      new Set(['invalid_totp_code']),
    )
  })

  test('a code cannot be used again, nor one before it', async () => {
    const house = await open()
    const here = await half(house)
    const before = house.code(-1)
    const code = house.code()
    await here.ask(VERIFY, { json: { code } })
    for (const used of [code, before]) {
      await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
      expect(await problem(await here.ask(VERIFY, { json: { code: used } }))).toEqual([400, 'invalid_totp_code'])
    }
  })

  test('nor any other valid one, at the edges of the window', async () => {
    const house = await open()
    const here = await half(house)
    const codes = [-1, 0, 1].map((steps) => house.code(steps))
    expect((await here.ask(VERIFY, { json: { code: codes[2] } })).status).toBe(200)
    for (const code of codes) {
      await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
      expect(await problem(await here.ask(VERIFY, { json: { code } }))).toEqual([400, 'invalid_totp_code'])
    }
  })

  test('a code used while the clock was ahead does not lock the user out after the correction', async () => {
    const house = await open()
    const here = await half(house)
    const show = () => here.ask(VERIFY, { json: { code: house.code() } })
    house.app.clock.set(120_000)
    expect((await show()).status).toBe(200)
    house.app.clock.set(-120_000)
    await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
    expect((await show()).status).toBe(200)
    await here.ask(LOGIN, { json: { username: 'anna', password: PASSWORD } })
    expect(await problem(await show())).toEqual([400, 'invalid_totp_code'])
  })

  test('eight wrong codes a minute', async () => {
    const here = await half(await open())
    const guess = async () => (await problem(await here.ask(VERIFY, { json: { code: '000000' } })))[1]
    const codes = await Promise.all(Array.from({ length: 10 }, guess))
    expect(codes).toEqual([...Array(8).fill('invalid_totp_code'), 'totp_rate_limited', 'totp_rate_limited'])
  })

  test.each([
    [599_000, 200],
    [600_000, 401],
  ])('a half session ends after ten minutes: at %i ms %i', async (ms, status) => {
    const house = await open()
    const here = await half(house)
    await house.app.clock.advance(ms)
    expect((await here.ask(VERIFY, { json: { code: house.code() } })).status).toBe(status)
  })

  test('a full one lasts as long as any other', async () => {
    const house = await open({ settings: { dashboardSessionTtlSeconds: 3600 } })
    const here = await half(house)
    await here.ask(VERIFY, { json: { code: house.code() } })
    await house.app.clock.advance(3_599_000)
    expect((await here.session()).authenticated).toBe(true)
    await house.app.clock.advance(1000)
    expect((await here.session()).authenticated).toBe(false)
  })

  test('without a sign-in there is no code to enter', async () => {
    const { add, browser } = await open()
    await add({ username: 'admin', role: 'admin' })
    expect(await problem(await browser(REMOTE).ask(VERIFY, { json: { code: '123456' } }))).toEqual([
      401,
      'authentication_required',
    ])
  })
})

describe('§5 Signing in 6: secrets belong to the user', () => {
  test('a secret is offered with its QR code, and stored encrypted when its first code arrives', async () => {
    const { app, as, signInAs, audit } = await open()
    const anna = await as('viewer', { username: 'anna', peer: REMOTE })
    const phone = await signInAs(anna.person)
    const berta = await as('viewer')
    const offer = await (await anna.ask(`POST ${AUTH}/totp/setup/start`)).json()
    expect(offer).toEqual({
      secret: expect.stringMatching(/^[A-Z2-7]{32}$/),
      otpauthUri: expect.stringMatching(/^otpauth:\/\/totp\/Sluice:anna\?issuer=Sluice&secret=[A-Z2-7]{32}/),
      qrSvgDataUri: expect.stringMatching(/^data:image\/svg\+xml/),
    })
    expect((await anna.session()).totpConfigured).toBe(false)
    const code = codeAt(app.clock.now(), offer.secret)
    const response = await anna.submit(`POST ${AUTH}/totp/setup/confirm`, { secret: offer.secret, code })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('Save your recovery codes')
    expect(await anna.session()).toMatchObject({ authenticated: true, totpConfigured: true })
    expect((await berta.session()).totpConfigured).toBe(false)
    expect((await phone.session()).authenticated).toBe(false)
    const stored = JSON.stringify(app.sqlite.query('SELECT * FROM users').all())
    expect([stored.includes(offer.secret), stored.includes('v1.')]).toEqual([false, true])
    expect(JSON.stringify(await audit())).not.toContain(offer.secret)
    expect((await audit()).map(({ event }) => event)).toEqual(['totp_enabled'])
  })

  test('a wrong first code stores nothing', async () => {
    const { as } = await open()
    const anna = await as('viewer')
    const json = { secret: TOTP_SECRET, code: '000000' }
    expect(await problem(await anna.ask(`POST ${AUTH}/totp/setup/confirm`, { json }))).toEqual([
      400,
      'invalid_totp_code',
    ])
    expect((await anna.session()).totpConfigured).toBe(false)
  })

  test('a second one cannot be set up beside the first', async () => {
    const { as, code } = await open()
    const anna = await as('viewer', { hasTotp: true })
    expect(await problem(await anna.ask(`POST ${AUTH}/totp/setup/start`))).toEqual([400, 'invalid_totp_setup'])
    const json = { secret: TOTP_SECRET, code: code() }
    expect(await problem(await anna.ask(`POST ${AUTH}/totp/setup/confirm`, { json }))).toEqual([
      400,
      'invalid_totp_setup',
    ])
  })

  test.each(REQUEST_FORMATS)('removing it needs a code, which is used up (%s)', async (how) => {
    const { as, code, audit } = await open()
    const anna = await as('viewer', { hasTotp: true })
    expect(await problem(await anna.ask(`POST ${AUTH}/totp/disable`, { json: { code: '000000' } }))).toEqual([
      400,
      'invalid_totp_code',
    ])
    const response = await anna.send(how, `POST ${AUTH}/totp/disable`, { code: code() })
    if (how === 'json') expect(await response.json()).toEqual({ status: 'ok', stepUpAvailable: true })
    expect((await anna.session()).totpConfigured).toBe(false)
    expect((await audit()).map(({ event }) => event)).toEqual(['login_failed', 'totp_disabled'])
  })

  test('a user without one cannot remove one', async () => {
    const { as } = await open()
    expect(
      await problem(await (await as('viewer')).ask(`POST ${AUTH}/totp/disable`, { json: { code: '123456' } })),
    ).toEqual([400, 'invalid_totp_code'])
  })
})

describe('§3 Two-factor enrollment gate', () => {
  test('row 1: limits a required user to enrolling and signing out', async () => {
    const { app, as } = await open()
    const anna = await as('admin', { peer: REMOTE })
    await app.change({ totpRequiredOnLogin: true })
    expect(await anna.session()).toMatchObject({
      authenticated: false,
      totpEnrollmentRequired: true,
      user: { username: anna.person.row.username },
    })
    const refused: [route: string, json?: object][] = [
      ['GET /api/settings'],
      ['GET /api/accounts'],
      ['PATCH /api/settings', { capacityWaitSeconds: 1 }],
      [`POST ${AUTH}/step-up`, { password: PASSWORD }],
      [`DELETE ${AUTH}/password`, { password: PASSWORD }],
      [`POST ${AUTH}/totp/disable`, { code: '123456' }],
      [`POST ${AUTH}/guest/logout-all`],
    ]
    for (const [route, json] of refused)
      expect([route, await problem(await anna.ask(route, { json }))]).toEqual([
        route,
        [403, 'totp_enrollment_required'],
      ])
    const allowed: [route: string, json?: object][] = [
      [`GET ${AUTH}/session`],
      [`GET ${AUTH}/me`],
      [`PATCH ${AUTH}/me`, { displayName: 'Anna' }],
      [`POST ${AUTH}/totp/setup/start`],
      [`POST ${AUTH}/password/change`, { currentPassword: PASSWORD, newPassword: 'another password' }],
      [`POST ${AUTH}/logout-all`],
    ]
    for (const [route, json] of allowed) expect([route, (await anna.ask(route, { json })).status]).toEqual([route, 200])
  })

  test('row 2: enrolling lifts it', async () => {
    const { app, as } = await open()
    const anna = await as('admin', { peer: REMOTE })
    await app.change({ totpRequiredForAdminRole: true })
    expect((await anna.ask('GET /api/settings')).status).toBe(403)
    expect((await enroll(app, anna)).status).toBe(200)
    expect((await anna.ask('GET /api/settings')).status).toBe(200)
  })

  test('removing a required authenticator leads back to it', async () => {
    const { app, as, code } = await open()
    const anna = await as('admin', { hasTotp: true })
    await app.change({ totpRequiredOnLogin: true })
    expect((await anna.ask(`POST ${AUTH}/totp/disable`, { json: { code: code() } })).status).toBe(200)
    expect(await problem(await anna.ask('GET /api/settings'))).toEqual([403, 'totp_enrollment_required'])
  })

  test('signing in redirects to it', async () => {
    const { app, add, browser } = await open()
    await add({ username: 'anna', role: 'admin' })
    await app.change({ totpRequiredOnLogin: true })
    const here = browser(REMOTE)
    expect((await here.ask(LOGIN, { json: { password: PASSWORD } })).status).toBe(200)
    expect((await here.session()).totpEnrollmentRequired).toBe(true)
  })
})

describe('§5 Signing in 6: who a requirement applies to', () => {
  const isHeld = async (who: TestUser) => (await who.session()).totpEnrollmentRequired

  test('on login: every user with a password, and no one without', async () => {
    const { app, as } = await open()
    await app.change({ totpRequiredOnLogin: true })
    expect(await isHeld(await as('viewer'))).toBe(true)
    expect(await isHeld(await as('operator'))).toBe(true)
    expect(await isHeld(await as('admin', { hasTotp: true }))).toBe(false)
    expect(await isHeld(await as('admin', { hasPassword: false, method: 'passkey' }))).toBe(false)
  })

  test('for administrators: the Admin preset and custom roles with a privileged permission', async () => {
    const { app, as, addRole } = await open()
    await app.change({ totpRequiredForAdminRole: true })
    await addRole('auditor', { 'audit:read': 'all' })
    await addRole('helper', { 'accounts:read': 'all' })
    expect(await isHeld(await as('admin'))).toBe(true)
    expect(await isHeld(await as('auditor'))).toBe(true)
    for (const role of ['operator', 'viewer', 'helper'])
      expect([role, await isHeld(await as(role))]).toEqual([role, false])
  })

  test.each(['totpRequiredOnLogin', 'totpRequiredForAdminRole'])(
    '%s can be turned on by a user with a second factor, and not otherwise',
    async (name) => {
      const { app, as, browser } = await open()
      const json = { [name]: true }
      expect(await problem(await browser().ask('PATCH /api/settings', { json }))).toEqual([400, 'invalid_totp_config'])
      const anna = await as('admin')
      expect(await problem(await anna.ask('PATCH /api/settings', { json }))).toEqual([400, 'invalid_totp_config'])
      await enroll(app, anna)
      expect((await anna.ask('PATCH /api/settings', { json })).status).toBe(200)
      expect((await anna.ask('PATCH /api/settings', { json })).status).toBe(200)
    },
  )

  test('turning one off, and saving it unchanged, needs no second factor', async () => {
    const { app, as } = await open()
    const anna = await as('admin', { hasPassword: false, method: 'passkey' })
    await app.change({ totpRequiredForAdminRole: true })
    app.sqlite.run("UPDATE users SET password_hash = NULL, totp_secret_sealed = 'v1.x'")
    expect((await anna.ask('PATCH /api/settings', { json: { totpRequiredForAdminRole: false } })).status).toBe(200)
  })
})

describe('§5 Signing in 6: a second factor set up while a password is checked', () => {
  const confirmation = () => ({ secret: TOTP_SECRET, code: codeAt(Date.UTC(2026, 0, 1)) })
  const SET_UP = 'POST /api/dashboard-auth/totp/setup/confirm'

  test('a sign-in that began without it cannot complete without it', async () => {
    const { add, signInAs, browser } = people(await testApp({ accounts: 0 }))
    const anna = await add({ username: 'anna', role: 'admin' })
    const [own, other] = [await signInAs(anna), browser(REMOTE)]
    const login = other.ask('POST /api/dashboard-auth/password/login', {
      json: { username: 'anna', password: PASSWORD },
    })
    expect((await own.ask(SET_UP, { json: confirmation() })).status).toBe(200)
    expect(await problem(await login)).toEqual([401, 'invalid_credentials'])
    expect(await other.session()).toMatchObject({ authenticated: false })
  })

  test('nor is a confirmation valid that was given without it', async () => {
    const { signInAs, add } = people(await testApp({ accounts: 0 }))
    const anna = await signInAs(await add({ username: 'anna', role: 'admin' }), { isConfirmed: false })
    const confirmed = anna.ask('POST /api/dashboard-auth/step-up', { json: { password: PASSWORD } })
    expect((await anna.ask(SET_UP, { json: confirmation() })).status).toBe(200)
    expect(await problem(await confirmed)).toEqual([401, 'invalid_credentials'])
    expect(await anna.session()).toMatchObject({ stepUp: null })
  })
})
