/** Spec §2 and §4, the session response and one's own account: every member, for everybody who can ask. */
import { describe, expect, test } from 'bun:test'
import { testApp } from '../support/app.ts'
import { HOWS, people, problem, REMOTE } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'

const open = (options: Parameters<typeof testApp>[0] = {}) => {
  const app = testApp({ accounts: 0, ...options })
  return { app, ...people(app) }
}

describe('§2 Session response', () => {
  test('has every member for an account', async () => {
    const { app, add, addRole, as } = open()
    addRole('helper', { 'dashboard:read': 'all' })
    add({ status: 'disabled', role: 'helper' })
    const anna = as('admin', { displayName: 'Anna' })
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
      assignableRoleIds: ['role_admin', 'role_operator', 'role_viewer', expect.stringMatching(/^role_/)],
    })
  })

  test('carries the coarse words first, then every grant', async () => {
    const { as } = open()
    const permissions = async (role: string) => (await as(role).session()).permissions
    const operator = await permissions('operator')
    expect(operator.slice(0, 2)).toEqual(['read', 'write'])
    expect(operator.slice(2)).toEqual(operator.slice(2).toSorted())
    expect(operator).not.toContain('security:write:all')
    expect(await permissions('viewer')).toEqual(['read', 'accounts:read:all', 'dashboard:read:all'])
  })

  test('every account reports admin, its real role is in user.role', async () => {
    const { as } = open()
    expect(await as('viewer').session()).toMatchObject({ role: 'admin', user: { role: { slug: 'viewer' } } })
  })

  test('tells a stranger nothing about anybody', async () => {
    const { as, browser } = open()
    as('admin', { username: 'anna' })
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

  test('who does not manage people is not told how many there are', async () => {
    const { as } = open()
    expect(await as('operator').session()).toMatchObject({ accessSummary: null, assignableRoleIds: [] })
  })
})

describe('§4 GET and PATCH me', () => {
  test('answer for an account, however it signed in', async () => {
    const { as } = open()
    const anna = as('viewer', { hasPassword: false, method: 'passkey', email: 'anna@example.com' })
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
    })
  })

  test.each(HOWS)('change display name and e-mail, in lower case, and write it down (%s)', async (how) => {
    const { as, audit } = open()
    const anna = as('viewer')
    const fields = { displayName: ' Anna ', email: 'Anna@Example.com' }
    const route = how === 'json' ? `PATCH ${AUTH}/me` : `POST ${AUTH}/me`
    expect((await anna.send(how, route, fields)).status).toBe(how === 'json' ? 200 : 303)
    const me = await (await anna.ask(`GET ${AUTH}/me`)).json()
    expect(me).toMatchObject({ displayName: 'Anna', email: 'anna@example.com' })
    expect(audit()).toMatchObject([{ event: 'profile_updated', details: { changed: ['displayName', 'email'] } }])
  })

  test('leave alone what is left out, and refuse what is not theirs to change', async () => {
    const { as } = open()
    const anna = as('viewer', { displayName: 'Anna', email: 'anna@example.com' })
    await anna.ask(`PATCH ${AUTH}/me`, { json: { email: null } })
    expect(await (await anna.ask(`GET ${AUTH}/me`)).json()).toMatchObject({ displayName: 'Anna', email: null })
    for (const json of [{ role: 'admin' }, { username: 'other' }, { email: 'no address' }])
      expect(await problem(await anna.ask(`PATCH ${AUTH}/me`, { json }))).toEqual([422, 'validation_error'])
  })
})
