/** Spec §2, dashboard account, and the list for users who manage users. */
import { describe, expect, test } from 'bun:test'
import { getPerson } from '../../src/model/users/people.ts'
import { testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { doneStatus, type Fields, PASSWORD, people, problem, REQUEST_FORMATS } from '../support/people.ts'

const open = async () => {
  const app = await testApp({ accounts: 0 })
  return { app, ...people(app) }
}

describe('§2 Dashboard account: the list', () => {
  test('has everyone, oldest first, with role and state and without a secret', async () => {
    const { app, as, add } = await open()
    const admin = await as('admin', { hasTotp: true })
    await app.clock.advance('1s')
    await add({ username: 'anna', role: 'viewer', displayName: 'Anna', email: 'anna@example.com', hasPassword: false })
    const response = await admin.ask('GET /api/dashboard-users')
    const text = await response.text()
    expect(JSON.parse(text)).toEqual([
      expect.objectContaining({ id: admin.person.row.id, totpConfigured: true, hasPassword: true }),
      {
        id: expect.stringMatching(/^usr_/),
        username: 'anna',
        displayName: 'Anna',
        email: 'anna@example.com',
        role: { id: 'role_viewer', slug: 'viewer', name: 'Viewer', kind: 'preset' },
        roleSource: 'manual',
        share: null,
        status: 'active',
        isBreakGlass: false,
        hasPassword: false,
        totpConfigured: false,
        passkeyCount: 0,
        identities: [],
        keyCount: 0,
        deactivatedKeyCount: 0,
        createdAt: '2026-01-01T00:00:01.000Z',
        lastLoginAt: null,
        lastLoginMethod: null,
        version: expect.any(String),
        pendingInvite: null,
      },
    ])
    expect(text).not.toContain('argon2')
    expect(text).not.toContain(admin.person.row.totpSecretSealed ?? '?')
  })

  test.each(['operator', 'viewer'])('it is not available to an %s', async (role) => {
    expect(await problem(await (await (await open()).as(role)).ask('GET /api/dashboard-users'))).toEqual([
      403,
      'permission_required',
    ])
  })
})

const change = async (fields: Fields, how: 'json' | 'form' = 'json') => {
  const { as, add } = await open()
  await add({ username: 'taken', email: 'taken@example.com' })
  const { id } = (await add({ username: 'anna', email: 'anna@example.com' })).row
  return (await as('admin')).send(how, `PATCH /api/dashboard-users/${id}`, fields)
}

describe('§2 Dashboard account: username', () => {
  test.each(REQUEST_FORMATS)('it is unique (%s)', async (how) => {
    expect(await problem(await change({ username: 'Taken' }, how))).toEqual([409, 'username_taken'])
  })

  test.each(REQUEST_FORMATS)('admin is reserved, even after that user was renamed (%s)', async (how) => {
    expect(await problem(await change({ username: 'admin' }, how))).toEqual([422, 'validation_error'])
    const { as, add } = await open()
    const admin = await as('admin', { username: 'admin' })
    const renamed = await admin.send(how, `PATCH /api/dashboard-users/${admin.person.row.id}`, { username: 'root' })
    expect(renamed.status).toBe(doneStatus(how, 200))
    const { id } = (await add()).row
    expect(await problem(await admin.send(how, `PATCH /api/dashboard-users/${id}`, { username: 'admin' }))).toEqual([
      422,
      'validation_error',
    ])
  })

  test('it is trimmed and lowercase, and the audit log has who renamed whom', async () => {
    const { as, add, audit } = await open()
    const admin = await as('admin')
    const { id } = (await add({ username: 'anna' })).row
    const response = await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { username: ' Anna.B ' } })
    expect(await response.json()).toMatchObject({ username: 'anna.b' })
    expect(await audit()).toMatchObject([
      { event: 'user_renamed', actor: admin.person.row.id, target: id, details: { from: 'anna', to: 'anna.b' } },
    ])
  })

  test.each(['', 'with space', 'x'.repeat(65), 'ümlaut'])('%p is not a valid user name', async (username) => {
    expect(await problem(await change({ username }))).toEqual([422, 'validation_error'])
  })
})

describe('§2 Dashboard account: display name, e-mail', () => {
  test.each(REQUEST_FORMATS)('an address belongs to one user (%s)', async (how) => {
    expect(await problem(await change({ email: 'TAKEN@example.com' }, how))).toEqual([409, 'email_taken'])
  })

  test('both can be changed and removed, without affecting the rest', async () => {
    const { as, add, audit } = await open()
    const { id } = (await add({ displayName: 'Anna', email: 'anna@example.com', username: 'anna' })).row
    const admin = await as('admin')
    const response = await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { displayName: '', email: null } })
    expect(await response.json()).toMatchObject({ displayName: null, email: null, username: 'anna' })
    expect(await audit()).toMatchObject([{ event: 'user_updated', details: { changed: ['displayName', 'email'] } }])
  })

  test('an outdated form does not undo another user’s change', async () => {
    const { app, as, add } = await open()
    const { id } = (await add({ role: 'operator' })).row
    const admin = await as('admin')
    const page = async () => (await admin.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const save = async (html: string) =>
      problem(
        await admin.ask(`PATCH /api/dashboard-users/${id}`, {
          body: new URLSearchParams([...getFields(html, `form-edit-${id}`), ['displayName', 'Anna']]).toString(),
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        }),
      )
    const stale = await page()
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${id}`, { json: { role: 'viewer' } })
    expect(await save(stale)).toEqual([409, 'edit_conflict'])
    const read = await page()
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${id}`, { json: { status: 'disabled' } })
    expect(await save(read)).toEqual([409, 'edit_conflict'])
    expect(await save(await page())).toEqual([200, null])
    expect(await getPerson(app.db, id)).toMatchObject({ row: { displayName: 'Anna' }, role: { slug: 'viewer' } })
  })

  test('nor does an outdated profile form, and its values do not hide the change', async () => {
    const { app, as } = await open()
    const anna = await as('viewer', { username: 'anna', email: 'anna@old.example' })
    const html = async (path: string) => (await anna.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
    const save = async (page: string) => {
      const fields = { ...Object.fromEntries(getFields(page, 'form-profile')), displayName: 'Anna' }
      const body = new URLSearchParams(fields).toString()
      const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' }
      const headers = { ...form, referer: 'http://localhost:2455/me' }
      return (await anna.ask('POST /api/dashboard-auth/me', { body, headers })).headers.get('location') ?? ''
    }
    const stale = await html('/me')
    const json = { email: 'anna@new.example' }
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${anna.person.row.id}`, { json })
    const conflict = await save(stale)
    expect(conflict).toBe('/me?problem=edit_conflict')
    expect(await save(await html(conflict))).toBe('/me?done=profile_updated')
    const { row } = await getPerson(app.db, anna.person.row.id)
    expect(row).toMatchObject({ displayName: 'Anna', email: 'anna@new.example', isEmailOwn: false })
  })

  test('the API accepts the version of the user that was read', async () => {
    const anna = await (await open()).as('viewer')
    const me = (json: object) => anna.ask('PATCH /api/dashboard-auth/me', { json })
    const { version } = await (await anna.ask('GET /api/dashboard-auth/me')).json()
    expect((await me({ displayName: 'Anna', expectedVersion: version })).status).toBe(200)
    expect(await problem(await me({ displayName: 'A.', expectedVersion: version }))).toEqual([409, 'edit_conflict'])
    expect((await me({ displayName: 'A.' })).status).toBe(200)
  })

  test('an unchanged value is not recorded', async () => {
    const { as, add, audit } = await open()
    const { id } = (await add({ email: 'anna@example.com' })).row
    expect(
      (await (await as('admin')).ask(`PATCH /api/dashboard-users/${id}`, { json: { email: 'anna@example.com' } }))
        .status,
    ).toBe(200)
    expect(await audit()).toEqual([])
  })

  test.each<[string, Fields]>([
    ['an address without a domain', { email: 'anna@localhost' }],
    ['an unknown field', { passwordHash: 'x' }],
    ['an unknown state', { status: 'invited' }],
    ['a long name', { displayName: 'x'.repeat(129) }],
  ])('%s is rejected', async (_, fields) => {
    expect(await problem(await change(fields))).toEqual([422, 'validation_error'])
  })
})

describe('§2 Dashboard account: role', () => {
  test.each([
    ['role', 'operator'],
    ['role', 'role_operator'],
    ['roleId', 'role_operator'],
    ['roleId', 'operator'],
  ])('%s accepts %s', async (field, value) => {
    const response = await change({ [field]: value })
    expect([response.status, ((await response.json()) as { role: { slug: string } }).role.slug]).toEqual([
      200,
      'operator',
    ])
  })

  test('roleId takes precedence over role', async () => {
    const response = await change({ role: 'operator', roleId: 'role_admin' })
    expect(((await response.json()) as { role: { slug: string } }).role.slug).toBe('admin')
  })

  test('guest cannot be assigned, member can', async () => {
    expect(await problem(await change({ role: 'guest' }))).toEqual([422, 'role_not_assignable'])
    expect(await problem(await change({ role: 'member' }))).toEqual([200, null])
  })

  test('nor can an unknown one', async () => {
    expect(await problem(await change({ role: 'no_such_role' }))).toEqual([404, 'role_not_found'])
  })

  test('a Member signs in and reads only what is about their own keys', async () => {
    const { browser, add } = await open()
    await add({ role: 'admin' })
    await add({ username: 'mia', role: 'member' })
    const mia = browser()
    const login = { username: 'mia', password: PASSWORD }
    expect((await mia.ask('POST /api/dashboard-auth/password/login', { json: login })).status).toBe(200)
    for (const route of ['GET /api/api-keys', 'GET /api/request-logs', 'GET /api/reports', 'GET /dashboard'])
      expect([route, (await mia.ask(route)).status]).toEqual([route, 200])
    for (const route of ['GET /api/accounts', 'GET /api/settings', 'GET /api/firewall/ips']) {
      const response = await mia.ask(route)
      const { error } = (await response.json()) as { error: { code: string; param: string } }
      expect([route, response.status, error.code, error.param]).toEqual([
        route,
        403,
        'permission_required',
        'dashboard:read',
      ])
    }
  })
})

describe('§5 Signing in 8: managing users requires being one', () => {
  test.each([
    'POST /api/dashboard-users',
    'PATCH /api/dashboard-users/usr_x',
    'DELETE /api/dashboard-users/usr_x',
    'POST /api/dashboard-users/usr_x/invite',
    'DELETE /api/dashboard-users/usr_x/invite',
    'POST /api/dashboard-users/usr_x/reset-totp',
    'POST /api/dashboard-users/usr_x/revoke-sessions',
    'POST /api/dashboard-users/usr_x/reactivate-keys',
    'POST /api/dashboard-roles',
    'PATCH /api/dashboard-roles/role_x',
    'DELETE /api/dashboard-roles/role_x',
    'POST /api/dashboard-roles/role_x/clone',
    'PATCH /api/auth-providers/idp_trusted_header',
  ])('%s on a passwordless install', async (route) => {
    for (const how of REQUEST_FORMATS)
      expect(await problem(await (await open()).browser().send(how, route))).toEqual([409, 'admin_account_required'])
  })
})
