/** Shares of the pool over HTTP: setting them, borrowing, the rejection, the log, and the pages. */
import { describe, expect, test } from 'bun:test'
import { codexBody, getAnswer, type TestApp, testApp } from '../support/app.ts'
import { people, type TestUser } from '../support/people.ts'
import { used } from './candidates.ts'

const NATIVE = 'POST /backend-api/codex/responses'
const PUBLIC = 'POST /v1/responses'
const HTML = { accept: 'text/html' }

interface World {
  app: TestApp
  admin: TestUser
  borrower: TestUser
  lender: TestUser
  /** Sends a request of a user's key and returns the answer. */
  send: (user: TestUser, thread: string, route?: string) => ReturnType<typeof getAnswer>
}

const open = async (): Promise<World> => {
  const app = await testApp({ accounts: [{ plan: 'plus' }] })
  const { as } = people(app)
  const admin = await as('admin')
  const [borrower, lender] = [await as('member'), await as('member')]
  app.bindings.pool.observe(app.members[0]!.id, { ...used(50, 10), at: app.clock.now() })
  const keys = new Map<TestUser, string>()
  for (const user of [borrower, lender]) keys.set(user, (await app.key({ ownerUserId: user.person.row.id })).key)
  const send: World['send'] = (user, thread, route = NATIVE) =>
    getAnswer(app, route, {
      json: route === NATIVE ? codexBody() : { model: 'gpt-5.5', input: 'hello' },
      headers: { authorization: `Bearer ${keys.get(user)}`, 'session-id': thread },
    })
  return { app, admin, borrower, lender, send }
}

const share = ({ admin }: Pick<World, 'admin'>, user: TestUser, fiveHourPercent: number | null) =>
  admin.ask(`PATCH /api/dashboard-users/${user.person.row.id}`, {
    json: { share: fiveHourPercent === null ? null : { fiveHourPercent, weeklyPercent: null } },
  })

describe('a share', () => {
  test('is set for a user and for a role, built-in ones too, also by a form', async () => {
    const { app, admin, borrower } = await open()
    const given = { fiveHourPercent: 12.5, weeklyPercent: 20 }
    const patched = await admin.ask(`PATCH /api/dashboard-users/${borrower.person.row.id}`, { json: { share: given } })
    expect(await patched.json()).toMatchObject({ username: borrower.person.row.username, share: given })
    const role = await admin.ask('PATCH /api/dashboard-roles/member', { json: { share: given } })
    expect(await role.json()).toMatchObject({ slug: 'member', share: given })
    await admin.submit('PATCH /api/dashboard-roles/role_member', {
      'share.fiveHourPercent': '30',
      'share.weeklyPercent': '',
    })
    const roles = (await (await admin.ask('GET /api/dashboard-roles')).json()) as { slug: string; share: unknown }[] // as: the answer of the route
    expect(roles.find(({ slug }) => slug === 'member')?.share).toEqual({ fiveHourPercent: 30, weeklyPercent: null })
    expect(app.bindings.shares.describe().map(({ holder }) => holder.share)).toEqual([
      given,
      { fiveHourPercent: 30, weeklyPercent: null },
    ])
    expect((await share({ admin }, borrower, null)).status).toBe(200)
    expect(app.bindings.shares.describe()[0]?.holder.share.fiveHourPercent).toBe(30)
  })

  test.each([{ fiveHourPercent: 101 }, { fiveHourPercent: -1 }, { percent: 5 }, 20])('rejects %j', async (wrong) => {
    const { admin, borrower } = await open()
    const response = await admin.ask(`PATCH /api/dashboard-users/${borrower.person.row.id}`, { json: { share: wrong } })
    expect(response.status).toBe(422)
  })

  test('needs users:manage, and a locked role stays locked otherwise', async () => {
    const { admin, borrower } = await open()
    expect((await share({ admin: borrower }, borrower, 100)).status).toBe(403)
    const both = { name: 'Looker', share: { fiveHourPercent: 1 } }
    expect((await admin.ask('PATCH /api/dashboard-roles/member', { json: both })).status).toBe(409)
    const roles = await (await admin.ask('GET /api/dashboard-roles')).text()
    expect(roles).not.toContain('"fiveHourPercent"')
  })
})

describe('requests beyond a share', () => {
  test('borrow while others are idle, and are marked in the log', async () => {
    const world = await open()
    await share(world, world.borrower, 0)
    await share(world, world.lender, 100)
    expect((await world.send(world.borrower, 'one')).status).toBe(200)
    expect((await world.send(world.lender, 'two')).status).toBe(200)
    expect((await world.app.rows()).map(({ borrowed }) => borrowed)).toEqual([true, false])
    const { items } = (await (await world.admin.ask('GET /api/shares')).json()) as { items: Record<string, unknown>[] } // as: the answer of the route
    const lent = Number(items[1]?.lent)
    expect(lent).toBeGreaterThan(0)
    expect(items).toMatchObject([
      { window: 'five_hour', share: 0, borrowed: lent, lent: 0 },
      { window: 'five_hour', share: 100, borrowed: 0 },
    ])
  })

  test.each([
    [NATIVE, 'rate_limit_error'],
    [PUBLIC, 'rate_limit_error'],
  ])('%s: are rejected once the lender works, but a running conversation continues', async (route, type) => {
    const world = await open()
    const { app, borrower, lender, send } = world
    await share(world, borrower, 0)
    await share(world, lender, 100)
    await send(borrower, 'running', route)
    await send(lender, 'theirs', route)
    const rejected = await send(borrower, 'new', route)
    expect(rejected.status).toBe(429)
    expect(JSON.parse(rejected.text).error).toMatchObject({ code: 'share_used_up', type })
    expect(Number(rejected.headers.get('retry-after'))).toBe(900)
    expect((await send(borrower, 'running', route)).status).toBe(200)
    expect((await send(lender, 'more', route)).status).toBe(200)
    const rows = await app.rows()
    expect(rows.map(({ errorCode }) => errorCode)).toEqual([null, null, 'share_used_up', null, null])
    await app.clock.advance('16m')
    expect((await send(borrower, 'new', route)).status).toBe(200)
  })

  test('what was used before the share was set and before a restart counts', async () => {
    const world = await open()
    const { app, borrower, send } = world
    await send(borrower, 'one')
    await app.clock.advance('4m')
    await send(borrower, 'two')
    await app.bindings.ledger.flush()
    await share(world, borrower, 1)
    const before = app.bindings.shares.describe()[0]?.windows[0]?.used
    expect(before).toBeGreaterThan(4)
    await app.restart()
    expect(app.bindings.shares.describe()[0]?.windows[0]?.used).toBe(before)
    await app.bindings.shares.refresh()
    expect(app.bindings.shares.describe()[0]?.windows[0]?.used).toBe(before)
  })

  test('are explained', async () => {
    const world = await open()
    const { app, admin, borrower, lender, send } = world
    await share(world, borrower, 0)
    await share(world, lender, 100)
    const {
      row: { id },
    } = await app.key({ ownerUserId: borrower.person.row.id })
    const explained = async () => (await admin.ask(`GET /api/explain?model=gpt-5.5&key=${id}`)).json()
    expect(await explained()).toMatchObject({ outcome: 'chosen', sentence: expect.stringContaining('would borrow') })
    await send(lender, 'theirs')
    expect(await explained()).toMatchObject({
      outcome: 'refused',
      sentence: expect.stringContaining('would be rejected'),
    })
  })
})

describe('who sees shares', () => {
  test('users see their own, and those who manage users see all', async () => {
    const world = await open()
    await share(world, world.borrower, 20)
    await share(world, world.lender, 30)
    const seen = async (user: TestUser) => ((await (await user.ask('GET /api/shares')).json()) as { items: [] }).items // as: the answer of the route
    expect(await seen(world.lender)).toMatchObject([{ userId: world.lender.person.row.id, share: 30 }])
    expect(await seen(world.admin)).toHaveLength(2)
    expect((await world.app.ask('GET /api/shares', { peer: '192.0.2.9' })).status).toBe(401)
  })

  test('on their own page, and on the page of users', async () => {
    const world = await open()
    await share(world, world.borrower, 20)
    await world.send(world.borrower, 'one')
    const own = await (await world.borrower.ask('GET /me', { headers: HTML })).text()
    expect(own).toContain('Your share of the pool')
    expect(own).toContain('of 20%')
    const all = await (await world.admin.ask('GET /settings/access', { headers: HTML })).text()
    expect(all).toContain('name="share.fiveHourPercent"')
    expect(all).toContain('of 20%')
    expect(await (await world.lender.ask('GET /me', { headers: HTML })).text()).not.toContain('Your share of the pool')
  })

  test('with what they lent and borrowed, and the log names borrowed requests', async () => {
    const world = await open()
    const { app, admin, borrower, lender } = world
    await share(world, borrower, 0)
    await share(world, lender, 100)
    await world.send(borrower, 'one')
    const page = async (user: TestUser, path: string) => (await user.ask(`GET ${path}`, { headers: HTML })).text()
    expect(await page(borrower, '/me')).toMatch(/\d% borrowed/)
    expect(await page(lender, '/me')).toMatch(/\d% lent/)
    const users = await page(admin, '/settings/access')
    for (const moved of [/\d% borrowed/, /\d% lent/]) expect(users).toMatch(moved)
    const [row] = await app.rows()
    expect(await page(admin, `/logs/${row!.id}`)).toContain('borrowed')
    const entry = await (await admin.ask(`GET /api/request-logs/${row!.id}`)).json()
    expect(entry).toMatchObject({ borrowed: true })
  })
})
