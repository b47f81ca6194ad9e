/** Spec §5, rules for trusted-header mode, and §2, identity provider. */
import { describe, expect, test } from 'bun:test'
import { identities, users } from '../../db/schema/people.ts'
import { testApp } from '../support/app.ts'
import { type Browser, PASSWORD, people, problem, REMOTE } from '../support/people.ts'

const HEADER = 'remote-user'
const SETTINGS = 'GET /api/settings'
const PROVIDER = 'PATCH /api/auth-providers/idp_trusted_header'

const open = (environment: Record<string, string> = {}) => {
  const app = testApp({
    accounts: 0,
    environment: {
      CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
      CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      ...environment,
    },
  })
  const world = people(app)
  /** A browser behind the proxy, announced as `subject`. */
  const announced = (subject: string): Browser => {
    const self = world.browser()
    const { ask } = self
    self.ask = (route, more = {}) => ask(route, { ...more, headers: { [HEADER]: subject, ...more.headers } })
    self.session = async () =>
      (await (await self.ask('GET /api/dashboard-auth/session')).json()) as Awaited<ReturnType<Browser['session']>> // as: the same route
    return self
  }
  const names = () =>
    app.db
      .select()
      .from(users)
      .orderBy(users.createdAt, users.id)
      .all()
      .map(({ username }) => username)
  /** What becomes of strangers, set by an Admin who confirmed. */
  const setProvider = async (json: Record<string, unknown>) => {
    const admin = world.as('admin', { username: 'boss' })
    expect((await admin.ask(PROVIDER, { json })).status).toBe(200)
    return admin
  }
  return { app, ...world, announced, names, setProvider }
}

describe('§5 Trusted-header 1: without the header nobody comes in', () => {
  test('and a browser is told that the proxy is needed', async () => {
    const { browser } = open()
    expect(await problem(await browser().ask(SETTINGS))).toEqual([401, 'proxy_auth_required'])
  })

  test.each(['', '   '])('a header of %p is none', async (subject) => {
    const { announced, names } = open()
    expect(await problem(await announced(subject).ask(SETTINGS))).toEqual([401, 'proxy_auth_required'])
    expect(names()).toEqual([])
  })

  test('a header from a peer that is no trusted proxy is not looked at', async () => {
    const { app, announced, names } = open()
    announced('anna')
    const response = await app.ask(SETTINGS, { peer: REMOTE, headers: { [HEADER]: 'anna' } })
    expect(await problem(response)).toEqual([401, 'proxy_auth_required'])
    expect(names()).toEqual([])
  })

  test('nor in standard mode from anybody', async () => {
    const app = testApp({ accounts: 0 })
    const { add } = people(app)
    add({ role: 'admin' })
    expect(await problem(await app.ask(SETTINGS, { headers: { [HEADER]: 'anna' } }))).toEqual([
      401,
      'authentication_required',
    ])
    expect(app.db.select().from(identities).all()).toEqual([])
  })

  test('the header has the name that is set', async () => {
    const { app } = open({ CODEX_LB_DASHBOARD_AUTH_PROXY_HEADER: 'X-Forwarded-User' })
    expect((await app.ask(SETTINGS, { headers: { 'x-forwarded-user': 'anna' } })).status).toBe(200)
    expect(await problem(await app.ask(SETTINGS, { headers: { [HEADER]: 'anna' } }))).toEqual([
      401,
      'proxy_auth_required',
    ])
  })
})

describe('§5 Trusted-header 2: each new value makes an account of its own', () => {
  test('with a name from the value, linked, and both events recorded', async () => {
    const { announced, names, audit } = open()
    expect((await announced(' Anna@Example.com ').ask(SETTINGS)).status).toBe(200)
    expect((await announced('berta').ask(SETTINGS)).status).toBe(200)
    expect(names().toSorted()).toEqual(['anna.example.com', 'berta'])
    expect(audit().map(({ event, actorName }) => [event, actorName])).toEqual([
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
    const { announced, names } = open()
    expect((await announced(subject).ask(SETTINGS)).status).toBe(200)
    expect(names()[0]).toStartWith(expected ?? '?')
  })

  test('two values that make one name get a number', async () => {
    const { announced, names } = open()
    for (const subject of ['anna@x', 'anna.x', 'anna.x!']) await announced(subject).ask(SETTINGS)
    expect(names().toSorted()).toEqual(['anna.x', 'anna.x-2', 'anna.x-3'])
  })

  test('50 first requests at once make one account', async () => {
    const { announced, names, audit } = open()
    const answers = await Promise.all(Array.from({ length: 50 }, () => announced('anna').ask(SETTINGS)))
    expect(answers.every(({ status }) => status === 200)).toBe(true)
    expect([names(), audit().length]).toEqual([['anna'], 2])
  })

  test('a value of over 512 characters is nobody', async () => {
    const { announced, names } = open()
    expect(await problem(await announced('x'.repeat(513)).ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    expect(names()).toEqual([])
  })
})

describe('§5 Trusted-header 3: later requests are that account', () => {
  test('with its role, and changes are its own', async () => {
    const { app, as, announced, audit } = open()
    const anna = announced('anna')
    await anna.ask(SETTINGS)
    const { user } = await anna.session()
    expect(user).toMatchObject({ username: 'anna', role: { slug: 'admin' } })
    expect((await anna.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 7 } })).status).toBe(200)
    expect(audit().at(-1)).toMatchObject({
      event: 'settings_updated',
      actor: user?.id,
      actorName: 'anna',
      method: 'trusted_header',
    })
    await as('admin').ask(`PATCH /api/dashboard-users/${user?.id}`, { json: { role: 'viewer' } })
    expect(await problem(await anna.ask('PATCH /api/settings', { json: { capacityWaitSeconds: 8 } }))).toEqual([
      403,
      'read_only_access',
    ])
    expect(app.db.select().from(users).all()).toHaveLength(2)
  })

  test('that they were here is noted, but not with each request', async () => {
    const { app, announced } = open()
    const seen = () => app.db.select().from(identities).all()[0]?.lastSeenAt
    await announced('anna').ask(SETTINGS)
    const first = seen()
    await app.clock.advance('5m')
    await announced('anna').ask(SETTINGS)
    expect(seen()).toBe(first)
    await app.clock.advance('1h')
    await announced('anna').ask(SETTINGS)
    expect(seen()).toBe(app.clock.now())
    expect(app.db.select().from(users).get()).toMatchObject({
      lastLoginAt: app.clock.now(),
      lastLoginMethod: 'trusted_header',
    })
  })
})

describe('§5 Trusted-header 4: the default role holds for those who come after', () => {
  test('it is Admin until it is changed, and who is here keeps theirs', async () => {
    const { announced, setProvider } = open()
    await announced('anna').ask(SETTINGS)
    await setProvider({ unknownIdentityRoleId: 'role_viewer' })
    expect((await announced('anna').session()).user?.role.slug).toBe('admin')
    expect((await announced('berta').session()).user?.role.slug).toBe('viewer')
  })
})

describe('§5 Trusted-header 5: who is refused', () => {
  test('a stranger, when strangers are refused, until they are added', async () => {
    const { announced, setProvider, names } = open()
    const admin = await setProvider({ unknownIdentityRoleId: null })
    const anna = announced('anna')
    const refused = await anna.ask(SETTINGS)
    expect(await problem(refused)).toEqual([401, 'identity_not_provisioned'])
    expect((await anna.session()).login.pendingIdentity).toBe(true)
    expect(names()).toEqual(['boss'])
    const expectedIdentity = { provider: 'trusted_header', subject: 'Anna' }
    await admin.ask('POST /api/dashboard-users', {
      json: { username: 'annie', role: 'viewer', ssoOnly: true, expectedIdentity },
    })
    expect((await anna.session()).user).toMatchObject({ username: 'annie', role: { slug: 'viewer' } })
  })

  test('a disabled account, whatever its password', async () => {
    const { as, announced } = open()
    const anna = announced('anna')
    const { user } = await anna.session()
    await as('admin').ask(`PATCH /api/dashboard-users/${user?.id}`, { json: { status: 'disabled' } })
    expect(await problem(await anna.ask(SETTINGS))).toEqual([401, 'account_disabled'])
  })

  test('a browser that is signed in here keeps working, and nothing was refused', async () => {
    const { announced, setProvider, audit } = open()
    const admin = await setProvider({ unknownIdentityRoleId: null })
    const both = announced('anna')
    both.cookie = admin.cookie
    expect((await both.ask(SETTINGS)).status).toBe(200)
    expect((await both.session()).user?.username).toBe('boss')
    expect(audit().map(({ event }) => event)).toEqual(['provider_updated'])
  })

  test('a guest is not let in past a refusal', async () => {
    const { app, as, announced, setProvider } = open()
    await setProvider({ unknownIdentityRoleId: null })
    app.change({ guestAccessEnabled: true })
    const password = { json: { password: 'all guests share' } }
    expect((await as('admin').ask('POST /api/dashboard-auth/guest/password', password)).status).toBe(200)
    const stranger = announced('stranger')
    await stranger.ask('POST /api/dashboard-auth/guest/login', password)
    expect(stranger.cookie).not.toBeNull()
    expect(await problem(await stranger.ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
  })

  test('two headers at once, which arrive as one, even under a name that is known', async () => {
    const { app, announced, names, audit } = open()
    const { user } = await announced('anna').session()
    app.sqlite.run(
      "INSERT INTO identities (id, user_id, provider, subject, created_at) VALUES ('i', ?, 'trusted_header', 'mallory, anna', 1)",
      [user?.id ?? ''],
    )
    const both = announced('Mallory, Anna')
    expect(await problem(await both.ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    expect(names()).toEqual(['anna'])
    expect(audit().at(-1)).toMatchObject({ event: 'login_failed', details: { subject: 'mallory, anna' } })
  })

  test('each refusal is written down with the name and the reason', async () => {
    const { as, announced, setProvider, audit } = open()
    const berta = (await announced('berta').session()).user
    await setProvider({ unknownIdentityRoleId: null })
    await as('admin').ask(`PATCH /api/dashboard-users/${berta?.id}`, { json: { status: 'disabled' } })
    for (const subject of ['stranger', 'berta']) await announced(subject).ask(SETTINGS)
    const refused = audit().filter(({ event }) => event === 'login_failed')
    expect(refused.map(({ actor, target, details }) => ({ actor, target, details }))).toEqual([
      {
        actor: 'anonymous',
        target: null,
        details: { method: 'trusted_header', reason: 'unknown_identity', subject: 'stranger' },
      },
      {
        actor: 'anonymous',
        target: berta?.id ?? '',
        details: { method: 'trusted_header', reason: 'account_disabled', subject: 'berta' },
      },
    ])
  })

  test('but of one client eight a minute, which cost nobody a try at a password', async () => {
    const { app, announced, setProvider, browser, audit } = open()
    await setProvider({ unknownIdentityRoleId: null })
    const knock = (address: string) =>
      announced(`of-${address}`).ask(SETTINGS, { headers: { 'x-forwarded-for': address } })
    const count = () => audit().filter(({ event }) => event === 'login_failed').length
    for (let i = 0; i < 20; i++) expect((await knock(REMOTE)).status).toBe(401)
    expect(count()).toBe(8)
    await knock('192.0.2.8')
    expect(count()).toBe(9)
    const login = await browser().ask('POST /api/dashboard-auth/password/login', {
      json: { username: 'boss', password: PASSWORD },
      headers: { 'x-forwarded-for': REMOTE },
    })
    expect(login.status).toBe(200)
    await app.clock.advance('1m')
    await knock(REMOTE)
    expect(count()).toBe(10)
  })

  test('the proxy counts before the cookie when it announces somebody who is let in', async () => {
    const { as, announced } = open()
    const both = announced('anna')
    both.cookie = as('admin').cookie
    expect((await both.session()).user?.username).toBe('anna')
  })
})

describe('§5 Trusted-header: confirming', () => {
  test('who has nothing to confirm with is told so', async () => {
    const { announced } = open()
    const response = await announced('anna').ask('POST /api/dashboard-users', {
      json: { username: 'x', role: 'viewer' },
    })
    expect(await problem(response)).toEqual([403, 'step_up_unavailable'])
  })
})

describe('§2 Identity provider', () => {
  test('both are listed; the proxy is active in this mode', async () => {
    const list = (await (await open().as('admin').ask('GET /api/auth-providers')).json()) as unknown[] // as: compared below
    expect(list).toEqual([
      expect.objectContaining({ id: 'idp_password', kind: 'password', active: true }),
      {
        id: 'idp_trusted_header',
        kind: 'trusted_header',
        providerKey: 'default',
        label: 'Reverse proxy',
        enabled: true,
        active: true,
        unknownIdentityRoleId: 'role_admin',
        noMatchRoleId: null,
        linkByEmail: false,
        skipRoleSync: false,
        idpMfaEnforced: false,
        config: { identityHeader: 'Remote-User' },
        createdAt: null,
        updatedAt: null,
      },
    ])
  })

  test('linkByEmail: off, the owner of the address gets an account of their own', async () => {
    const { add, announced } = open()
    add({ username: 'anna', email: 'anna@example.com' })
    expect((await announced('anna@example.com').session()).user?.username).toBe('anna.example.com')
  })

  test('linkByEmail: on, they are linked; also when disabled, so that nobody comes back anew', async () => {
    const { add, announced, setProvider, audit, names } = open()
    add({ username: 'anna', email: 'anna@example.com' })
    add({ username: 'dora', email: 'dora@example.com', status: 'disabled' })
    await setProvider({ linkByEmail: true })
    expect((await announced('Anna@Example.com').session()).user?.username).toBe('anna')
    expect(audit().at(-1)).toMatchObject({ event: 'identity_linked', details: { via: 'email' } })
    expect(await problem(await announced('dora@example.com').ask(SETTINGS))).toEqual([401, 'account_disabled'])
    expect(names().toSorted()).toEqual(['anna', 'boss', 'dora'])
  })

  test('linkByEmail: an address that the account wrote itself links nobody, until an administrator enters it', async () => {
    const { as, announced, setProvider } = open()
    const eve = as('viewer', { username: 'eve' })
    const claim = (email: string | null) => eve.ask('PATCH /api/dashboard-auth/me', { json: { email } })
    expect((await claim('ceo@example.com')).status).toBe(200)
    const admin = await setProvider({ linkByEmail: true, unknownIdentityRoleId: null })
    expect(await problem(await announced('ceo@example.com').ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    const enter = (email: string) => admin.ask(`PATCH /api/dashboard-users/${eve.person.row.id}`, { json: { email } })
    expect((await enter('eve@example.com')).status).toBe(200)
    expect((await announced('eve@example.com').session()).user?.username).toBe('eve')
  })

  test('the form offers the role strangers get now, also to who could not give it', async () => {
    const { as, addRole } = open()
    addRole('guard', { 'security:write': 'all', 'users:manage': 'all' })
    const page = await (await as('guard').ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const [select = ''] = /<select name="unknownIdentityRoleId">.*?<\/select>/s.exec(page) ?? []
    expect(select).toMatch(/<option value="role_admin" selected[^>]*>/)
  })

  test('idpMfaEnforced is recorded, and each change says what it was', async () => {
    const { setProvider, audit } = open()
    const admin = await setProvider({ idpMfaEnforced: true, label: 'SSO' })
    expect(audit()).toMatchObject([
      {
        event: 'provider_updated',
        actor: admin.person.row.id,
        details: { changed: ['label', 'idpMfaEnforced'], to: { idpMfaEnforced: true } },
      },
    ])
    expect(await (await admin.ask('GET /api/auth-providers')).json()).toMatchObject([
      {},
      { idpMfaEnforced: true, label: 'SSO' },
    ])
  })

  test.each<[string, string, Record<string, unknown>, [number, string]]>([
    ['an unknown provider', 'idp_saml', {}, [404, 'provider_not_found']],
    ['an unknown role', 'idp_trusted_header', { unknownIdentityRoleId: 'nobody' }, [404, 'role_not_found']],
    ['Member', 'idp_trusted_header', { unknownIdentityRoleId: 'role_member' }, [422, 'role_not_assignable']],
    ['an unknown field', 'idp_trusted_header', { groups: [] }, [422, 'validation_error']],
    ['a role for passwords', 'idp_password', { linkByEmail: true }, [422, 'validation_error']],
  ])('%s is refused', async (_, id, json, expected) => {
    expect(await problem(await open().as('admin').ask(`PATCH /api/auth-providers/${id}`, { json }))).toEqual(expected)
  })

  test('nobody makes strangers more than they are', async () => {
    const { as, addRole, setProvider } = open()
    await setProvider({ unknownIdentityRoleId: null })
    addRole('guard', { 'security:write': 'all', 'ops:write': 'all' })
    expect(await problem(await as('guard').ask(PROVIDER, { json: { unknownIdentityRoleId: 'role_admin' } }))).toEqual([
      403,
      'insufficient_delegation',
    ])
    expect((await as('guard').ask(PROVIDER, { json: { linkByEmail: true } })).status).toBe(200)
  })

  test('it needs security:write and a confirmation to change, no confirmation to read', async () => {
    const { as } = open()
    expect(await problem(await as('operator').ask('GET /api/auth-providers'))).toEqual([403, 'permission_required'])
    const admin = as('admin', { isConfirmed: false })
    expect((await admin.ask('GET /api/auth-providers')).status).toBe(200)
    expect(await problem(await admin.ask(PROVIDER, { json: {} }))).toEqual([403, 'step_up_required'])
  })
})
