/**
 * Spec §5, delegation 1, for users who wait for the proxy (§3, dashboard account row 7): valid while their author can
 * give the role.
 */
import { describe, expect, test } from 'bun:test'
import { type Browser, problem, type TestUser } from '../support/people.ts'
import { behindProxy, SETTINGS } from '../support/proxied.ts'

const MANAGER = { 'users:manage': 'all', 'dashboard:read': 'all', 'accounts:read': 'all' } as const
const REFUSED: [number, string] = [401, 'identity_not_provisioned']

/** An account that waits for Anna as Viewer, added by `author`, who manages people and holds little else. */
const open = async (authorRole = 'manager') => {
  const world = await behindProxy()
  await world.addRole('manager', MANAGER)
  const support = await world.addRole('support', { 'dashboard:read': 'all' })
  const author = await world.as(authorRole, { username: 'author' })
  const add = async (by: Browser, json: Record<string, unknown> = {}) => {
    const expectedIdentity = { provider: 'trusted_header', subject: 'Anna' }
    const fields = { username: 'annie', role: 'viewer', ssoOnly: true, expectedIdentity, ...json }
    const response = await by.ask('POST /api/dashboard-users', { json: fields })
    return ((await response.json()) as { user: { id: string } }).user.id // as: asserted by what follows
  }
  const boss = await world.as('admin', { username: 'boss' })
  const row = async (id: string) => {
    const users = (await (await boss.ask('GET /api/dashboard-users')).json()) as Row[] // as: the members used here
    return users.find((user) => user.id === id)!
  }
  const page = async (by: Browser) => {
    const html = await (await by.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    return html.replace(/<[^>]*>/g, ' ')
  }
  return { ...world, author, boss, support, add, row, page, anna: world.announced('anna') }
}

interface Row {
  id: string
  status: string
  role: { slug: string }
  pendingInvite: { voidReason: string | null } | null
}

/** A change by an administrator after which the author can no longer give the role. */
type Loss = (world: { boss: TestUser; author: TestUser }) => Promise<Response>

const patch =
  (json: object): Loss =>
  ({ boss, author }) =>
    boss.ask(`PATCH /api/dashboard-users/${author.person.row.id}`, { json })

const LOSSES: [string, Loss][] = [
  ['is disabled', patch({ status: 'disabled' })],
  ['manages people no more', patch({ role: 'viewer' })],
  ['is gone', ({ boss, author }) => boss.ask(`DELETE /api/dashboard-users/${author.person.row.id}`)],
  [
    'holds less than the role',
    ({ boss, author }) =>
      boss.ask(`PATCH /api/dashboard-roles/${author.person.role.id}`, {
        json: { grants: [{ permission: 'users:manage' }, { permission: 'dashboard:read' }] },
      }),
  ],
]

describe('§5 Delegation 1, §3 Dashboard account row 7: a waiting user', () => {
  test('becomes active while its author can give its role', async () => {
    const { add, author, anna, row } = await open()
    const id = await add(author)
    expect((await row(id)).pendingInvite?.voidReason).toBeNull()
    expect((await anna.session()).user).toMatchObject({ username: 'annie', role: { slug: 'viewer' } })
    expect((await row(id)).status).toBe('active')
  })

  test('and no other user, and stops waiting', async () => {
    const { add, author, anna, boss, row } = await open()
    const expectedIdentity = { provider: 'trusted_header', subject: 'Bert' }
    const [, bert] = [await add(author), await add(author, { username: 'bertie', expectedIdentity })]
    await anna.session()
    expect((await row(bert)).status).toBe('invited')
    expect(await (await boss.ask('GET /api/dashboard-users/invites')).json()).toMatchObject([{ userId: bert }])
  })

  test.each(LOSSES)('and whose author %s cannot sign in, nor as a new user', async (_, lose) => {
    const world = await open()
    const { add, author, anna, row, names, page, boss, audit } = world
    const id = await add(author)
    expect(Math.floor((await lose(world)).status / 100)).toBe(2)
    const known = await names()
    expect(await problem(await anna.ask(SETTINGS))).toEqual(REFUSED)
    expect([(await row(id)).status, await names()]).toEqual(['invited', known])
    expect((await row(id)).pendingInvite?.voidReason).toBe('author_may_not')
    expect((await audit()).at(-1)).toMatchObject({ event: 'login_failed', details: { subject: 'anna' } })
    const text = await page(boss)
    for (const said of [
      'Not confirmed',
      'The user who added them can no longer assign this role.',
      'Confirm as Viewer',
    ])
      expect(text).toContain(said)
  })

  test.each(LOSSES)(
    'and whose author %s can sign in once a user who can give the role has confirmed it',
    async (_, lose) => {
      const world = await open()
      const { add, author, anna, row, boss, audit, page } = world
      const id = await add(author)
      await lose(world)
      expect(await problem(await anna.ask(SETTINGS))).toEqual(REFUSED)
      const said = await boss.ask(`PATCH /api/dashboard-users/${id}`, { json: { roleId: 'role_viewer' } })
      expect([said.status, (await row(id)).pendingInvite?.voidReason]).toEqual([200, null])
      expect((await audit()).at(-1)).toMatchObject({ event: 'invite_confirmed', target: id, actorName: 'boss' })
      expect(await page(boss)).not.toContain('Not confirmed')
      expect((await anna.session()).user).toMatchObject({ username: 'annie', role: { slug: 'viewer' } })
    },
  )

  test('of a role that since got more than its author holds cannot sign in', async () => {
    const { add, author, anna, boss, support, row } = await open()
    const id = await add(author, { role: undefined, roleId: support })
    const grants = [{ permission: 'dashboard:read' }, { permission: 'ops:write' }]
    expect((await boss.ask(`PATCH /api/dashboard-roles/${support}`, { json: { grants } })).status).toBe(200)
    expect((await row(id)).pendingInvite?.voidReason).toBe('author_may_not')
    expect(await problem(await anna.ask(SETTINGS))).toEqual(REFUSED)
  })

  test('gets another role from a user who can give that one, and who is its author from then on', async () => {
    const { add, author, anna, boss, row, audit } = await open()
    const id = await add(author)
    expect((await boss.ask(`PATCH /api/dashboard-users/${id}`, { json: { role: 'operator' } })).status).toBe(200)
    expect((await row(id)).pendingInvite?.voidReason).toBeNull()
    expect((await audit()).filter(({ target }) => target === id).map(({ event }) => event)).toEqual([
      'user_invited',
      'user_role_changed',
    ])
    expect((await anna.session()).user).toMatchObject({ username: 'annie', role: { slug: 'operator' } })
  })

  test('is not confirmed by a user who could not give its role, nor by another change', async () => {
    const world = await open()
    const { add, author, boss, row, addRole, as } = world
    const id = await add(author)
    await patch({ status: 'disabled' })(world)
    expect((await boss.ask(`PATCH /api/dashboard-users/${id}`, { json: { displayName: 'Anna' } })).status).toBe(200)
    expect((await row(id)).pendingInvite?.voidReason).toBe('author_may_not')
    await addRole('clerk', { 'users:manage': 'all' })
    const refused = await (await as('clerk')).ask(`PATCH /api/dashboard-users/${id}`, {
      json: { roleId: 'role_viewer' },
    })
    expect(await problem(refused)).toEqual([403, 'insufficient_delegation'])
    expect((await row(id)).pendingInvite?.voidReason).toBe('author_may_not')
  })

  test('without an author costs no commit per request', async () => {
    const world = await open()
    const { add, author, anna, app } = world
    await add(author)
    await patch({ status: 'disabled' })(world)
    for (let n = 0; n < 10; n++) await anna.ask(SETTINGS) // eight of these are recorded
    const { n: before } = app.sqlite.query<{ n: number }, []>('SELECT total_changes() AS n').get()!
    await anna.ask(SETTINGS)
    expect(app.sqlite.query<{ n: number }, []>('SELECT total_changes() AS n').get()?.n).toBe(before)
  })
})
