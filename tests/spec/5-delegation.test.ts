/** Spec §5, delegation: who can give or change which role, and that one active Admin always remains. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { identities } from '../../db/schema/people.ts'
import { AppError } from '../../src/errors.ts'
import { mapInOrder } from '../../src/lib/in-order.ts'
import { callerNow } from '../../src/model/users/delegation.ts'
import { guestPasswordHash } from '../../src/model/users/guest.ts'
import { listPeople, type Person } from '../../src/model/users/people.ts'
import { PERMISSIONS } from '../../src/model/users/permissions.ts'
import { type TestApp, testApp } from '../support/app.ts'
import { doneStatus, PASSWORD, people, problem, REQUEST_FORMATS, TOTP_SECRET } from '../support/people.ts'

const open = async () => {
  const app = await testApp({ accounts: 0 })
  return { app, ...people(app) }
}

const activeAdmins = async ({ db }: TestApp): Promise<number> =>
  (await listPeople(db)).filter(({ row, role }) => row.status === 'active' && role.slug === 'admin').length

/** A custom role that manages people and otherwise looks. */
const MANAGER = { 'users:manage': 'all', 'dashboard:read': 'all', 'accounts:read': 'all' } as const

/** A custom role with every permission of an Admin, but not the Admin role. */
const EVERYTHING = Object.fromEntries(PERMISSIONS.map((permission) => [permission, 'all' as const]))

const FORBIDDEN: [number, string] = [403, 'insufficient_delegation']

describe('§5 Delegation 1: a role is given or changed only by users who hold as much', () => {
  test.each(REQUEST_FORMATS)('a manager with a custom role invites Viewers only (%s)', async (how) => {
    const { as, addRole } = await open()
    await addRole('manager', MANAGER)
    const manager = await as('manager')
    const invite = (role: string) => manager.send(how, 'POST /api/dashboard-users', { username: `to-${role}`, role })
    expect((await invite('viewer')).status).toBe(201)
    expect(await problem(await invite('operator'))).toEqual(FORBIDDEN)
    expect(await problem(await invite('admin'))).toEqual(FORBIDDEN)
  })

  test('own-scope permissions can be given only with own scope', async () => {
    const { as, addRole } = await open()
    await addRole('manager', { ...MANAGER, 'api_keys:read': 'own' })
    await addRole('own', { 'api_keys:read': 'own' })
    await addRole('all', { 'api_keys:read': 'all' })
    const manager = await as('manager')
    const invite = (role: string) =>
      manager.ask('POST /api/dashboard-users', { json: { username: `to-${role}`, role } })
    expect((await invite('own')).status).toBe(201)
    expect(await problem(await invite('all'))).toEqual(FORBIDDEN)
  })

  test.each(REQUEST_FORMATS)(
    'a user with every permission can change an Admin, but not create one (%s)',
    async (how) => {
      const { app, as, add, addRole } = await open()
      await addRole('everything', EVERYTHING)
      const nearly = await as('everything')
      const [one, viewer] = [await add({ role: 'admin' }), await add()].map(({ row }) => row.id)
      const boss = await as('admin')
      const asked = await boss.ask('POST /api/dashboard-users', { json: { username: 'to-be', role: 'admin' } })
      const { user } = (await asked.json()) as { user: { id: string } } // as: the invited user
      const makes: [string, Record<string, string>][] = [
        ['POST /api/dashboard-users', { username: 'x', role: 'admin' }],
        [`PATCH /api/dashboard-users/${viewer}`, { role: 'admin' }],
        ['PATCH /api/auth-providers/idp_trusted_header', { unknownIdentityRoleId: 'admin' }],
        [`POST /api/dashboard-users/${user.id}/invite`, {}],
      ]
      // Its own default is Admin, and sending that again would change nothing.
      expect((await boss.ask(makes[2]?.[0] ?? '', { json: { unknownIdentityRoleId: null } })).status).toBe(200)
      for (const [route, fields] of makes)
        expect([route, ...(await problem(await nearly.send(how, route, fields)))]).toEqual([route, ...FORBIDDEN])
      const patched = await nearly.send(how, `PATCH /api/dashboard-users/${one}`, {
        username: 'renamed',
        role: 'viewer',
      })
      expect(patched.status).toBe(doneStatus(how, 200))
      expect(await activeAdmins(app)).toBe(1)
    },
  )

  test('nor can a user who is no Admin create the local password user, who is one', async () => {
    const app = await testApp({
      accounts: 0,
      environment: {
        CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
      },
    })
    const { addRole, browser, code } = people(app)
    await addRole('everything', EVERYTHING)
    const nearly = browser()
    const announced = { headers: { 'remote-user': 'nearly' } }
    await browser().ask('GET /api/settings', announced)
    app.sqlite.run("UPDATE users SET role_id = (SELECT id FROM roles WHERE slug = 'everything')")
    const json = { password: PASSWORD }
    const setUp = () => nearly.ask('POST /api/dashboard-auth/password/setup', { json, ...announced })
    const enroll = { secret: TOTP_SECRET, code: code() }
    await nearly.ask('POST /api/dashboard-auth/totp/setup/confirm', { json: enroll, ...announced })
    await nearly.ask('POST /api/dashboard-auth/step-up', { json: { code: code(1) }, ...announced })
    expect(await problem(await setUp())).toEqual(FORBIDDEN)
    app.sqlite.run("UPDATE users SET role_id = 'role_admin'")
    expect((await setUp()).status).toBe(200)
  })

  test.each(REQUEST_FORMATS)(
    'every change of a user with more permissions is rejected, a rename too (%s)',
    async (how) => {
      const { as, add, addRole, audit } = await open()
      await addRole('manager', MANAGER)
      const manager = await as('manager')
      const { id } = (await add({ role: 'operator' })).row
      const path = `/api/dashboard-users/${id}`
      const asked: [string, Record<string, string>?][] = [
        [`PATCH ${path}`, { username: 'renamed' }],
        [`PATCH ${path}`, { status: 'disabled' }],
        [`PATCH ${path}`, { role: 'viewer' }],
        [`DELETE ${path}`],
        [`POST ${path}/reset-totp`],
        [`POST ${path}/revoke-sessions`],
        [`POST ${path}/reactivate-keys`],
        [`POST ${path}/invite`],
        [`DELETE ${path}/invite`],
      ]
      for (const [route, fields] of asked)
        expect([route, ...(await problem(await manager.send(how, route, fields)))]).toEqual([route, ...FORBIDDEN])
      expect(await audit()).toEqual([])
    },
  )

  test('an Admin creates Admins', async () => {
    const { as } = await open()
    const response = await (await as('admin')).ask('POST /api/dashboard-users', {
      json: { username: 'boss', roleId: 'role_admin' },
    })
    expect(response.status).toBe(201)
  })

  test('the session offers exactly the roles that can be given', async () => {
    const { as, addRole } = await open()
    const managerId = await addRole('manager', MANAGER)
    const offered = async (role: string) => (await (await as(role)).session()).assignableRoleIds as string[] // as: the session lists ids
    expect((await offered('manager')).toSorted()).toEqual(['role_viewer', managerId].toSorted())
    expect(await offered('operator')).toEqual([])
  })
})

test('a user who lost the permission between the gate and the commit changes no one', async () => {
  const { app, add } = await open()
  const ask = ({ row: { id } }: Person) =>
    commit(
      app.db,
      async (tx) => (await callerNow(tx, { id, method: null, address: null, at: 0 }, 'users:manage')).person.row.id,
    )
  const [admin, disabled, operator] = [
    await add({ role: 'admin' }),
    await add({ role: 'admin', status: 'disabled' }),
    await add({ role: 'operator' }),
  ]
  expect(await ask(admin)).toBe(admin.row.id)
  await expect(ask(disabled)).rejects.toThrow(new AppError('authentication_required'))
  await expect(ask(operator)).rejects.toThrow(expect.objectContaining({ code: 'permission_required' }))
})

describe('a user who was disabled while a password was hashed', () => {
  /** What `bob` requests, answered after `boss` has disabled him. */
  const askedTooLate = async (
    app: TestApp,
    { as }: ReturnType<typeof people>,
    late: Asked,
    behind: Proxied = () => ({}),
  ) => {
    const [bob, boss] = [
      await as('admin', { username: 'bob', ...late.person }),
      await as('admin', { username: 'boss', ...late.person }),
    ]
    for (const { person } of late.person ? [bob, boss] : []) await announce(app, person)
    const answer = bob.ask(late.route, { json: { password: 'known to bob only' }, headers: behind('bob') })
    for (let turn = 0; turn < 3; turn++) await Promise.resolve() // past the gate, and into the hash
    const off = { json: { status: 'disabled' }, headers: behind('boss') }
    expect((await boss.ask(`PATCH /api/dashboard-users/${bob.person.row.id}`, off)).status).toBe(200)
    return problem(await answer)
  }

  test('sets no password for guests', async () => {
    const { app, ...world } = await open()
    const late = { route: 'POST /api/dashboard-auth/guest/password' }
    expect(await askedTooLate(app, world, late)).toEqual([401, 'authentication_required'])
    expect(await guestPasswordHash(app.db)).toBeNull()
  })

  test('creates no Admin to return as, behind a proxy', async () => {
    const app = await testApp({ accounts: 0, environment: BEHIND })
    const person = { hasPassword: false, hasTotp: true }
    const late = { route: 'POST /api/dashboard-auth/password/setup', person }
    const headers: Proxied = (name) => ({ 'remote-user': name, 'x-forwarded-for': '203.0.113.5' })
    expect(await askedTooLate(app, people(app), late, headers)).toEqual([401, 'authentication_required'])
    expect((await listPeople(app.db)).map(({ row }) => row.username).sort()).toEqual(['bob', 'boss'])
  })
})

interface Asked {
  route: string
  person?: { hasPassword: boolean; hasTotp: boolean }
}
type Proxied = (username: string) => Record<string, string>

const BEHIND = { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }

/** The proxy identifies them by their name. */
const announce = async ({ db, clock }: TestApp, { row }: Person): Promise<void> => {
  const known = { id: `idn_${row.id}`, userId: row.id, provider: 'trusted_header', subject: row.username } as const
  await commit(db, (tx) =>
    tx
      .insert(identities)
      .values({ ...known, createdAt: 0, lastSeenAt: clock.now() })
      .run(),
  )
}

describe('§5 Delegation 2: users cannot change their own role or disable themselves', () => {
  test.each<[string, Record<string, string>]>([
    ['role', { role: 'viewer' }],
    ['state', { status: 'disabled' }],
  ])('%s', async (_, fields) => {
    for (const how of REQUEST_FORMATS) {
      const { as, add } = await open()
      await add({ role: 'admin' })
      const admin = await as('admin')
      const response = await admin.send(how, `PATCH /api/dashboard-users/${admin.person.row.id}`, fields)
      expect(await problem(response)).toEqual([409, 'self_modification_forbidden'])
    }
  })

  test('nor delete themselves, nor remove their own second factor that way', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const path = `/api/dashboard-users/${admin.person.row.id}`
    for (const route of [`DELETE ${path}`, `POST ${path}/reset-totp`])
      expect(await problem(await admin.ask(route))).toEqual([409, 'self_modification_forbidden'])
  })

  test('sending the current value is no change, and renaming oneself is allowed', async () => {
    const { as } = await open()
    const admin = await as('admin')
    const json = { username: 'boss', role: 'admin', status: 'active' }
    const response = await admin.ask(`PATCH /api/dashboard-users/${admin.person.row.id}`, { json })
    expect([response.status, ((await response.json()) as { username: string }).username]).toEqual([200, 'boss'])
    expect((await admin.session()).authenticated).toBe(true)
  })

  test('nor change the grants of their own role', async () => {
    const { as, addRole } = await open()
    const id = await addRole('editor', { ...MANAGER, 'roles:manage': 'all' })
    const response = await (await as('editor')).ask(`PATCH /api/dashboard-roles/${id}`, { json: { grants: [] } })
    expect(await problem(response)).toEqual([409, 'self_modification_forbidden'])
  })
})

describe('§5 Delegation 3: one active Admin remains', () => {
  test.each([{ role: 'viewer' }, { status: 'disabled' }])(
    'a user who lost the permission between the check and the change changes nothing: %p',
    async (json) => {
      const { app, as, add } = await open()
      await add({ role: 'admin' })
      const [a, b] = [await as('admin'), await as('admin')]
      const change = (by: typeof a, whom: typeof a) =>
        by.ask(`PATCH /api/dashboard-users/${whom.person.row.id}`, { json })
      const answers = await Promise.all([change(a, b), change(b, a)])
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
      expect(await activeAdmins(app)).toBe(2)
    },
  )

  test('200 parallel demotions, disables and deletions leave one', async () => {
    const { app, as } = await open()
    const admins = await mapInOrder(Array.from({ length: 15 }), () => as('admin'))
    const paths = admins.map(({ person }) => `/api/dashboard-users/${person.row.id}`)
    const changes = [
      (path: string) => [`PATCH ${path}`, { role: 'operator' }] as const,
      (path: string) => [`PATCH ${path}`, { status: 'disabled' }] as const,
      (path: string) => [`DELETE ${path}`, {}] as const,
    ]
    const asked = Array.from({ length: 200 }, (_, n) => {
      const by = admins[n % 15]!
      const [route, json] = changes[n % 3]!(paths[(n * 7 + 1 + Math.floor(n / 15)) % 15]!)
      return by.ask(route, { json })
    })
    const answers = await Promise.all(asked)
    expect(answers.some(({ status }) => status < 300)).toBe(true)
    expect(answers.every(({ status }) => status < 500)).toBe(true)
    expect(await activeAdmins(app)).toBeGreaterThanOrEqual(1)
  })

  test.each<[string, string, Record<string, string>, number]>([
    ['demoted', 'PATCH', { role: 'viewer' }, 200],
    ['disabled', 'PATCH', { status: 'disabled' }, 200],
    ['deleted', 'DELETE', {}, 204],
  ])('the last one is not %s, whatever the requesting user holds', async (_, method, fields, status) => {
    for (const how of REQUEST_FORMATS) {
      const { app, as, add, addRole, audit } = await open()
      await addRole('everything', EVERYTHING)
      const nearly = await as('everything')
      const [id, other] = [await add({ role: 'admin' }), await add({ role: 'admin', status: 'disabled' })].map(
        ({ row }) => row.id,
      )
      const change = () => nearly.send(how, `${method} /api/dashboard-users/${id}`, fields)
      expect(await problem(await change())).toEqual([409, 'last_admin_protected'])
      expect([await activeAdmins(app), (await audit()).length]).toEqual([1, 0])
      app.sqlite.run('UPDATE users SET status = ? WHERE id = ?', ['active', other ?? ''])
      expect((await change()).status).toBe(doneStatus(how, status))
      expect(await activeAdmins(app)).toBe(1)
    }
  })
})

describe('§5 Delegation 4: the first user is an ordinary one', () => {
  test.each<[string, string, Record<string, string> | undefined, number]>([
    ['demoted', 'PATCH', { role: 'viewer' }, 200],
    ['disabled', 'PATCH', { status: 'disabled' }, 200],
    ['renamed', 'PATCH', { username: 'root' }, 200],
    ['deleted', 'DELETE', undefined, 204],
    ['rid of its second factor', 'POST', undefined, 200],
  ])('they can be %s', async (name, method, json, status) => {
    const { as, add } = await open()
    const { id } = (await add({ role: 'admin', username: 'admin', hasTotp: true })).row
    const path = `/api/dashboard-users/${id}${name === 'rid of its second factor' ? '/reset-totp' : ''}`
    expect((await (await as('admin')).ask(`${method} ${path}`, { json })).status).toBe(status)
  })
})
