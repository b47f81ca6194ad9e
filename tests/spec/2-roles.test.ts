/** Spec §2, roles and permissions: the presets, the vocabulary, and custom roles. */
import { describe, expect, test } from 'bun:test'
import { PERMISSIONS } from '../../src/model/users/permissions.ts'
import { getRole } from '../../src/model/users/roles.ts'
import { testApp } from '../support/app.ts'
import { getFields } from '../support/form.ts'
import { doneStatus, type Fields, people, problem, REQUEST_FORMATS } from '../support/people.ts'

const open = async () => {
  const app = await testApp({ accounts: 0 })
  return { app, ...people(app) }
}

interface RoleView {
  id: string
  slug: string
  name: string
  kind: string
  locked: boolean
  assignableToUsers: boolean
  grants: { permission: string; scope: string }[]
  usersCount: number
}

const getRoles = async (response: Response) => (await response.json()) as RoleView[] // as: checked by each test
const roleOf = async (response: Response) => (await response.json()) as RoleView // as: the same

/** What a browser would submit of the form that copies a role; null if the page has none. */
const getForm = (page: string): URLSearchParams | null => {
  const [form] = /<form id="form-clone-role".*?<\/form>/s.exec(page) ?? []
  if (!form) return null
  const inputs = [...form.matchAll(/<input ([^>]*)>/g)].map(([, attributes = '']) => attributes)
  const sent = inputs.filter((text) => !text.includes('disabled') && /checked|type="text"/.test(text))
  const attribute = (text: string, name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1] ?? ''
  return new URLSearchParams(sent.map((text) => [attribute(text, 'name'), attribute(text, 'value')]))
}

describe('§2 Roles: the built-in ones', () => {
  test('are Admin, Operator, Viewer, Member and Guest; all except Guest can be assigned', async () => {
    const { as } = await open()
    const roles = await getRoles(await (await as('admin')).ask('GET /api/dashboard-roles'))
    expect(
      roles.map(({ id, slug, kind, locked, assignableToUsers, usersCount }) => [
        id,
        slug,
        kind,
        locked,
        assignableToUsers,
        usersCount,
      ]),
    ).toEqual([
      ['role_admin', 'admin', 'preset', true, true, 1],
      ['role_operator', 'operator', 'preset', true, true, 0],
      ['role_viewer', 'viewer', 'preset', true, true, 0],
      ['role_member', 'member', 'preset', true, true, 0],
      ['role_guest', 'guest', 'preset', true, false, 0],
    ])
    const getGrants = (slug: string) =>
      roles.find((role) => role.slug === slug)?.grants.map(({ permission, scope }) => `${permission}:${scope}`)
    expect(getGrants('admin')).toEqual(PERMISSIONS.map((permission) => `${permission}:all`))
    expect(getGrants('guest')).toEqual(['dashboard:read:all', 'accounts:read:all'])
    expect(getGrants('member')).toEqual(['dashboard:read:own', 'api_keys:read:own', 'api_keys:write:own'])
  })

  test.each(REQUEST_FORMATS)('cannot be changed or deleted (%s)', async (how) => {
    const admin = await (await open()).as('admin')
    expect(await problem(await admin.send(how, 'PATCH /api/dashboard-roles/role_viewer', { name: 'Looker' }))).toEqual([
      409,
      'role_locked',
    ])
    expect(await problem(await admin.send(how, 'DELETE /api/dashboard-roles/viewer'))).toEqual([409, 'role_locked'])
  })
})

describe('§2 Permissions: the vocabulary', () => {
  test('states what each covers, implies, and whether it is privileged', async () => {
    const list = (await (
      await (await (await open()).as('admin')).ask('GET /api/dashboard-roles/permissions')
    ).json()) as {
      permission: string
      privileged: boolean
    }[] // as: checked below
    expect(list.map(({ permission }) => permission)).toEqual([...PERMISSIONS])
    expect(
      list
        .filter(({ privileged }) => privileged)
        .map(({ permission }) => permission)
        .toSorted(),
    ).toEqual(['accounts:export', 'audit:read', 'conversations:read', 'roles:manage', 'security:write', 'users:manage'])
    expect(list.find(({ permission }) => permission === 'security:write')).toMatchObject({
      implies: ['ops:write'],
      ownSupported: false,
    })
  })

  test.each(['GET /api/dashboard-roles', 'GET /api/dashboard-roles/permissions'])(
    '%s needs users:manage',
    async (route) => {
      const response = await (await (await open()).as('operator')).ask(route)
      expect([response.status, await response.json()]).toEqual([
        403,
        { error: { code: 'permission_required', message: expect.any(String), param: 'users:manage' } },
      ])
    },
  )
})

const KEEPER: Fields = { name: 'Key Keeper' }
const KEEPER_GRANTS = ['dashboard:read:all', 'accounts:read', 'api_keys:read:own']
const keeper = (how: 'json' | 'form') => (how === 'json' ? { ...KEEPER, grants: KEEPER_GRANTS } : KEEPER)
const asForm = () =>
  new URLSearchParams([['name', 'Key Keeper'], ...KEEPER_GRANTS.map((grant) => ['grants', grant])]).toString()
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

describe('§2 Custom roles', () => {
  test.each(REQUEST_FORMATS)('one is created, assigned and effective immediately (%s)', async (how) => {
    const { as, add, audit } = await open()
    const admin = await as('admin')
    const response =
      how === 'json'
        ? await admin.ask('POST /api/dashboard-roles', { json: keeper(how) })
        : await admin.ask('POST /api/dashboard-roles', { body: asForm(), headers: FORM })
    const role = await roleOf(response)
    expect([response.status, role.slug, role.kind, role.locked, role.grants]).toEqual([
      201,
      'key-keeper',
      'custom',
      false,
      [
        { permission: 'dashboard:read', scope: 'all' },
        { permission: 'accounts:read', scope: 'all' },
        { permission: 'api_keys:read', scope: 'own' },
      ],
    ])
    expect(await audit()).toMatchObject([{ event: 'role_created', target: role.id, actor: admin.person.row.id }])
    const { id } = (await add({ role: 'viewer' })).row
    expect((await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { role: 'key-keeper' } })).status).toBe(200)
  })

  test('a permission removed from it ends on the next request of its users', async () => {
    const { as, addRole, audit } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all', 'accounts:read': 'all' })
    const looker = await as('looker')
    expect((await looker.ask('GET /api/accounts')).status).toBe(200)
    const patch = { grants: [{ permission: 'accounts:read', scope: 'all' }] }
    const admin = await as('admin')
    expect((await admin.ask(`PATCH /api/dashboard-roles/${id}`, { json: patch })).status).toBe(200)
    expect(await problem(await looker.ask('GET /api/accounts'))).toEqual([403, 'permission_required'])
    expect(await audit()).toMatchObject([
      {
        event: 'role_updated',
        details: { changed: ['grants'], from: { 'dashboard:read': 'all' }, to: { 'accounts:read': 'all' } },
      },
    ])
  })

  test.each(['/accounts', '/api/accounts', '/api/accounts/:id/trends', '/api/accounts/:id/rate-limit-reset-credits'])(
    'a user of the dashboard who cannot see accounts does not learn about them from %s',
    async (path) => {
      const { as, addRole } = await open()
      await addRole('looker', { 'dashboard:read': 'all' })
      const looker = await as('looker')
      expect((await looker.ask('GET /dashboard', { headers: { accept: 'text/html' } })).status).toBe(200)
      const response = await looker.ask(`GET ${path}`)
      const { error } = (await response.json()) as { error: object } // as: every error has it
      expect([response.status, error]).toMatchObject([403, { code: 'permission_required', param: 'accounts:read' }])
    },
  )

  test.each(REQUEST_FORMATS)('it is renamed, keeps its slug, and its name is unique (%s)', async (how) => {
    const { app, as, addRole } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all' })
    const admin = await as('admin')
    const response = await admin.send(how, `PATCH /api/dashboard-roles/${id}`, { name: 'Auditor' })
    expect(response.status).toBe(doneStatus(how, 200))
    expect(await getRole(app.db, id)).toMatchObject({
      name: 'Auditor',
      slug: 'looker',
      grants: new Map([['dashboard:read', 'all']]),
    })
    const taken = await admin.send(how, `PATCH /api/dashboard-roles/${id}`, { name: 'ADMIN' })
    expect(await problem(taken)).toEqual([409, 'role_taken'])
  })

  test.each(REQUEST_FORMATS)('a copy has the grants of the original (%s)', async (how) => {
    const { app, as } = await open()
    const admin = await as('admin')
    const copy = () => admin.send(how, 'POST /api/dashboard-roles/operator/clone', { name: 'Night shift' })
    expect((await copy()).status).toBe(doneStatus(how, 201))
    const made = await getRole(app.db, 'night-shift')
    expect([made.kind, made.isAssignable]).toEqual(['custom', true])
    expect(Object.fromEntries(made.grants)).toEqual(Object.fromEntries((await getRole(app.db, 'operator')).grants))
    expect(await problem(await copy())).toEqual([409, 'role_taken'])
  })

  test('the page offers a copy of each role, in a form that can be changed before it is submitted', async () => {
    const { app, as } = await open()
    const admin = await as('admin')
    const page = async (path: string) => (await admin.ask(`GET ${path}`, { headers: { accept: 'text/html' } })).text()
    const plain = await page('/settings/access')
    for (const slug of ['admin', 'operator', 'viewer', 'member', 'guest'])
      expect(plain).toContain(`href="/settings/access?clone=role_${slug}"`)
    expect(getForm(plain)).toBeNull()
    expect(getForm(await page('/settings/access?clone=role_nobody'))).toBeNull()
    const form = getForm(await page('/settings/access?clone=role_operator'))!
    expect(form.getAll('name')).toEqual(['Copy of Operator'])
    const made = await admin.ask('POST /api/dashboard-roles', {
      body: form.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'text/html' },
    })
    expect([made.status, made.headers.get('location')]).toEqual([303, '/settings/access?done=role_created'])
    const copy = await getRole(app.db, 'copy-of-operator')
    expect(Object.fromEntries(copy.grants)).toEqual(Object.fromEntries((await getRole(app.db, 'operator')).grants))
  })

  test('the form omits what the visitor does not hold, and is hidden from users who cannot edit roles', async () => {
    const { as, addRole } = await open()
    const held = { 'users:manage': 'all', 'dashboard:read': 'all' } as const
    await addRole('editor', { ...held, 'roles:manage': 'all' })
    await addRole('manager', held)
    const page = async (role: string) => {
      const path = 'GET /settings/access?clone=role_admin'
      return (await (await as(role)).ask(path, { headers: { accept: 'text/html' } })).text()
    }
    expect(getForm(await page('editor'))?.getAll('grants')).toEqual([
      'dashboard:read:all',
      'users:manage:all',
      'roles:manage:all',
    ])
    expect(await page('manager')).not.toContain('clone')
  })

  test('the form removes everything from it, and creates one without permissions', async () => {
    const { app, as, addRole } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all', 'accounts:read': 'all' })
    const admin = await as('admin')
    const page = await (await admin.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const unticked = (form: string) =>
      getFields(page, form).filter(([name, value]) => name !== 'grants' || value === '')
    const patched = await admin.ask(`PATCH /api/dashboard-roles/${id}`, {
      body: new URLSearchParams(unticked(`form-role-${id}`)).toString(),
      headers: FORM,
    })
    expect([patched.status, (await roleOf(patched)).grants]).toEqual([200, []])
    const made = await admin.submit('POST /api/dashboard-roles', {
      ...Object.fromEntries(unticked('form-new-role')),
      name: 'Nobody',
    })
    expect([made.status, (await getRole(app.db, 'nobody')).grants.size]).toEqual([303, 0])
  })

  test('an outdated form does not undo another user’s change', async () => {
    const { app, as, addRole, audit } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all', 'accounts:read': 'all' })
    const admin = await as('admin')
    const save = async (page: string) =>
      problem(
        await admin.ask(`PATCH /api/dashboard-roles/${id}`, {
          body: new URLSearchParams([...getFields(page, `form-role-${id}`), ['description', 'at night']]).toString(),
          headers: FORM,
        }),
      )
    const page = async () => (await admin.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const stale = await page()
    await (await as('admin')).ask(`PATCH /api/dashboard-roles/${id}`, { json: { grants: ['accounts:read'] } })
    expect(await save(stale)).toEqual([409, 'edit_conflict'])
    expect(await save(await page())).toEqual([200, null])
    expect(await getRole(app.db, id)).toMatchObject({
      description: 'at night',
      grants: new Map([['accounts:read', 'all']]),
    })
    expect((await audit()).map(({ event }) => event)).toEqual(['role_updated', 'role_updated'])
  })

  test('its user renames it by its form, which contains unchanged grants', async () => {
    const { app, as, addRole, audit } = await open()
    const id = await addRole('editor', { 'users:manage': 'all', 'roles:manage': 'all', 'dashboard:read': 'all' })
    const editor = await as('editor')
    const page = await (await editor.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const fields = [...getFields(page, `form-role-${id}`), ['name', 'Registrar']]
    const save = async (sent: string[][]) =>
      problem(
        await editor.ask(`PATCH /api/dashboard-roles/${id}`, {
          body: new URLSearchParams(sent).toString(),
          headers: FORM,
        }),
      )
    expect(await save(fields.filter(([, value]) => value !== 'dashboard:read:all'))).toEqual([
      409,
      'self_modification_forbidden',
    ])
    expect(await save(fields)).toEqual([200, null])
    expect((await getRole(app.db, id)).name).toBe('Registrar')
    expect(await audit()).toMatchObject([{ event: 'role_updated', details: { changed: ['name'] } }])
    expect(await save(fields.filter(([name]) => name !== 'expectedVersion'))).toEqual([200, null])
    expect(await audit()).toHaveLength(1)
  })

  test.each(REQUEST_FORMATS)('it is deleted when no user has it (%s)', async (how) => {
    const { as, add, addRole, audit } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all' })
    const admin = await as('admin')
    const person = (await add({ role: 'looker', status: 'disabled' })).row
    expect(await problem(await admin.send(how, `DELETE /api/dashboard-roles/${id}`))).toEqual([409, 'role_in_use'])
    await admin.ask(`PATCH /api/dashboard-users/${person.id}`, { json: { role: 'viewer' } })
    expect((await admin.send(how, `DELETE /api/dashboard-roles/${id}`)).status).toBe(doneStatus(how, 204))
    expect(await problem(await admin.ask(`PATCH /api/dashboard-roles/${id}`, { json: {} }))).toEqual([
      404,
      'role_not_found',
    ])
    expect((await audit()).at(-1)).toMatchObject({ event: 'role_deleted', target: id, details: { slug: 'looker' } })
  })

  test('nor while it is the default for new proxy users', async () => {
    const { as, addRole } = await open()
    const id = await addRole('looker', { 'dashboard:read': 'all' })
    const admin = await as('admin')
    await admin.ask('PATCH /api/auth-providers/idp_trusted_header', { json: { unknownIdentityRoleId: id } })
    expect(await problem(await admin.ask(`DELETE /api/dashboard-roles/${id}`))).toEqual([409, 'role_in_use'])
  })

  test.each<[string, unknown[]]>([
    ['an unknown permission', ['everything:all']],
    ['an own scope that means nothing', ['accounts:write:own']],
    ['a right without what it implies', ['security:write:all']],
    ['one that is implied more narrowly', ['api_keys:assign:all', 'api_keys:write:own']],
    ['one permission twice', ['api_keys:read:own', 'api_keys:read:all']],
  ])('%s is rejected', async (_, grants) => {
    const response = await (await (await open()).as('admin')).ask('POST /api/dashboard-roles', {
      json: { name: 'x', grants },
    })
    expect(await problem(response)).toEqual([422, 'validation_error'])
  })

  test('users cannot add, remove or copy more permissions than they hold', async () => {
    const { as, addRole, audit } = await open()
    await addRole('editor', { 'roles:manage': 'all', 'dashboard:read': 'all' })
    const high = await addRole('high', { 'dashboard:read': 'all', 'audit:read': 'all' })
    const low = await addRole('low', { 'dashboard:read': 'all' })
    const editor = await as('editor')
    const asked: [string, unknown?][] = [
      ['POST /api/dashboard-roles', { name: 'x', grants: ['audit:read:all'] }],
      [`PATCH /api/dashboard-roles/${low}`, { grants: ['audit:read:all'] }],
      [`PATCH /api/dashboard-roles/${high}`, { grants: [] }],
      [`DELETE /api/dashboard-roles/${high}`],
      [`POST /api/dashboard-roles/${high}/clone`, { name: 'y' }],
      ['POST /api/dashboard-roles/admin/clone', { name: 'z' }],
    ]
    for (const [route, json] of asked)
      expect([route, ...(await problem(await editor.ask(route, { json })))]).toEqual([
        route,
        403,
        'insufficient_delegation',
      ])
    expect(await audit()).toEqual([])
    expect(
      (await editor.ask('POST /api/dashboard-roles', { json: { name: 'ok', grants: ['dashboard:read:own'] } })).status,
    ).toBe(201)
  })

  test('users who edit roles see them, and the vocabulary, without managing users', async () => {
    const { as, addRole } = await open()
    await addRole('editor', { 'roles:manage': 'all' })
    for (const route of ['GET /api/dashboard-roles', 'GET /api/dashboard-roles/permissions'])
      expect([
        route,
        (await (await as('editor')).ask(route)).status,
        (await (await as('operator')).ask(route)).status,
      ]).toEqual([route, 200, 403])
  })

  test('they need roles:manage and a confirmation', async () => {
    const { as, addRole } = await open()
    await addRole('manager', { 'users:manage': 'all' })
    const json = { name: 'x', grants: [] }
    const refused = await (await as('manager')).ask('POST /api/dashboard-roles', { json })
    expect([refused.status, await refused.json()]).toEqual([
      403,
      { error: expect.objectContaining({ code: 'permission_required', param: 'roles:manage' }) },
    ])
    expect(
      await problem(await (await as('admin', { isConfirmed: false })).ask('POST /api/dashboard-roles', { json })),
    ).toEqual([403, 'step_up_required'])
  })
})
