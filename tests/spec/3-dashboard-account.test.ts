/** Spec §3, dashboard account: the rows of its table, in their order, and what else a change of state does. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { identities, users } from '../../db/schema/people.ts'
import { findPerson, listPeople } from '../../src/model/users/people.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { doneStatus, getInviteToken, PASSWORD, people, problem, REMOTE, REQUEST_FORMATS } from '../support/people.ts'

const HEADER = 'remote-user'
const PROXY = { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }

const open = async (environment: Record<string, string> = {}) => {
  const app = await testApp({ accounts: 0, environment, settings: { apiKeyAuthEnabled: true } })
  return { app, ...people(app) }
}
const openProxy = () => open(PROXY)

interface Invited {
  user: { id: string; username: string; status: string }
  invite: { token: string; expiresAt: string } | null
}

const invited = async (response: Response): Promise<Invited> => (await response.json()) as Invited // as: checked by status

const personCalled = async ({ db }: TestApp, name: string) =>
  (await listPeople(db)).find(({ row }) => row.username === name)

const getStatus = async ({ db }: TestApp, id: string) => (await findPerson(db, id))?.row.status ?? null

describe('§3 Dashboard account row 1: a user is added', () => {
  test.each(REQUEST_FORMATS)('it is invited, and its link is shown once (%s)', async (how) => {
    const { app, as, audit } = await open()
    const admin = await as('admin')
    const response = await admin.send(how, 'POST /api/dashboard-users', { username: 'Anna', role: 'viewer' })
    expect(response.status).toBe(201)
    const token = await getInviteToken(response)
    expect(token).toHaveLength(43)
    const anna = await personCalled(app, 'anna')
    expect(anna).toMatchObject({ row: { status: 'invited' }, role: { slug: 'viewer' } })
    for (const route of ['GET /api/dashboard-users', 'GET /api/dashboard-users/invites'])
      expect(await (await admin.ask(route)).text()).not.toContain(token)
    expect(JSON.stringify(await audit())).not.toContain(token)
    expect(app.sqlite.serialize().includes(token)).toBe(false)
    expect(await audit()).toMatchObject([
      { event: 'user_invited', target: anna?.row.id, details: { username: 'anna', role: 'viewer' } },
    ])
  })

  test('the response has the expiry of the link', async () => {
    const response = await (await (await open()).as('admin')).ask('POST /api/dashboard-users', {
      json: { username: 'anna', role: 'viewer' },
    })
    expect((await invited(response)).invite).toEqual({
      token: expect.stringMatching(/^[\w-]{43}$/),
      expiresAt: '2026-01-02T00:00:00.000Z',
    })
  })

  test('a name reserved by an expired invite link is free again', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    const invite = () => admin.ask('POST /api/dashboard-users', { json: { username: 'anna', role: 'viewer' } })
    await invite()
    expect(await problem(await invite())).toEqual([409, 'username_taken'])
    await app.clock.advance('24h')
    const again = await as('admin')
    expect((await again.ask('POST /api/dashboard-users', { json: { username: 'anna', role: 'viewer' } })).status).toBe(
      201,
    )
  })
})

describe('§3 Dashboard account row 2: an identity is seen first', () => {
  test('a user is created for it, active, and both events are recorded', async () => {
    const { app, browser, audit } = await openProxy()
    const session = await (await browser().ask('GET /api/settings', { headers: { [HEADER]: 'Anna@Example.com' } }))
      .status
    expect(session).toBe(200)
    const [row] = await app.db.select().from(users).all()
    expect(row).toMatchObject({ username: 'anna.example.com', status: 'active', roleId: 'role_admin' })
    expect(await audit()).toMatchObject([
      { event: 'user_created', actor: row?.id, actorName: 'anna.example.com', method: 'trusted_header' },
      { event: 'identity_linked', target: row?.id, details: { subject: 'anna@example.com' } },
    ])
  })
})

const withInvite = async (environment?: Record<string, string>) => {
  const world = await open(environment)
  const admin = await world.as('admin', { username: 'boss' })
  const { user, invite } = await invited(
    await admin.ask('POST /api/dashboard-users', { json: { username: 'anna', role: 'viewer' } }),
  )
  const look = async (token: string) =>
    (await world.browser(REMOTE).ask(`GET /api/dashboard-auth/invite/${token}`)).status
  return { ...world, admin, id: user.id, token: invite?.token ?? '', look }
}

describe('§3 Dashboard account row 3: the invite is sent again', () => {
  test.each(REQUEST_FORMATS)('the new link works and the old one is dead (%s)', async (how) => {
    const { admin, id, token, look } = await withInvite()
    const response = await admin.send(how, `POST /api/dashboard-users/${id}/invite`)
    const again = await getInviteToken(response)
    expect([response.status, again.length, await look(token), await look(again)]).toEqual([200, 43, 404, 200])
  })

  test('there must be an invite', async () => {
    const { admin } = await withInvite()
    const path = `/api/dashboard-users/${admin.person.row.id}/invite`
    for (const route of [`POST ${path}`, `DELETE ${path}`])
      expect(await problem(await admin.ask(route))).toEqual([409, 'invite_not_pending'])
  })

  test('a user who waits for an identity has no link', async () => {
    const { as } = await openProxy()
    const admin = await as('admin', { hasTotp: true })
    const json = {
      username: 'anna',
      role: 'viewer',
      ssoOnly: true,
      expectedIdentity: { provider: 'trusted_header', subject: 'a' },
    }
    const { user, invite } = await invited(await admin.ask('POST /api/dashboard-users', { json }))
    expect(invite).toBeNull()
    expect(await problem(await admin.ask(`POST /api/dashboard-users/${user.id}/invite`))).toEqual([
      409,
      'sso_only_invite',
    ])
  })
})

describe('§3 Dashboard account row 4: the invite is revoked', () => {
  test.each(REQUEST_FORMATS)('the user is deleted and the link is dead (%s)', async (how) => {
    const { app, admin, id, token, look, audit } = await withInvite()
    const response = await admin.send(how, `DELETE /api/dashboard-users/${id}/invite`)
    expect([response.status, await getStatus(app, id), await look(token)]).toEqual([doneStatus(how, 204), null, 404])
    expect((await audit()).at(-1)).toMatchObject({ event: 'invite_revoked', target: id, details: { username: 'anna' } })
  })
})

describe('§3 Dashboard account rows 3 to 5: an invite beside it', () => {
  test.each<[string, (world: Awaited<ReturnType<typeof withInvite>>) => Promise<Response>]>([
    ['sent again', ({ admin, id }) => admin.ask(`POST /api/dashboard-users/${id}/invite`)],
    ['revoked', ({ admin, id }) => admin.ask(`DELETE /api/dashboard-users/${id}/invite`)],
    [
      'for another role now',
      ({ admin, id }) => admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { role: 'operator' } }),
    ],
    [
      'accepted',
      ({ browser, token }) =>
        browser(REMOTE).ask('POST /api/dashboard-auth/invite/accept', { json: { token, password: PASSWORD } }),
    ],
  ])('is unchanged when this one is %s', async (_, change) => {
    const world = await withInvite()
    const json = { username: 'berta', role: 'viewer' }
    const other = await invited(await world.admin.ask('POST /api/dashboard-users', { json }))
    expect((await change(world)).ok).toBe(true)
    expect(await getStatus(world.app, other.user.id)).toBe('invited')
    expect(await world.look(other.invite?.token ?? '')).toBe(200)
  })
})

describe('§3 Dashboard account row 5: the invite is accepted', () => {
  test.each(REQUEST_FORMATS)('the user is signed in with the chosen password (%s)', async (how) => {
    const { app, browser, id, token, audit } = await withInvite()
    const anna = browser(REMOTE)
    const response = await anna.send(how, 'POST /api/dashboard-auth/invite/accept', {
      token,
      password: 'my own password',
      displayName: 'Anna',
    })
    expect(response.status).toBe(doneStatus(how, 200))
    expect(await anna.session()).toMatchObject({
      authenticated: true,
      user: { id, username: 'anna', displayName: 'Anna' },
    })
    expect(await getStatus(app, id)).toBe('active')
    expect((await audit()).at(-1)).toMatchObject({ event: 'invite_accepted', actor: id, target: id })
    const later = browser(REMOTE)
    const login = { username: 'anna', password: 'my own password' }
    expect((await later.ask('POST /api/dashboard-auth/password/login', { json: login })).status).toBe(200)
  })
})

describe('§3 Dashboard account row 6: a day passes', () => {
  test('the next read of the invites removes it', async () => {
    const { app, as, id, token, look } = await withInvite()
    await app.clock.advance('24h')
    expect([await look(token), await getStatus(app, id)]).toEqual([404, 'invited'])
    const list = await (await as('admin')).ask('GET /api/dashboard-users/invites')
    expect([await list.json(), await getStatus(app, id)]).toEqual([[], null])
  })
})

describe('§3 Dashboard account row 7: a user waits for an identity', () => {
  const waiting = async (how: (typeof REQUEST_FORMATS)[number]) => {
    const world = await openProxy()
    const admin = await world.as('admin', { hasTotp: true })
    const fields = {
      username: 'anna',
      role: 'viewer',
      ssoOnly: true,
      ...(how === 'form' && {
        'expectedIdentity.provider': 'trusted_header',
        'expectedIdentity.subject': ' Anna@Example.com ',
      }),
    }
    const json = { ...fields, expectedIdentity: { provider: 'trusted_header', subject: ' Anna@Example.com ' } }
    const response =
      how === 'json'
        ? await admin.ask('POST /api/dashboard-users', { json })
        : await admin.submit('POST /api/dashboard-users', fields)
    return { ...world, admin, json, response }
  }

  test.each(REQUEST_FORMATS)('it never expires and becomes active with its identity (%s)', async (how) => {
    const { app, browser, response, audit } = await waiting(how)
    const id = (await personCalled(app, 'anna'))?.row.id ?? ''
    expect(response.status).toBe(201)
    await app.clock.advance('240h')
    expect((await browser().ask('GET /api/settings', { headers: { [HEADER]: 'anna@example.com.evil' } })).status).toBe(
      200,
    )
    expect(await getStatus(app, id)).toBe('invited')
    expect((await browser().ask('GET /api/settings', { headers: { [HEADER]: 'anna@example.com' } })).status).toBe(200)
    expect(await findPerson(app.db, id)).toMatchObject({ row: { status: 'active' }, role: { slug: 'viewer' } })
    expect((await audit()).at(-1)).toMatchObject({ event: 'identity_linked', target: id, details: { via: 'invite' } })
  })

  test('one user waits for one identity', async () => {
    const { admin, json } = await waiting('json')
    expect(
      await problem(await admin.ask('POST /api/dashboard-users', { json: { ...json, username: 'berta' } })),
    ).toEqual([409, 'identity_taken'])
  })

  test('nor can a user wait for an identity that is in use', async () => {
    const { admin, json, browser } = await waiting('json')
    await browser().ask('GET /api/settings', { headers: { [HEADER]: 'berta' } })
    const taken = { ...json, username: 'second', expectedIdentity: { provider: 'trusted_header', subject: 'berta' } }
    expect(await problem(await admin.ask('POST /api/dashboard-users', { json: taken }))).toEqual([
      409,
      'identity_taken',
    ])
  })

  test('there is nothing to wait for if the proxy signs no one in', async () => {
    const { as } = await open()
    const json = {
      username: 'anna',
      role: 'viewer',
      ssoOnly: true,
      expectedIdentity: { provider: 'trusted_header', subject: 'a' },
    }
    expect(await problem(await (await as('admin')).ask('POST /api/dashboard-users', { json }))).toEqual([
      409,
      'sso_not_available',
    ])
  })
})

/** An admin, an operator with two keys of their own, one of which they revoked. */
const withKeys = async () => {
  const world = await open()
  const admin = await world.as('admin')
  const anna = await world.as('operator', { username: 'anna' })
  const make = async (name: string) =>
    (await (await anna.ask('POST /api/api-keys/', { json: { name } })).json()) as { id: string; key: string }
  const [good, revoked] = [await make('good'), await make('revoked')]
  await anna.ask(`PATCH /api/api-keys/${revoked.id}`, { json: { isActive: false } })
  const models = async ({ key }: { key: string }) =>
    (await world.app.ask('GET /v1/models', { headers: { authorization: `Bearer ${key}` }, peer: REMOTE })).status
  const key = async ({ id }: { id: string }) =>
    ((await (await admin.ask('GET /api/api-keys/')).json()) as { id: string }[]).find((row) => row.id === id)
  return { ...world, admin, anna, id: anna.person.row.id, good, revoked, models, key }
}

describe('§3 Dashboard account row 8: a user is disabled', () => {
  test.each(REQUEST_FORMATS)(
    'their sessions end, and their keys turn inactive with the reason owner_disabled (%s)',
    async (how) => {
      const { app, admin, anna, id, good, revoked, models, key, audit } = await withKeys()
      expect(await models(good)).toBe(200)
      const response = await admin.send(how, `PATCH /api/dashboard-users/${id}`, { status: 'disabled' })
      expect([response.status, await getStatus(app, id)]).toEqual([doneStatus(how, 200), 'disabled'])
      expect(await problem(await anna.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
      expect(await models(good)).toBe(401)
      expect(await key(good)).toMatchObject({ isActive: false, deactivatedReason: 'owner_disabled', ownerUserId: id })
      expect(await key(revoked)).toMatchObject({ isActive: false, deactivatedReason: 'manual' })
      expect((await audit()).slice(-2)).toMatchObject([
        { event: 'user_disabled', target: id },
        { event: 'user_keys_deactivated', target: id, details: { count: 1 } },
      ])
    },
  )

  test('they cannot sign in, and do not learn why', async () => {
    const { admin, id, browser } = await withKeys()
    await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'disabled' } })
    const login = { username: 'anna', password: PASSWORD }
    expect(
      await problem(await browser(REMOTE).ask('POST /api/dashboard-auth/password/login', { json: login })),
    ).toEqual([401, 'invalid_credentials'])
  })

  test('an invited user is neither disabled nor enabled', async () => {
    const { admin, id } = await withInvite()
    for (const status of ['active', 'disabled'])
      expect(await problem(await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status } }))).toEqual([
        409,
        'invite_pending',
      ])
  })
})

describe('§3 Dashboard account row 9: the keys are restored', () => {
  test.each(REQUEST_FORMATS)(
    'exactly those disabled with the user, and inactive until the user is enabled (%s)',
    async (how) => {
      const { admin, id, good, revoked, models, key } = await withKeys()
      await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'disabled' } })
      const response = await admin.send(how, `POST /api/dashboard-users/${id}/reactivate-keys`)
      expect(response.status).toBe(doneStatus(how, 200))
      if (how === 'json') expect(await response.json()).toEqual({ reactivated: 1 })
      expect(await key(good)).toMatchObject({ isActive: true, deactivatedReason: null })
      expect(await key(revoked)).toMatchObject({ isActive: false, deactivatedReason: 'manual' })
      expect(await models(good)).toBe(401)
      await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'active' } })
      expect([await models(good), await models(revoked)]).toEqual([200, 401])
    },
  )
})

describe('§3 Dashboard account row 9: a key that got another owner since', () => {
  test('was not disabled with this one, and stays off', async () => {
    const { admin, id, good, key, add } = await withKeys()
    const other = (await add({ username: 'berta' })).row.id
    await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'disabled' } })
    const given = await admin.ask(`PATCH /api/api-keys/${good.id}`, { json: { ownerUserId: other } })
    expect(await given.json()).toMatchObject({ isActive: false, deactivatedReason: 'manual' })
    const restored = await admin.ask(`POST /api/dashboard-users/${other}/reactivate-keys`)
    expect(await restored.json()).toEqual({ reactivated: 0 })
    expect(await key(good)).toMatchObject({ isActive: false, ownerUserId: other })
  })
})

describe('§3 Dashboard account row 10: a user is enabled', () => {
  test.each(REQUEST_FORMATS)('their keys stay off until they are restored (%s)', async (how) => {
    const { admin, id, good, models } = await withKeys()
    await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'disabled' } })
    expect((await admin.send(how, `PATCH /api/dashboard-users/${id}`, { status: 'active' })).status).toBe(
      doneStatus(how, 200),
    )
    expect(await models(good)).toBe(401)
    await admin.ask(`POST /api/dashboard-users/${id}/reactivate-keys`)
    expect(await models(good)).toBe(200)
  })

  test('they need a way to sign in', async () => {
    const { as, add } = await open()
    const { id } = (await add({ status: 'disabled', hasPassword: false })).row
    const response = await (await as('admin')).ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'active' } })
    expect(await problem(response)).toEqual([409, 'credential_required'])
  })

  test.each([
    ['standard', {}, [409, 'credential_required']],
    ['trusted_header', PROXY, [200, null]],
  ] as const)('which a proxy identity is if the proxy is used: %s', async (_, environment, expected) => {
    const { app, as, add } = await open(environment)
    const { id } = (await add({ status: 'disabled', hasPassword: false })).row
    const identity = { id: 'idn_1', userId: id, provider: 'trusted_header', subject: 'anna', createdAt: 0 } as const
    await commit(app.db, async (tx) => void (await tx.insert(identities).values(identity).run()))
    const response = await (await as('admin')).ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'active' } })
    expect(await problem(response)).toEqual([...expected])
  })
})

describe('§3 Dashboard account: what else ends sessions', () => {
  test.each<[string, string, Record<string, string> | undefined]>([
    ['a change of role', 'PATCH', { role: 'viewer' }],
    ['a reset of the second factor', 'POST /reset-totp', undefined],
    ['revoking them', 'POST /revoke-sessions', undefined],
    ['deletion', 'DELETE', undefined],
  ])('%s', async (_, call, json) => {
    const { as } = await open()
    const admin = await as('admin')
    const anna = await as('operator', { hasTotp: true })
    const [method, rest = ''] = call.split(' ')
    expect((await anna.ask('GET /api/settings')).status).toBe(200)
    expect(
      (await admin.ask(`${method} /api/dashboard-users/${anna.person.row.id}${rest}`, { json })).status,
    ).toBeLessThan(300)
    expect(await problem(await anna.ask('GET /api/settings'))).toEqual([401, 'authentication_required'])
    expect((await admin.ask('GET /api/settings')).status).toBe(200)
  })

  test('a reset removes the second factor', async () => {
    const { app, as, add, audit } = await open()
    const { id } = (await add({ hasTotp: true })).row
    expect((await (await as('admin')).ask(`POST /api/dashboard-users/${id}/reset-totp`)).status).toBe(200)
    expect(await app.db.select().from(users).where(eq(users.id, id)).get()).toMatchObject({
      totpSecretSealed: null,
      totpLastStep: null,
    })
    expect(await audit()).toMatchObject([{ event: 'user_totp_reset', target: id }])
  })
})

describe('§3 Dashboard account: deletion keeps the keys', () => {
  test.each(REQUEST_FORMATS)('inactive and without an owner (%s)', async (how) => {
    const { app, admin, id, good, revoked, models, key, audit } = await withKeys()
    expect((await admin.send(how, `DELETE /api/dashboard-users/${id}`)).status).toBe(doneStatus(how, 204))
    expect(await getStatus(app, id)).toBeNull()
    expect(await key(good)).toMatchObject({ isActive: false, ownerUserId: null, deactivatedReason: 'owner_disabled' })
    expect(await key(revoked)).toMatchObject({ isActive: false, ownerUserId: null, deactivatedReason: 'manual' })
    expect(await models(good)).toBe(401)
    expect((await audit()).at(-1)).toMatchObject({
      event: 'user_deleted',
      target: id,
      details: { username: 'anna', role: 'operator' },
    })
  })

  test('a deleted user cannot be deleted again', async () => {
    const { admin, id } = await withKeys()
    await admin.ask(`DELETE /api/dashboard-users/${id}`)
    expect(await problem(await admin.ask(`DELETE /api/dashboard-users/${id}`))).toEqual([404, 'user_not_found'])
  })
})
