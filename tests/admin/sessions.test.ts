/** Sessions of users: their own, and those of others for users who manage them. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { sessions } from '../../db/schema/people.ts'
import type { SessionList } from '../../src/model/users/session-list.ts'
import { createSession } from '../../src/model/users/sessions.ts'
import { testApp } from '../support/app.ts'
import { type Browser, PASSWORD, people, problem, REMOTE } from '../support/people.ts'
import { runRetention } from '../support/retention.ts'

const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const OWN = '/api/dashboard-auth/sessions'

const setUp = async () => {
  const app = await testApp({ accounts: 0 })
  const crowd = people(app)
  const anna = await crowd.as('viewer', { username: 'anna' })
  return { app, crowd, anna, of: `/api/dashboard-users/${anna.person.row.id}/sessions` }
}

const listed = async (browser: Browser, path = OWN) =>
  ((await (await browser.ask(`GET ${path}`)).json()) as SessionList).items // as: its own type

describe('own sessions', () => {
  test('show device, sign-in method, address and time, and mark the current one', async () => {
    const { app, crowd, anna } = await setUp()
    const token = await commit(app.db, (tx) =>
      createSession(tx, app.bindings.random, {
        userId: anna.person.row.id,
        method: 'passkey',
        isComplete: true,
        isConfirmed: false,
        now: app.clock.now() - 60_000,
        expiresAt: app.clock.now() + 60_000,
        address: '192.0.2.9',
        userAgent: FIREFOX,
      }),
    )
    await crowd.as('viewer')
    const items = await listed(anna)
    expect(items).toMatchObject([
      { method: 'password', device: 'Unknown device', address: '127.0.0.1', isCurrent: true },
      {
        id: token.row.id,
        method: 'passkey',
        device: 'Firefox on Linux',
        address: '192.0.2.9',
        createdAt: '2025-12-31T23:59:00.000Z',
        lastSeenAt: '2025-12-31T23:59:00.000Z',
        isCurrent: false,
      },
    ])
    expect(JSON.stringify(items)).not.toContain(token.row.tokenHash)
  })

  test('are distinguished by browser, most recently used first', async () => {
    const { app, crowd } = await setUp()
    await app.clock.advance('1s')
    const here = crowd.browser(REMOTE)
    await here.ask('POST /api/dashboard-auth/password/login', {
      json: { username: 'anna', password: PASSWORD },
      headers: { 'user-agent': FIREFOX },
    })
    expect(await listed(here)).toMatchObject([{ device: 'Firefox on Linux', address: REMOTE, isCurrent: true }, {}])
  })

  test('omit expired sessions and those still waiting for the second factor', async () => {
    const { app, crowd, anna } = await setUp()
    await crowd.signInAs(anna.person)
    await crowd.signInAs(anna.person)
    const [, half, over] = await app.db.select().from(sessions).all()
    await commit(app.db, async (tx) => {
      await tx.update(sessions).set({ isComplete: false }).where(eq(sessions.id, half!.id)).run()
      await tx.update(sessions).set({ expiresAt: app.clock.now() }).where(eq(sessions.id, over!.id)).run()
    })
    expect(await listed(anna)).toMatchObject([{ isCurrent: true }])
  })

  test('end one by one, effective on the next request', async () => {
    const { crowd, anna } = await setUp()
    const other = await crowd.signInAs(anna.person, { peer: REMOTE })
    const [one] = (await listed(anna)).filter(({ isCurrent }) => !isCurrent)
    expect((await anna.ask(`DELETE ${OWN}/${one?.id}`)).status).toBe(204)
    expect(await problem(await other.ask(`GET ${OWN}`))).toEqual([401, 'authentication_required'])
    expect((await anna.ask(`GET ${OWN}`)).status).toBe(200)
    expect((await crowd.audit()).at(-1)).toMatchObject({
      event: 'session_ended',
      actor: anna.person.row.id,
      target: anna.person.row.id,
      details: { session: one?.id },
    })
    expect(await problem(await anna.ask(`DELETE ${OWN}/${one?.id}`))).toEqual([404, 'not_found'])
  })

  test('ending the current one signs out', async () => {
    const { anna } = await setUp()
    const [here] = await listed(anna)
    expect((await anna.ask(`DELETE ${OWN}/${here?.id}`)).status).toBe(204)
    expect(anna.cookie).toBeNull()
  })

  test('cannot be ended by other users, and require an account', async () => {
    const { crowd, anna } = await setUp()
    const [here] = await listed(anna)
    const bob = await crowd.as('admin')
    expect(await problem(await bob.ask(`DELETE ${OWN}/${here?.id}`))).toEqual([404, 'not_found'])
    expect(await problem(await (await crowd.guest()).ask(`GET ${OWN}`))).toEqual([401, 'user_account_required'])
    expect((await anna.ask(`GET ${OWN}`)).status).toBe(200)
  })
})

describe('sessions of others', () => {
  test('are visible to and ended by users who manage users, after a confirmation', async () => {
    const { crowd, anna, of } = await setUp()
    const admin = await crowd.as('admin')
    const [theirs] = await listed(admin, of)
    expect(theirs).toMatchObject({ method: 'password', isCurrent: false })
    expect((await admin.ask(`DELETE ${of}/${theirs?.id}`)).status).toBe(204)
    expect((await crowd.audit()).at(-1)).toMatchObject({ actor: admin.person.row.id, target: anna.person.row.id })
    expect(await problem(await anna.ask(`GET ${OWN}`))).toEqual([401, 'authentication_required'])
  })

  test.each(['GET', 'DELETE'])('%s is rejected for everyone else', async (method) => {
    const { crowd, anna, of } = await setUp()
    const [theirs] = await listed(anna)
    const route = method === 'GET' ? `GET ${of}` : `DELETE ${of}/${theirs?.id}`
    for (const role of ['operator', 'viewer'])
      expect(await problem(await (await crowd.as(role)).ask(route))).toEqual([403, 'permission_required'])
    expect(await problem(await crowd.browser(REMOTE).ask(route))).toEqual([401, 'authentication_required'])
    expect(await listed(anna)).toHaveLength(1)
  })

  test('are viewed without a confirmation, and ended with one', async () => {
    const { crowd, anna, of } = await setUp()
    const admin = await crowd.as('admin', { isConfirmed: false })
    const [theirs] = await listed(admin, of)
    expect(await problem(await admin.ask(`DELETE ${of}/${theirs?.id}`))).toEqual([403, 'step_up_required'])
    expect(await listed(anna)).toHaveLength(1)
  })

  test('are on the page for users who manage users, each with a button that returns there', async () => {
    const { crowd, anna, of } = await setUp()
    const [theirs] = await listed(anna)
    const route = `${of}/${theirs?.id}`
    await crowd.addRole('helpdesk', { 'users:manage': 'all', 'dashboard:read': 'all' })
    const headers = { accept: 'text/html' }
    const page = async (role: string) => (await (await crowd.as(role)).ask('GET /settings/access', { headers })).text()
    expect(await page('admin')).toContain(`hx-delete="${route}"`)
    expect(await page('helpdesk')).not.toContain('/sessions/ses_')
    const ended = await (await crowd.as('admin')).ask(`DELETE ${route}`, { headers })
    expect([ended.status, ended.headers.get('location')]).toEqual([303, '/settings/access?done=session_ended'])
  })

  test('a user cannot end sessions of a user with more permissions', async () => {
    const { crowd } = await setUp()
    await crowd.addRole('helpdesk', { 'users:manage': 'all', 'dashboard:read': 'all' })
    const helper = await crowd.as('helpdesk')
    const admin = await crowd.as('admin')
    const of = `/api/dashboard-users/${admin.person.row.id}/sessions`
    const [theirs] = await listed(helper, of)
    expect(await problem(await helper.ask(`DELETE ${of}/${theirs?.id}`))).toEqual([403, 'insufficient_delegation'])
    expect((await admin.ask(`GET ${OWN}`)).status).toBe(200)
  })

  test('unknown users and sessions of another user are not found', async () => {
    const { crowd, of, anna } = await setUp()
    const admin = await crowd.as('admin')
    const [own] = await listed(admin)
    expect(await problem(await admin.ask('GET /api/dashboard-users/usr_none/sessions'))).toEqual([
      404,
      'user_not_found',
    ])
    expect(await problem(await admin.ask(`DELETE ${of}/${own?.id}`))).toEqual([404, 'not_found'])
    expect(await listed(anna)).toHaveLength(1)
  })
})

test('the hourly job deletes expired sessions', async () => {
  const { app, anna, crowd } = await setUp()
  await app.clock.advance('6d')
  await crowd.signInAs(anna.person)
  await app.clock.advance('1d')
  await runRetention(app)
  expect(await app.db.select().from(sessions).all()).toHaveLength(1)
  expect(await problem(await anna.ask(`GET ${OWN}`))).toEqual([401, 'authentication_required'])
})

test('the last use is recorded once a minute, with the address, and a failure to record it fails no request', async () => {
  const { app, anna } = await setUp()
  const row = () => app.db.select().from(sessions).get()
  const use = (peer = '127.0.0.1') => anna.ask('GET /api/accounts', { peer })
  await app.clock.advance('59s')
  await use(REMOTE)
  expect(await row()).toMatchObject({ address: '127.0.0.1', lastSeenAt: app.clock.now() - 59_000 })
  await app.clock.advance('1s')
  await use(REMOTE)
  expect(await row()).toMatchObject({ address: REMOTE, lastSeenAt: app.clock.now() })
  await app.clock.advance('2m')
  app.sqlite.run('PRAGMA query_only = ON')
  expect((await use()).status).toBe(200)
})

describe('a hundred sessions of one user', () => {
  const signInOften = async ({ app, crowd, anna }: Awaited<ReturnType<typeof setUp>>, times: number) => {
    for (let i = 0; i < times; i++) {
      await app.clock.advance('1s')
      await crowd.signInAs(anna.person)
    }
  }
  const isSignedIn = async (browser: Browser) => (await browser.session()).authenticated

  test('are the maximum; another sign-in ends the least recently used one', async () => {
    const setting = await setUp()
    const { app, crowd, anna } = setting
    const berta = await crowd.as('viewer')
    const idle = await crowd.signInAs(anna.person)
    await signInOften(setting, 98)
    await app.clock.advance('1m')
    expect(await listed(anna)).toHaveLength(100)
    const login = { json: { username: 'anna', password: PASSWORD } }
    expect((await crowd.browser(REMOTE).ask('POST /api/dashboard-auth/password/login', login)).status).toBe(200)
    expect(await listed(anna)).toHaveLength(100)
    expect([await isSignedIn(idle), await isSignedIn(anna), await isSignedIn(berta)]).toEqual([false, true, true])
  })

  test('are not ended by someone who knows the password but not the second factor', async () => {
    const { app, anna } = await setUp()
    const draft = { userId: anna.person.row.id, method: 'password', address: null, userAgent: null } as const
    for (let i = 0; i < 150; i++) {
      const now = app.clock.now() + i
      const half = { ...draft, isComplete: false, isConfirmed: false, now, expiresAt: now + 600_000 }
      await commit(app.db, async (tx) => void (await createSession(tx, app.bindings.random, half)))
    }
    expect(await isSignedIn(anna)).toBe(true)
    expect(await app.db.select().from(sessions).all()).toHaveLength(101)
  })

  test('created while the clock was ahead do not prevent a sign-in', async () => {
    const setting = await setUp()
    setting.app.clock.set(86_400_000)
    await signInOften(setting, 100)
    setting.app.clock.set(-86_400_000)
    expect(await isSignedIn(await setting.crowd.signInAs(setting.anna.person))).toBe(true)
  })
})
