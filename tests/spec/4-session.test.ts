/** Spec §2 and §4, the session response and one's own user: every member, for every kind of visitor. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { passkeys } from '../../db/schema/people.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, problem, REMOTE, REQUEST_FORMATS } from '../support/people.ts'
import { behindProxy } from '../support/proxied.ts'

const AUTH = '/api/dashboard-auth'

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const app = await testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

describe('§2 Session response', () => {
  test('has every member for a user', async () => {
    const { app, add, addRole, as } = await open()
    await addRole('helper', { 'dashboard:read': 'all' })
    await add({ status: 'disabled', role: 'helper' })
    const anna = await as('admin', { displayName: 'Anna' })
    const now = app.clock.now()
    const { row } = anna.person
    const session: unknown = await anna.session()
    expect(session).toEqual({
      authenticated: true,
      authMode: 'standard',
      passwordRequired: true,
      passwordManagementEnabled: true,
      bootstrapRequired: false,
      bootstrapTokenConfigured: false,
      guestAccessEnabled: false,
      guestPasswordRequired: false,
      authMethod: 'password',
      passwordSessionActive: true,
      totpRequiredOnLogin: false,
      totpConfigured: false,
      totpEnrollmentRequired: false,
      mustChangePassword: false,
      user: {
        id: row.id,
        username: row.username,
        displayName: 'Anna',
        role: { id: 'role_admin', slug: 'admin', name: 'Admin', kind: 'preset' },
      },
      role: 'admin',
      permissions: expect.arrayContaining(['read', 'write', 'users:manage:all']),
      login: {
        usernameField: 'hidden',
        username_field: 'hidden',
        providers: [{ kind: 'password', providerKey: 'default', label: 'Password', loginUrl: null }],
        pendingIdentity: false,
      },
      stepUp: {
        verifiedAt: new Date(now).toISOString(),
        expiresAt: new Date(now + 300_000).toISOString(),
        methods: ['password'],
      },
      accessSummary: {
        usersTotal: 2,
        usersActive: 1,
        usersInvited: 0,
        usersDisabled: 1,
        pendingInvites: 0,
        nonAdminUsers: 1,
        customRoles: 1,
        providersEnabled: ['password'],
      },
      assignableRoleIds: ['role_admin', 'role_operator', 'role_viewer', 'role_member', expect.stringMatching(/^role_/)],
    })
  })

  test('has the documented names of the sign-in methods', async () => {
    const { as } = await behindProxy()
    const admin = await as('admin')
    for (const [id, label] of [
      ['idp_password', 'Local password'],
      ['idp_trusted_header', 'Authelia'],
    ])
      expect((await admin.ask(`PATCH /api/auth-providers/${id}`, { json: { label } })).status).toBe(200)
    const { login, accessSummary } = await admin.session()
    expect(login).toMatchObject({ providers: [{ label: 'Local password' }, { label: 'Authelia' }] })
    expect(accessSummary).toMatchObject({ providersEnabled: ['password', 'trusted_header'] })
  })

  test('has no sign-in method with authentication off', async () => {
    const { browser } = await open({ environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } })
    const { login, accessSummary } = await browser().session()
    expect([login, accessSummary]).toMatchObject([{ providers: [] }, { providersEnabled: [] }])
  })

  test('has the coarse permissions first, then every grant', async () => {
    const { as, addRole } = await open()
    await addRole('own', { 'dashboard:read': 'own' })
    await addRole('manager', { 'users:manage': 'all' })
    const permissions = async (role: string) => (await (await as(role)).session()).permissions
    const operator = await permissions('operator')
    expect(operator.slice(0, 2)).toEqual(['read', 'write'])
    expect(operator.slice(2)).toEqual(operator.slice(2).toSorted())
    expect(operator).not.toContain('security:write:all')
    expect(await permissions('viewer')).toEqual(['read', 'accounts:read:all', 'dashboard:read:all'])
    expect(await permissions('own')).toEqual(['read', 'dashboard:read:own'])
    expect(await permissions('manager')).toEqual(['users:manage:all'])
  })

  test('every user reports admin, the actual role is in user.role', async () => {
    const { as } = await open()
    expect(await (await as('viewer')).session()).toMatchObject({ role: 'admin', user: { role: { slug: 'viewer' } } })
  })

  test('reveals nothing about users to a visitor', async () => {
    const { as, browser } = await open()
    await as('admin', { username: 'anna' })
    const session = await browser(REMOTE).session()
    expect(session).toMatchObject({
      authenticated: false,
      permissions: [],
      user: null,
      stepUp: null,
      accessSummary: null,
      assignableRoleIds: [],
    })
    expect(JSON.stringify(session)).not.toContain('anna')
  })

  test('does not reveal the number of users to those who do not manage them', async () => {
    const { as } = await open()
    expect(await (await as('operator')).session()).toMatchObject({ accessSummary: null, assignableRoleIds: [] })
  })
})

describe('§4 GET and PATCH me', () => {
  test('work for a user, however they signed in', async () => {
    const { as } = await open()
    const anna = await as('viewer', { hasPassword: false, method: 'passkey', email: 'anna@example.com' })
    const me = await (await anna.ask(`GET ${AUTH}/me`)).json()
    expect(me).toEqual({
      id: anna.person.row.id,
      username: anna.person.row.username,
      displayName: null,
      email: 'anna@example.com',
      role: { id: 'role_viewer', slug: 'viewer', name: 'Viewer', kind: 'preset' },
      authMethod: 'passkey',
      totpConfigured: false,
      mustChangePassword: false,
      recoveryCodesLeft: 0,
      version: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
  })

  test.each(REQUEST_FORMATS)('change display name and email, in lower case, and record it (%s)', async (how) => {
    const { as, audit } = await open()
    const anna = await as('viewer')
    const fields = { displayName: ' Anna ', email: 'Anna@Example.com' }
    const route = how === 'json' ? `PATCH ${AUTH}/me` : `POST ${AUTH}/me`
    expect((await anna.send(how, route, fields)).status).toBe(how === 'json' ? 200 : 303)
    const me = await (await anna.ask(`GET ${AUTH}/me`)).json()
    expect(me).toMatchObject({ displayName: 'Anna', email: 'anna@example.com' })
    expect(await audit()).toMatchObject([{ event: 'profile_updated', details: { changed: ['displayName', 'email'] } }])
  })

  test('keep omitted fields, and reject fields users cannot change', async () => {
    const { as } = await open()
    const anna = await as('viewer', { displayName: 'Anna', email: 'anna@example.com' })
    await anna.ask(`PATCH ${AUTH}/me`, { json: { email: null } })
    expect(await (await anna.ask(`GET ${AUTH}/me`)).json()).toMatchObject({ displayName: 'Anna', email: null })
    for (const json of [{ role: 'admin' }, { username: 'other' }, { email: 'no address' }])
      expect(await problem(await anna.ask(`PATCH ${AUTH}/me`, { json }))).toEqual([422, 'validation_error'])
  })
})

describe('§4 Changes to one’s own account', () => {
  const NAME: [route: string, json: (n: number) => object] = [
    `PATCH ${AUTH}/me`,
    (n) => ({ displayName: `Anna ${n % 2}` }),
  ]
  const CHANGES: (typeof NAME)[] = [
    NAME,
    [`PATCH ${AUTH}/passkeys/pky_1`, (n) => ({ name: `Phone ${n % 2}` })],
    [`POST ${AUTH}/step-up`, () => ({ password: PASSWORD })],
    [`POST ${AUTH}/password/change`, () => ({ currentPassword: PASSWORD, newPassword: PASSWORD })],
  ]

  test.each(CHANGES)('%s: thirty per minute and user are made and recorded', async (route, json) => {
    const { app, as, audit } = await open()
    const [anna, berta] = [await as('viewer'), await as('viewer')]
    await addPasskey(app, anna.person.row.id)
    const change = (who: typeof anna, n: number) => who.ask(route, { json: json(n) })
    for (let n = 0; n < 30; n++) expect((await change(anna, n)).status).toBe(200)
    const refused = await change(anna, 30)
    expect(refused.headers.get('retry-after')).toBe('60')
    expect(await problem(refused)).toEqual([429, 'own_account_rate_limited'])
    expect(await audit()).toHaveLength(30)
    expect((await change(berta, 0)).status).toBe(route.includes('pky_1') ? 404 : 200)
    await app.clock.advance(60_000)
    expect((await change(anna, 31)).status).toBe(200)
  })

  test('of one kind do not affect another, so a copied cookie cannot lock the user out', async () => {
    const { as } = await open()
    const anna = await as('viewer')
    const [route, json] = NAME
    for (let n = 0; n <= 30; n++) await anna.ask(route, { json: json(n) })
    const page = await anna.submit(`POST ${AUTH}/me`, { displayName: 'Anna' })
    expect(await page.text()).toContain('Too many changes to your account. Try again in 60 seconds.')
    const change = { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` }
    expect((await anna.ask(`POST ${AUTH}/password/change`, { json: change })).status).toBe(200)
  })

  test('that end no session are none', async () => {
    const { as, browser, audit } = await open({
      environment: {
        CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
        CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8',
      },
    })
    expect(await (await (await as('viewer')).ask(`DELETE ${AUTH}/sessions`)).json()).toEqual({ ended: 0 })
    const headers = { 'remote-user': 'anna', 'x-forwarded-for': '192.0.2.7' }
    expect((await browser('10.0.0.1').ask(`POST ${AUTH}/logout-all`, { headers })).status).toBe(200)
    expect((await audit()).map(({ event }) => event)).not.toContain('user_sessions_revoked')
  })

  const addPasskey = ({ db, clock }: Awaited<ReturnType<typeof testApp>>, userId: string) =>
    commit(db, async (tx) => {
      const key = { credentialId: 'one', publicKey: '', counter: 0, transports: [] }
      await tx
        .insert(passkeys)
        .values({ ...key, id: 'pky_1', userId, name: 'Phone', createdAt: clock.now() })
        .run()
    })
})
