/** Spec §5, rules 1 to 4 of trusted-header mode: proxy users, their accounts here, and how they confirm. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { identities, users } from '../../db/schema/people.ts'
import { setGuestPassword } from '../../src/model/users/guest.ts'
import { testApp } from '../support/app.ts'
import { people, problem, REMOTE } from '../support/people.ts'
import { behindProxy, HEADER, SETTINGS } from '../support/proxied.ts'

describe('§5 Trusted-header 1: without the header, access is rejected', () => {
  test('a browser sees that the proxy is required', async () => {
    const { browser } = await behindProxy()
    expect(await problem(await browser().ask(SETTINGS))).toEqual([401, 'proxy_auth_required'])
  })

  test.each(['', '   '])('a header of %p is ignored', async (subject) => {
    const { announced, names } = await behindProxy()
    expect(await problem(await announced(subject).ask(SETTINGS))).toEqual([401, 'proxy_auth_required'])
    expect(await names()).toEqual([])
  })

  test('a guest without a password is rejected, and the sign-in page does not offer it', async () => {
    const { app, add, browser } = await behindProxy()
    await app.change({ guestAccessEnabled: true })
    await add({ username: 'admin', role: 'admin' })
    expect(await problem(await browser().ask(SETTINGS))).toEqual([401, 'proxy_auth_required'])
    const login = async () => (await browser().ask('GET /login', { headers: { accept: 'text/html' } })).text()
    expect(await login()).not.toContain('Continue as guest')
    await commit(app.db, (tx) => setGuestPassword(tx, 'some hash', { id: 'test', method: null, address: null, at: 0 }))
    expect(await login()).toContain('Continue as guest')
  })

  test('a header from an untrusted peer is ignored', async () => {
    const { app, announced, names } = await behindProxy()
    announced('anna')
    const response = await app.ask(SETTINGS, { peer: REMOTE, headers: { [HEADER]: 'anna' } })
    expect(await problem(response)).toEqual([401, 'proxy_auth_required'])
    expect(await names()).toEqual([])
  })

  test('the header is ignored in standard mode', async () => {
    const app = await testApp({ accounts: 0 })
    const { add } = people(app)
    await add({ role: 'admin' })
    expect(await problem(await app.ask(SETTINGS, { headers: { [HEADER]: 'anna' } }))).toEqual([
      401,
      'authentication_required',
    ])
    expect(await app.db.select().from(identities).all()).toEqual([])
  })

  test('the header has the configured name', async () => {
    const { app } = await behindProxy({ CODEX_LB_DASHBOARD_AUTH_PROXY_HEADER: 'X-Forwarded-User' })
    expect((await app.ask(SETTINGS, { headers: { 'x-forwarded-user': 'anna' } })).status).toBe(200)
    expect(await problem(await app.ask(SETTINGS, { headers: { [HEADER]: 'anna' } }))).toEqual([
      401,
      'proxy_auth_required',
    ])
  })
})

describe('§5 Trusted-header: under a name that another site could point here', () => {
  const PUBLIC = { CODEX_LB_PUBLIC_URL: 'https://sluice.example' }
  const named = async (headers: Record<string, string>, environment: Record<string, string> = PUBLIC) => {
    const { announced, names } = await behindProxy(environment)
    const response = await announced('anna').ask(SETTINGS, { headers })
    return [response.status, response.ok ? null : (await problem(response))[1], (await names()).length]
  }

  test.each<Record<string, string>>([
    { host: 'evil.example' },
    { host: 'evil.example:2455', 'x-forwarded-host': 'sluice.example' },
    { host: '127.0.0.1.evil.example', 'x-forwarded-for': '127.0.0.1' },
  ])('the header is ignored and creates no user: %j', async (headers) => {
    expect(await named(headers)).toEqual([400, 'bad_host', 0])
  })

  test.each<Record<string, string>>([
    { host: 'sluice.example' },
    { host: 'sluice.example:8443', 'x-forwarded-for': REMOTE },
    // nginx, by default, sends the address it was given.
    { host: '127.0.0.1:2455', 'x-forwarded-host': 'sluice.example', 'x-forwarded-proto': 'https' },
    { host: '[::1]:2455', 'x-forwarded-host': 'sluice.example' },
    { host: 'sluice:2455', 'x-forwarded-host': 'sluice.example' },
  ])('the public name, addresses and single-label names work: %j', async (headers) => {
    expect(await named(headers)).toEqual([200, null, 1])
  })

  test('a browser that is signed in here keeps working', async () => {
    const { as, announced } = await behindProxy(PUBLIC)
    const both = announced('anna')
    both.cookie = (await as('admin')).cookie
    expect((await both.ask(SETTINGS, { headers: { host: 'evil.example' } })).status).toBe(200)
  })

  test('without a configured name, any name works', async () => {
    expect(await named({ host: 'sluice.example' }, {})).toEqual([200, null, 1])
  })
})

describe('§5 Trusted-header 2: each new value creates its own user', () => {
  test('with a name from the value, linked, and both events recorded', async () => {
    const { announced, names, audit } = await behindProxy()
    expect((await announced(' Anna@Example.com ').ask(SETTINGS)).status).toBe(200)
    expect((await announced('berta').ask(SETTINGS)).status).toBe(200)
    expect((await names()).toSorted()).toEqual(['anna.example.com', 'berta'])
    expect((await audit()).map(({ event, actorName }) => [event, actorName])).toEqual([
      ['user_created', 'anna.example.com'],
      ['identity_linked', 'anna.example.com'],
      ['user_created', 'berta'],
      ['identity_linked', 'berta'],
    ])
  })

  test.each([
    ['admin', ['admin-2']],
    ['Admin!', ['admin-2']],
    ['!!!', ['th-']],
    ['x'.repeat(100), ['x'.repeat(56)]],
  ])('%s', async (subject, [expected]) => {
    const { announced, names } = await behindProxy()
    expect((await announced(subject).ask(SETTINGS)).status).toBe(200)
    expect((await names())[0]).toStartWith(expected ?? '?')
  })

  test.each([
    ['w例@例.jp', 'w.jp', 'w例@例.jp'],
    ['Žofie', 'zofie', 'žofie'],
    ['Łukasz.Wiśniewski@example.pl', 'lukasz.wisniewski.example.pl', 'łukasz.wiśniewski@example.pl'],
    ['Jürgen Groß', 'jurgengross', 'jürgen groß'],
    ['Андрей@почта.рф', 'andrei.pochta.rf', 'андрей@почта.рф'],
    ['Ελένη', 'eleni', 'ελένη'],
    ['김민수@example.kr', 'gimminsu.example.kr', '김민수@example.kr'],
    ['例-anna-例', 'anna', '例-anna-例'],
    ['渡辺@例.jp', 'th-', '渡辺@例.jp'],
    ['анна', 'anna', 'анна'],
    ['anna@Example.com', 'anna.example.com', null],
    ['_svc--x_', '_svc--x_', null],
  ])('%s gets the readable name %s', async (subject, expected, displayName) => {
    const { app, announced } = await behindProxy()
    expect((await announced(Buffer.from(subject).toString('latin1')).ask(SETTINGS)).status).toBe(200)
    const [user] = await app.db.select().from(users).all()
    if (expected === 'th-') expect(user?.username).toMatch(/^th-[0-9a-f]{8}$/)
    else expect(user?.username).toBe(expected)
    expect(user?.displayName).toBe(displayName)
  })

  test('two values with the same name get a number', async () => {
    const { announced, names } = await behindProxy()
    for (const subject of ['anna@x', 'anna.x', 'anna.x!']) await announced(subject).ask(SETTINGS)
    expect((await names()).toSorted()).toEqual(['anna.x', 'anna.x-2', 'anna.x-3'])
  })

  test('a name in UTF-8 is read in either case, and activates the user waiting for it', async () => {
    const { app, as, announced } = await behindProxy()
    const sent = (name: string) => announced(Buffer.from(name).toString('latin1'))
    const expectedIdentity = { provider: 'trusted_header', subject: 'Žofie' }
    const json = { username: 'zofie', role: 'viewer', ssoOnly: true, expectedIdentity }
    expect((await (await as('admin')).ask('POST /api/dashboard-users', { json })).status).toBe(201)
    for (const name of ['ŽOFIE', 'žofie', 'JÜRGEN', 'jürgen']) await sent(name).ask(SETTINGS)
    await announced('j\xfcrgen').ask(SETTINGS) // Latin-1 itself
    const known = await app.db.select().from(identities).all()
    expect(known.map(({ subject }) => subject).toSorted()).toEqual(['jürgen', 'žofie'])
    expect((await sent('Žofie').session()).user?.username).toBe('zofie')
  })

  test('a user created when names were read as Latin-1 keeps the user, also when disabled', async () => {
    const { app, announced } = await behindProxy()
    const sent = announced(Buffer.from('Jürgen').toString('latin1'))
    const { id } = (await sent.session()).user!
    await commit(app.db, (tx) =>
      tx.update(identities).set({ subject: 'jã¼rgen' }).where(eq(identities.userId, id)).run(),
    )
    expect((await sent.session()).user?.id).toBe(id)
    await commit(app.db, (tx) => tx.update(users).set({ status: 'disabled' }).where(eq(users.id, id)).run())
    expect((await sent.session()).authenticated).toBe(false)
    expect(await app.db.select().from(identities).all()).toHaveLength(1)
  })

  test.each(['\u212aate', '\ufeffkate', '\u00a0kate', 'kate\u3000'])(
    'a name with other letters is a different one: %j',
    async (name) => {
      const { as, announced } = await behindProxy()
      const kate = (await announced('KATE').session()).user?.id
      if (name === '\u00a0kate') expect((await announced(name).session()).user?.id).not.toBe(kate) // in Latin-1
      const sent = announced(Buffer.from(name).toString('latin1'))
      expect((await sent.session()).user?.id).not.toBe(kate)
      const expectedIdentity = { provider: 'trusted_header', subject: '\u212aaren' }
      const json = { username: 'waiting', role: 'viewer', ssoOnly: true, expectedIdentity }
      expect((await (await as('admin')).ask('POST /api/dashboard-users', { json })).status).toBe(201)
      expect((await announced('karen').session()).user?.username).toBe('karen')
    },
  )

  test.each([
    ['\u212bke', 'Åke'],
    ['\u03f4eo', 'Θeo'],
    ['\u2126', 'Ω'],
  ])('nor is a character the same as a similar one: %j', async (sign, letter) => {
    const { announced } = await behindProxy()
    const idOf = async (name: string) => (await announced(Buffer.from(name).toString('latin1')).session()).user?.id
    expect(await idOf(sign)).not.toBe(await idOf(letter))
    expect(await idOf(letter.toLowerCase())).toBe(await idOf(letter))
  })

  test('50 parallel first requests create one user', async () => {
    const { announced, names, audit } = await behindProxy()
    const answers = await Promise.all(Array.from({ length: 50 }, () => announced('anna').ask(SETTINGS)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect([await names(), (await audit()).length]).toEqual([['anna'], 2])
  })

  test('a value of over 512 characters is ignored', async () => {
    const { announced, names } = await behindProxy()
    expect(await problem(await announced('x'.repeat(513)).ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    expect(await names()).toEqual([])
  })
})

describe('§5 Trusted-header 3: later requests are that user', () => {
  test('with its role, and its changes are attributed to it', async () => {
    const { app, as, announced, audit } = await behindProxy()
    const anna = announced('anna')
    await anna.ask(SETTINGS)
    const { user } = await anna.session()
    expect(user).toMatchObject({ username: 'anna', role: { slug: 'admin' } })
    expect((await anna.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 7 } })).status).toBe(200)
    expect((await audit()).at(-1)).toMatchObject({
      event: 'settings_updated',
      actor: user?.id,
      actorName: 'anna',
      method: 'trusted_header',
    })
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${user?.id}`, { json: { role: 'viewer' } })
    expect(await problem(await anna.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 8 } }))).toEqual([
      403,
      'read_only_access',
    ])
    expect(await app.db.select().from(users).all()).toHaveLength(2)
  })

  test('the last visit is recorded, but not with each request', async () => {
    const { app, announced } = await behindProxy()
    const seen = async () => (await app.db.select().from(identities).orderBy(identities.subject).all())[0]?.lastSeenAt
    await announced('anna').ask(SETTINGS)
    const first = await seen()
    await app.clock.advance('5m')
    await announced('anna').ask(SETTINGS)
    await announced('berta').ask(SETTINGS)
    expect(await seen()).toBe(first)
    await app.clock.advance('1h')
    await announced('berta').ask(SETTINGS)
    expect(await seen()).toBe(first)
    await announced('anna').ask(SETTINGS)
    expect(await seen()).toBe(app.clock.now())
    expect(await app.db.select().from(users).get()).toMatchObject({
      lastLoginAt: app.clock.now(),
      lastLoginMethod: 'trusted_header',
    })
  })

  test('a known user can sign in even while the database is read-only', async () => {
    const { app, announced } = await behindProxy()
    const anna = announced('anna')
    await anna.ask(SETTINGS)
    app.sqlite.run('PRAGMA query_only = ON')
    await app.clock.advance('1h')
    expect((await anna.ask(SETTINGS)).status).toBe(200)
    expect(await problem(await announced('berta').ask(SETTINGS))).toEqual([503, 'database_unavailable'])
  })
})

describe('§5 Trusted-header 4: the default role applies to later users', () => {
  test('it is Admin until changed, and existing users keep theirs', async () => {
    const { announced, setProvider } = await behindProxy()
    await announced('anna').ask(SETTINGS)
    await setProvider({ unknownIdentityRoleId: 'role_viewer' })
    expect((await announced('anna').session()).user?.role.slug).toBe('admin')
    expect((await announced('berta').session()).user?.role.slug).toBe('viewer')
  })
})

describe('§5 Trusted-header: confirming', () => {
  test('a user who cannot confirm sees why', async () => {
    const { announced } = await behindProxy()
    const response = await announced('anna').ask('POST /api/dashboard-users', {
      json: { username: 'x', role: 'viewer' },
    })
    expect(await problem(response)).toEqual([403, 'step_up_unavailable'])
  })
})

describe('deleting a user who signs in through the proxy', () => {
  const page = async (browser: { ask: (route: string, more: object) => Promise<Response> }) =>
    (await browser.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()

  test.each([
    ['role_admin', 'creates them again, with the role Admin.', 'admin'],
    ['role_viewer', 'creates them again, with the role Viewer.', 'viewer'],
    [null, 'is rejected until you add them again.', null],
  ])(
    'explains what their next visit does and offers to disable them: new users become %p',
    async (role, says, slug) => {
      const { app, announced, setProvider } = await behindProxy()
      const anna = announced('anna')
      const { user } = await anna.session()
      const admin = await setProvider({ unknownIdentityRoleId: role })
      const text = await page(admin)
      const [dialog = ''] = new RegExp(`<dialog id="delete-user-${user?.id}".*?</dialog>`, 's').exec(text) ?? []
      expect(dialog).toContain(`Their next visit through the reverse proxy ${says}`)
      expect(dialog).toContain('Disable instead')
      const path = `/api/dashboard-users/${user?.id}`
      expect(dialog).toContain(`hx-patch="${path}"`)
      expect(dialog).toContain(`hx-delete="${path}"`)
      expect((await admin.ask(`DELETE ${path}`)).status).toBe(204)
      const again = (await anna.session()).user
      expect([again?.role.slug ?? null, again?.id === user?.id]).toEqual([slug, false])
      expect((await app.db.select().from(users).all()).length).toBe(slug === null ? 1 : 2)
    },
  )

  test('a disabled user is not offered to be disabled, and stays out', async () => {
    const { announced, as } = await behindProxy()
    const anna = announced('anna')
    const { user } = await anna.session()
    const admin = await as('admin', { username: 'boss' })
    await admin.ask(`PATCH /api/dashboard-users/${user?.id}`, { json: { status: 'disabled' } })
    const text = await page(admin)
    expect(text).toContain(`Delete anna?`)
    expect(text).not.toContain('Disable instead')
    expect(await problem(await anna.ask(SETTINGS))).toEqual([401, 'account_disabled'])
  })

  test('so does revoking a user who waits for the proxy', async () => {
    const { as } = await behindProxy()
    const admin = await as('admin', { username: 'boss' })
    const expectedIdentity = { provider: 'trusted_header', subject: 'anna' }
    const json = { username: 'anna', role: 'viewer', ssoOnly: true, expectedIdentity }
    expect((await admin.ask('POST /api/dashboard-users', { json })).status).toBe(201)
    expect(await page(admin)).toContain('creates them again, with the role Admin.')
  })

  test('a user with only a password, or in another mode, gets the usual question', async () => {
    const { as, add } = await behindProxy()
    await add({ username: 'anna' })
    expect(await page(await as('admin'))).not.toContain('next visit')
    const app = await testApp({ accounts: 0 })
    const standard = people(app)
    const anna = await standard.add({ username: 'anna' })
    app.sqlite.run(
      "INSERT INTO identities (id, user_id, provider, subject, created_at) VALUES ('i', ?, 'trusted_header', 'anna', 1)",
      [anna.row.id],
    )
    expect(await page(await standard.as('admin'))).not.toContain('next visit')
  })
})
