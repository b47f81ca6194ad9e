/** Spec §2, identity provider: new users of the proxy, and who can change the rules for them. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { invites, users } from '../../db/schema/people.ts'
import { problem } from '../support/people.ts'
import { behindProxy, PROVIDER, SETTINGS } from '../support/proxied.ts'

describe('§2 Identity provider', () => {
  test('both are listed; the proxy is active in this mode', async () => {
    const list = (await (
      await (await (await behindProxy()).as('admin')).ask('GET /api/auth-providers')
    ).json()) as unknown[] // as: compared below
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

  test('linkByEmail: off, the owner of the address gets a separate user', async () => {
    const { add, announced } = await behindProxy()
    await add({ username: 'anna', email: 'anna@example.com' })
    expect((await announced('anna@example.com').session()).user?.username).toBe('anna.example.com')
  })

  test('linkByEmail: on, they are linked; even when disabled, so that no one gets a new user', async () => {
    const { add, announced, setProvider, audit, names } = await behindProxy()
    await add({ username: 'anna', email: 'anna@example.com' })
    await add({ username: 'dora', email: 'dora@example.com', status: 'disabled' })
    await setProvider({ linkByEmail: true })
    expect((await announced('Anna@Example.com').session()).user?.username).toBe('anna')
    expect((await audit()).at(-1)).toMatchObject({ event: 'identity_linked', details: { via: 'email' } })
    expect(await problem(await announced('dora@example.com').ask(SETTINGS))).toEqual([401, 'account_disabled'])
    expect((await names()).toSorted()).toEqual(['anna', 'boss', 'dora'])
  })

  describe('linkByEmail: an invited user', () => {
    const inviting = async (more: object = {}) => {
      const world = await behindProxy()
      const admin = await world.setProvider({ linkByEmail: true })
      const json = { username: 'anna', email: 'anna@example.com', role: 'viewer', ...more }
      const response = await admin.ask('POST /api/dashboard-users', { json })
      expect(response.status).toBe(201)
      const anna = await world.app.db.select().from(users).where(eq(users.username, 'anna')).get()
      return { ...world, admin, anna, visit: () => world.announced('anna@example.com') }
    }

    test('is linked and becomes active, and its invite link stops working', async () => {
      const { app, visit, audit } = await inviting()
      const session = await visit().session()
      expect([session.user?.username, session.user?.role.slug]).toEqual(['anna', 'viewer'])
      expect((await audit()).at(-1)).toMatchObject({
        event: 'identity_linked',
        actorName: 'anna',
        details: { via: 'email' },
      })
      expect(await app.db.select().from(invites).all()).toEqual([])
    })

    test('is rejected while its inviter cannot give the role, and not created as another user', async () => {
      const { app, admin, visit, names } = await inviting()
      await commit(app.db, (tx) =>
        tx.update(users).set({ status: 'disabled' }).where(eq(users.id, admin.person.row.id)).run(),
      )
      expect(await problem(await visit().ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
      expect((await names()).toSorted()).toEqual(['anna', 'boss'])
    })

    test('is not linked after its invite expired', async () => {
      const { app, visit } = await inviting()
      await app.clock.advance(24 * 3_600_000)
      expect((await visit().session()).user?.username).toBe('anna.example.com')
    })

    test('that waits for another identity is not linked by its address', async () => {
      const expectedIdentity = { provider: 'trusted_header', subject: 'corp\\anna' }
      const { visit } = await inviting({ ssoOnly: true, expectedIdentity })
      expect((await visit().session()).user?.username).toBe('anna.example.com')
    })
  })

  test.each([
    ['admin', 'eve'],
    ['viewer', null],
    ['operator', null],
  ])('linkByEmail: an address that a user with the role %s entered for themselves links %p', async (role, expected) => {
    const { as, announced, setProvider } = await behindProxy()
    const eve = await as(role, { username: 'eve' })
    const claim = { json: { email: 'eve@example.com' } }
    expect((await eve.ask('PATCH /api/dashboard-auth/me', claim)).status).toBe(200)
    await setProvider({ linkByEmail: true, unknownIdentityRoleId: null })
    expect((await announced('eve@example.com').session()).user?.username ?? null).toBe(expected)
  })

  test('linkByEmail: so does one of a role with users:manage, until its owner gets another role', async () => {
    const { app, as, addRole, announced, setProvider } = await behindProxy()
    const roleId = await addRole('people', { 'users:manage': 'all' })
    const setRole = (id: string) =>
      commit(app.db, (tx) => tx.update(users).set({ roleId: id }).where(eq(users.id, eve.person.row.id)).run())
    const eve = await as('people', { username: 'eve' })
    expect((await eve.ask('PATCH /api/dashboard-auth/me', { json: { email: 'eve@example.com' } })).status).toBe(200)
    await setProvider({ linkByEmail: true, unknownIdentityRoleId: null })
    await setRole('role_viewer')
    expect(await problem(await announced('eve@example.com').ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    await setRole(roleId)
    expect((await announced('eve@example.com').session()).user?.username).toBe('eve')
  })

  test('linkByEmail: an address the user entered links no one, until an administrator enters it', async () => {
    const { as, announced, setProvider } = await behindProxy()
    const eve = await as('viewer', { username: 'eve' })
    const claim = (email: string | null) => eve.ask('PATCH /api/dashboard-auth/me', { json: { email } })
    expect((await claim('ceo@example.com')).status).toBe(200)
    const admin = await setProvider({ linkByEmail: true, unknownIdentityRoleId: null })
    expect(await problem(await announced('ceo@example.com').ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    const enter = (email: string) => admin.ask(`PATCH /api/dashboard-users/${eve.person.row.id}`, { json: { email } })
    expect((await enter('eve@example.com')).status).toBe(200)
    expect((await announced('eve@example.com').session()).user?.username).toBe('eve')
  })

  test('linkByEmail: an administrator enters such an address by sending it alone, and not in a complete form', async () => {
    const { as, announced, setProvider, audit } = await behindProxy()
    const eve = await as('viewer', { username: 'eve' })
    const email = 'eve@example.com'
    expect((await eve.ask('PATCH /api/dashboard-auth/me', { json: { email } })).status).toBe(200)
    const admin = await setProvider({ linkByEmail: true, unknownIdentityRoleId: null })
    const save = async (json: object) =>
      (await admin.ask(`PATCH /api/dashboard-users/${eve.person.row.id}`, { json })).status
    expect(await save({ email, displayName: 'Eve' })).toBe(200)
    expect(await problem(await announced(email).ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    expect(await save({ email })).toBe(200)
    expect((await audit()).at(-1)).toMatchObject({ event: 'user_updated', details: { changed: ['email'] } })
    expect((await announced(email).session()).user?.username).toBe('eve')
  })

  test('the form offers the current default role, even to users who could not assign it', async () => {
    const { as, addRole } = await behindProxy()
    await addRole('guard', { 'security:write': 'all', 'users:manage': 'all' })
    const page = await (
      await (await as('guard')).ask('GET /settings/access', { headers: { accept: 'text/html' } })
    ).text()
    const [select = ''] = /<select name="unknownIdentityRoleId">.*?<\/select>/s.exec(page) ?? []
    expect(select).toMatch(/<option value="role_admin" selected[^>]*>/)
  })

  test('idpMfaEnforced is recorded, and each change has the previous value', async () => {
    const { setProvider, audit } = await behindProxy()
    const admin = await setProvider({ idpMfaEnforced: true, label: 'SSO' })
    expect(await audit()).toMatchObject([
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

  test('a form with unchanged values is recorded as what it changed', async () => {
    const { as, audit } = await behindProxy()
    const admin = await as('admin')
    const form = { label: 'Reverse proxy', unknownIdentityRoleId: 'admin', linkByEmail: false, idpMfaEnforced: false }
    for (const json of [form, { ...form, unknownIdentityRoleId: null }, { ...form, unknownIdentityRoleId: null }])
      expect((await admin.ask('PATCH /api/auth-providers/idp_trusted_header', { json })).status).toBe(200)
    expect((await audit()).map(({ details }) => details)).toEqual([
      { changed: ['unknownIdentityRoleId'], to: { unknownIdentityRoleId: null } },
    ])
  })

  test.each<[string, string, Record<string, unknown>, [number, string]]>([
    ['an unknown provider', 'idp_saml', {}, [404, 'provider_not_found']],
    ['an unknown role', 'idp_trusted_header', { unknownIdentityRoleId: 'no_such_role' }, [404, 'role_not_found']],
    ['Guest', 'idp_trusted_header', { unknownIdentityRoleId: 'role_guest' }, [422, 'role_not_assignable']],
    ['an unknown field', 'idp_trusted_header', { groups: [] }, [422, 'validation_error']],
    ['a role for passwords', 'idp_password', { linkByEmail: true }, [422, 'validation_error']],
  ])('%s is rejected', async (_, id, json, expected) => {
    expect(
      await problem(await (await (await behindProxy()).as('admin')).ask(`PATCH /api/auth-providers/${id}`, { json })),
    ).toEqual(expected)
  })

  test('new users cannot get more than their administrator has', async () => {
    const { as, addRole, setProvider } = await behindProxy()
    await setProvider({ unknownIdentityRoleId: null })
    await addRole('guard', { 'security:write': 'all', 'ops:write': 'all' })
    expect(
      await problem(await (await as('guard')).ask(PROVIDER, { json: { unknownIdentityRoleId: 'role_admin' } })),
    ).toEqual([403, 'insufficient_delegation'])
    expect((await (await as('guard')).ask(PROVIDER, { json: { linkByEmail: true } })).status).toBe(200)
  })

  test('it needs security:write and a confirmation to change, but no confirmation to read', async () => {
    const { as } = await behindProxy()
    expect(await problem(await (await as('operator')).ask('GET /api/auth-providers'))).toEqual([
      403,
      'permission_required',
    ])
    const admin = await as('admin', { isConfirmed: false })
    expect((await admin.ask('GET /api/auth-providers')).status).toBe(200)
    expect(await problem(await admin.ask(PROVIDER, { json: {} }))).toEqual([403, 'step_up_required'])
  })
})
