/** Spec §2, creating a user with an invite; §8, invites: what the link shows, and that it works once, for a day. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { users } from '../../db/schema/people.ts'
import { testApp } from '../support/app.ts'
import {
  type Browser,
  doneStatus,
  type Fields,
  PASSWORD,
  people,
  problem,
  REMOTE,
  REQUEST_FORMATS,
} from '../support/people.ts'
import { runRetention } from '../support/retention.ts'

const PROXY = { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' }
const ACCEPT = 'POST /api/dashboard-auth/invite/accept'

const open = async (environment: Record<string, string> = {}) => {
  const app = await testApp({ accounts: 0, environment })
  return { app, ...people(app) }
}

const withLink = async (fields: Record<string, unknown> = {}, environment?: Record<string, string>) => {
  const world = await open(environment)
  const admin = await world.as('admin', { username: 'boss', displayName: 'The Boss' })
  const response = await admin.ask('POST /api/dashboard-users', {
    json: { username: 'anna', role: 'viewer', ...fields },
  })
  const { user, invite } = (await response.json()) as { user: { id: string }; invite: { token: string } } // as: asserted by what follows
  const accept = (more: Fields = {}, browser = world.browser(REMOTE)) =>
    browser.ask(ACCEPT, { json: { token: invite.token, password: 'my own password', ...more } })
  return { ...world, admin, id: user.id, token: invite.token, accept }
}

describe('§2 Creating an account: POST body', () => {
  const invite = async (fields: Record<string, unknown>, environment?: Record<string, string>) => {
    const { as } = await open(environment)
    return problem(await (await as('admin', { hasTotp: true })).ask('POST /api/dashboard-users', { json: fields }))
  }
  const identity = { provider: 'trusted_header', subject: 'anna' }

  test.each<[string, Record<string, unknown>]>([
    ['no username', { role: 'viewer' }],
    ['the reserved username', { username: 'Admin', role: 'viewer' }],
    ['no role', { username: 'anna' }],
    ['an unknown field', { username: 'anna', role: 'viewer', password: 'x' }],
    ['ssoOnly without an identity', { username: 'anna', role: 'viewer', ssoOnly: true }],
    ['an identity without ssoOnly', { username: 'anna', role: 'viewer', expectedIdentity: identity }],
    [
      'an empty subject',
      { username: 'anna', role: 'viewer', ssoOnly: true, expectedIdentity: { ...identity, subject: ' ' } },
    ],
    [
      'an unknown provider',
      { username: 'anna', role: 'viewer', ssoOnly: true, expectedIdentity: { ...identity, provider: 'saml' } },
    ],
  ])('%s is rejected', async (_, fields) => {
    expect(await invite(fields, PROXY)).toEqual([422, 'validation_error'])
  })

  test.each<[string, Record<string, unknown>, [number, string]]>([
    ['an unknown role', { role: 'no_such_role' }, [404, 'role_not_found']],
    ['Guest', { roleId: 'role_guest' }, [422, 'role_not_assignable']],
  ])('%s cannot be assigned', async (_, fields, expected) => {
    expect(await invite({ username: 'anna', ...fields })).toEqual(expected)
  })

  test('name and address belong to one user', async () => {
    const { as, add } = await open()
    await add({ username: 'anna', email: 'anna@example.com' })
    const admin = await as('admin')
    const ask = async (json: Fields) =>
      problem(await admin.ask('POST /api/dashboard-users', { json: { role: 'viewer', ...json } }))
    expect(await ask({ username: 'ANNA' })).toEqual([409, 'username_taken'])
    expect(await ask({ username: 'berta', email: 'Anna@Example.com' })).toEqual([409, 'email_taken'])
  })

  test.each(REQUEST_FORMATS)('it needs a confirmation, which a page asks for (%s)', async (how) => {
    const admin = await (await open()).as('admin', { isConfirmed: false })
    const response = await admin.send(how, 'POST /api/dashboard-users', { username: 'anna', role: 'viewer' })
    if (how === 'json') expect(await problem(response)).toEqual([403, 'step_up_required'])
    else expect([response.status, response.headers.get('location')]).toEqual([303, expect.stringMatching(/^\/confirm/)])
    expect(await (await admin.ask('GET /api/dashboard-users/invites')).json()).toEqual([])
  })

  test('the open invites are listed without their links', async () => {
    const { admin, id } = await withLink()
    expect(await (await admin.ask('GET /api/dashboard-users/invites')).json()).toEqual([
      {
        userId: id,
        username: 'anna',
        roleId: 'role_viewer',
        expiresAt: '2026-01-02T00:00:00.000Z',
        ssoOnly: false,
        createdByUserId: admin.person.row.id,
        voidReason: null,
      },
    ])
  })
})

describe('§4 GET invite: what the link shows', () => {
  test('the inviter and the role; viewing does not use it up', async () => {
    const { browser, token, accept } = await withLink({ usernameLocked: true })
    for (let look = 0; look < 3; look++) {
      const response = await browser(REMOTE).ask(`GET /api/dashboard-auth/invite/${token}`)
      expect([response.status, await response.json()]).toEqual([
        200,
        {
          roleName: 'Viewer',
          inviterDisplayName: 'The Boss',
          suggestedUsername: 'anna',
          usernameLocked: true,
          expiresAt: '2026-01-02T00:00:00.000Z',
        },
      ])
    }
    expect((await accept()).status).toBe(200)
  })

  test('an invite not accepted within a day is deleted by the hourly job, with the name it reserved', async () => {
    const { app, id } = await withLink()
    const isThere = async () => (await app.db.select().from(users).where(eq(users.id, id)).get()) !== undefined
    await app.clock.advance('23h')
    await runRetention(app)
    expect(await isThere()).toBe(true)
    await app.clock.advance('1h')
    await runRetention(app)
    expect(await isThere()).toBe(false)
  })

  test('expired, used, revoked, replaced and invented links answer the same bytes', async () => {
    const { app, admin, browser, token, id, accept } = await withLink()
    const answer = async (link: string, peer: string) => {
      const response = await browser(peer).ask(`GET /api/dashboard-auth/invite/${link}`)
      return [response.status, await response.text()]
    }
    const add = async (username: string) => {
      const response = await admin.ask('POST /api/dashboard-users', { json: { username, role: 'viewer' } })
      return (await response.json()) as { user: { id: string }; invite: { token: string } } // as: just created
    }
    await admin.ask(`POST /api/dashboard-users/${id}/invite`)
    const revoked = await add('berta')
    await admin.ask(`DELETE /api/dashboard-users/${revoked.user.id}/invite`)
    const used = await add('carla')
    await accept({ token: used.invite.token })
    const expired = await add('dora')
    await app.clock.advance('24h')
    const links = [token, revoked.invite.token, used.invite.token, expired.invite.token, 'made-up']
    const answers = await Promise.all(links.map((link, n) => answer(link, `192.0.2.${n}`)))
    expect(new Set(answers.map(String)).size).toBe(1)
    expect(answers[0]?.[0]).toBe(404)
  })
})

describe('§4 POST invite/accept', () => {
  test.each(REQUEST_FORMATS)('another name can be chosen, unless it is locked (%s)', async (how) => {
    const free = await withLink()
    const fields = { token: free.token, password: 'my own password', username: 'Annie' }
    expect((await free.browser().send(how, ACCEPT, fields)).status).toBe(doneStatus(how, 200))
    expect((await free.app.db.select().from(users).where(eq(users.id, free.id)).get())?.username).toBe('annie')
    const locked = await withLink({ usernameLocked: true })
    const refused = await locked.browser().send(how, ACCEPT, { ...fields, token: locked.token })
    expect(await problem(refused)).toEqual([422, 'username_locked'])
  })

  test.each<[string, Fields, [number, string]]>([
    ['a name that is taken', { username: 'boss' }, [409, 'username_taken']],
    ['the reserved name', { username: 'admin' }, [422, 'validation_error']],
    ['a short password', { password: 'seven77' }, [422, 'validation_error']],
    ['a password over 1,024 characters', { password: 'x'.repeat(1025) }, [422, 'validation_error']],
    ['a wrong token', { token: 'x' }, [404, 'invite_not_found']],
  ])('%s is rejected and leaves the link valid', async (_, fields, expected) => {
    const { accept } = await withLink()
    expect(await problem(await accept(fields))).toEqual(expected)
    expect((await accept()).status).toBe(200)
  })

  test('a signed-in user gets an error, and the link stays valid', async () => {
    const { admin, accept } = await withLink()
    expect(await problem(await accept({}, admin))).toEqual([409, 'already_signed_in'])
    expect((await accept()).status).toBe(200)
  })

  test('if passwords are off, none can be set', async () => {
    const { ask } = await testApp({ accounts: 0, environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } })
    expect(await problem(await ask(ACCEPT, { json: { token: 'x', password: PASSWORD } }))).toEqual([
      400,
      'password_management_disabled',
    ])
  })

  test('signing in like this counts as a confirmation', async () => {
    const { browser, accept } = await withLink({ role: 'admin' })
    const anna = browser(REMOTE)
    await accept({}, anna)
    expect(await anna.session()).toMatchObject({ authMethod: 'password' })
    expect((await anna.ask('POST /api/dashboard-users', { json: { username: 'berta', role: 'viewer' } })).status).toBe(
      201,
    )
  })

  test('the log contains neither link nor password', async () => {
    const { app, browser, token, accept } = await withLink()
    await browser(REMOTE).ask(`GET /api/dashboard-auth/invite/${token}`)
    await accept()
    const logged = app.lines.join('\n')
    expect(logged).toContain('/api/dashboard-auth/invite/')
    for (const secret of [token, 'my own password']) expect(logged).not.toContain(secret)
  })

  test('one link used 50 times in parallel creates one session', async () => {
    const { app, accept, browser, audit } = await withLink()
    const browsers = Array.from({ length: 50 }, (_, n) => browser(`192.0.2.${n}`))
    const answers = await Promise.all(browsers.map((each) => accept({}, each)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(49)
    expect(browsers.filter(({ cookie }) => cookie !== null)).toHaveLength(1)
    expect((await audit()).filter(({ event }) => event === 'invite_accepted')).toHaveLength(1)
    expect(await app.db.select().from(users).all()).toHaveLength(2)
  })
})

describe('§8 Limits: attempts with invite links', () => {
  test('only eight of 100 parallel wrong links are checked, whatever the forwarded headers', async () => {
    const { browser } = await open()
    const guesser = browser(REMOTE)
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        guesser.ask(`GET /api/dashboard-auth/invite/guess-${n}`, { headers: { 'x-forwarded-for': `198.51.100.${n}` } }),
      ),
    )
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(8)
    const limited = answers.filter(({ status }) => status === 429)
    expect(limited).toHaveLength(92)
    expect(Number(limited[0]?.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test('only eight of 100 parallel uses of one link are hashed, without using up attempts', async () => {
    const { app, browser, accept } = await withLink()
    const { passwords } = app.bindings
    let hashes = 0
    app.bindings.passwords = { ...passwords, hash: (password) => passwords.hash(password).finally(() => hashes++) }
    const answers = await Promise.all(Array.from({ length: 100 }, () => accept({}, browser(REMOTE))))
    const count = (status: number) => answers.filter((answer) => answer.status === status).length
    expect([hashes, count(200), count(404), count(429)]).toEqual([8, 1, 7, 92])
    const login = { username: 'anna', password: 'my own password' }
    expect((await browser(REMOTE).ask('POST /api/dashboard-auth/password/login', { json: login })).status).toBe(200)
  })

  test('a valid one costs nothing, and a wrong one counts as a sign-in attempt', async () => {
    const { browser, token } = await withLink()
    const visitor = browser(REMOTE)
    for (let look = 0; look < 20; look++)
      expect((await visitor.ask(`GET /api/dashboard-auth/invite/${token}`)).status).toBe(200)
    for (let look = 0; look < 8; look++) await visitor.ask('GET /api/dashboard-auth/invite/wrong')
    expect(await problem(await visitor.ask(ACCEPT, { json: { token, password: PASSWORD } }))).toEqual([
      429,
      'invite_rate_limited',
    ])
    const login = { username: 'boss', password: PASSWORD }
    expect(await problem(await visitor.ask('POST /api/dashboard-auth/password/login', { json: login }))).toEqual([
      429,
      'password_rate_limited',
    ])
  })
})

describe('§5 Delegation 1: a link gives what its author can give, and what it was created for', () => {
  const DEAD: [number, string] = [404, 'invite_not_found']
  const NOTES = ['The role changed after the invite.', 'The user who sent it can no longer assign this role.']
  /** What the API list and the page show for void links. */
  const shown = async (admin: Browser) => {
    const invites = (await (await admin.ask('GET /api/dashboard-users/invites')).json()) as { voidReason: string }[] // as: the members used here
    const page = await (await admin.ask('GET /settings/access', { headers: { accept: 'text/html' } })).text()
    const said = (texts: string[]) => texts.find((text) => page.includes(text)) ?? null
    return [invites.find(({ voidReason }) => voidReason)?.voidReason ?? null, said(['Link void']), said(NOTES)]
  }
  const MANAGER = { 'users:manage': 'all', 'dashboard:read': 'all', 'accounts:read': 'all' } as const

  test('another role ends the link, and sending it again creates one for the new role', async () => {
    const { admin, browser, token, id, accept, audit } = await withLink()
    expect((await admin.ask(`PATCH /api/dashboard-users/${id}`, { json: { role: 'admin' } })).status).toBe(200)
    expect(await problem(await browser(REMOTE).ask(`GET /api/dashboard-auth/invite/${token}`))).toEqual(DEAD)
    expect(await problem(await accept())).toEqual(DEAD)
    expect((await audit()).at(-1)).toMatchObject({ event: 'user_role_changed', details: { voidedLinks: 1 } })
    expect(await shown(admin)).toEqual(['role_changed', 'Link void', 'The role changed after the invite.'])
    const resent = (await (await admin.ask(`POST /api/dashboard-users/${id}/invite`)).json()) as { token: string } // as: asserted next
    const session = await accept({ token: resent.token })
    expect(await session.json()).toMatchObject({ user: { role: { slug: 'admin' } } })
    expect(await shown(admin)).toEqual([null, null, null])
  })

  test('so do other grants of its role, but a rename of the role does not', async () => {
    const { admin, addRole, accept, ...world } = await withLink()
    const small = await addRole('small', { 'dashboard:read': 'all', 'accounts:read': 'all' })
    const invite = async (username: string) => {
      const response = await admin.ask('POST /api/dashboard-users', { json: { username, role: small } })
      return ((await response.json()) as { invite: { token: string } }).invite.token // as: accepted below
    }
    const [one, other] = [await invite('berta'), await invite('carla')]
    const edit = (json: object) => admin.ask(`PATCH /api/dashboard-roles/${small}`, { json })
    const same = [{ permission: 'dashboard:read' }, { permission: 'accounts:read' }]
    expect((await edit({ name: 'Little', grants: same })).status).toBe(200)
    expect((await accept({ token: one })).status).toBe(200)
    expect((await edit({ grants: [...same, { permission: 'ops:write' }] })).status).toBe(200)
    expect((await shown(admin))[0]).toBe('role_changed')
    expect(await problem(await accept({ token: other }, world.browser('192.0.2.8')))).toEqual(DEAD)
    expect((await accept({}, world.browser('192.0.2.9'))).status).toBe(200)
  })

  test.each([
    ['is disabled', "UPDATE users SET status = 'disabled' WHERE username = 'author'"],
    ['is gone', "DELETE FROM users WHERE username = 'author'"],
    ['no longer manages users', "UPDATE users SET role_id = 'role_viewer' WHERE username = 'author'"],
    ['holds less than the role', "UPDATE role_grants SET permission = 'ops:write' WHERE permission = 'accounts:read'"],
  ])('an author who %s leaves links without effect', async (_, statement) => {
    const { app, as, addRole, browser } = await open()
    await addRole('manager', MANAGER)
    const author = await as('manager', { username: 'author' })
    const made = await author.ask('POST /api/dashboard-users', { json: { username: 'anna', role: 'viewer' } })
    const { invite } = (await made.json()) as { invite: { token: string } } // as: asserted by what follows
    const look = () => browser(REMOTE).ask(`GET /api/dashboard-auth/invite/${invite.token}`)
    expect((await look()).status).toBe(200)
    expect((await shown(await as('admin')))[0]).toBeNull()
    app.sqlite.run(statement)
    expect(await problem(await look())).toEqual(DEAD)
    expect(await shown(await as('admin'))).toEqual([
      'author_may_not',
      'Link void',
      'The user who sent it can no longer assign this role.',
    ])
    const json = { token: invite.token, password: 'my own password' }
    expect(await problem(await browser(REMOTE).ask(ACCEPT, { json }))).toEqual(DEAD)
  })

  test('nor can an author who is disabled while the new password is hashed', async () => {
    const { app, accept } = await withLink()
    const taken = accept()
    app.sqlite.run("UPDATE users SET status = 'disabled' WHERE username = 'boss'")
    expect(await problem(await taken)).toEqual(DEAD)
  })
})
