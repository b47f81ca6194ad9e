/** Spec §5, signing in: the first password, the bootstrap token, changing and removing the password. */
import { describe, expect, test } from 'bun:test'
import { commit } from '../../db/commit.ts'
import { identities } from '../../db/schema/people.ts'
import { prepareBootstrapToken } from '../../src/auth/bootstrap.ts'
import { hasBootstrapToken, rotateBootstrapToken } from '../../src/model/users/bootstrap-token.ts'
import { testApp } from '../support/app.ts'
import { PASSWORD, people, problem, REMOTE, REQUEST_FORMATS } from '../support/people.ts'

const AUTH = '/api/dashboard-auth'
const SETUP = `POST ${AUTH}/password/setup`
const NEW = 'a password of my own'

const open = async (options: Parameters<typeof testApp>[0] = {}) => {
  const { environment, ...rest } = options
  const app = await testApp({ accounts: 0, environment: { HOST: '0.0.0.0', ...environment }, ...rest })
  await prepareBootstrapToken(app.bindings)
  return { app, ...people(app), token: tokenIn(app.lines) }
}

/** As a reader of the log would use it. */
const tokenIn = (lines: readonly string[]): string | null =>
  /bootstrap=([\w-]{43})/.exec(lines.findLast((line) => line.includes('bootstrap=')) ?? '')?.[1] ?? null

const count = (app: Awaited<ReturnType<typeof testApp>>, table: string) =>
  (app.sqlite.query(`SELECT count(*) AS n FROM ${table}`).get() as { n: number }).n

test('§5 the token is not required on this machine, nor behind a proxy', async () => {
  expect(await (await open()).browser().session()).toMatchObject({ bootstrapRequired: false })
  const behind = await open({
    environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header', CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true' },
  })
  expect(await behind.browser(REMOTE).session()).toMatchObject({ bootstrapRequired: false })
})

describe.each(REQUEST_FORMATS)('§5 the first password from another machine (%s)', (how) => {
  test('needs the token from the log, makes the user admin and signs in', async () => {
    const { browser, token, audit } = await open()
    const remote = browser(REMOTE)
    expect(await remote.session()).toMatchObject({ bootstrapRequired: true, bootstrapTokenConfigured: true })
    const response = await remote.send(how, SETUP, { password: NEW, bootstrapToken: ` ${token} ` })
    expect(response.status).toBe(how === 'json' ? 200 : 303)
    expect(await remote.session()).toMatchObject({
      authenticated: true,
      user: { username: 'admin', role: { id: 'role_admin' } },
      bootstrapRequired: false,
      bootstrapTokenConfigured: false,
    })
    expect((await audit()).map(({ event, actor, method }) => [event, actor, method])).toContainEqual([
      'password_set',
      'bootstrap',
      'bootstrap_token',
    ])
    expect(JSON.stringify(await audit())).not.toContain(token!)
  })

  test('a password of seven characters is rejected, and the token is not used up', async () => {
    const { browser, token } = await open()
    const remote = browser(REMOTE)
    const refused = await remote.send(how, SETUP, { password: 'seven77', bootstrapToken: token! })
    expect(refused.status).toBe(how === 'json' ? 422 : refused.status)
    expect((await remote.session()).passwordRequired).toBe(false)
    expect((await remote.ask(SETUP, { json: { password: 'eight888', bootstrapToken: token } })).status).toBe(200)
  })
})

describe('§5 the bootstrap token', () => {
  test('is stored hashed only, and shown once', async () => {
    const { app, token } = await open()
    expect(JSON.stringify(app.sqlite.query('SELECT * FROM facts').all())).not.toContain(token!)
    expect(app.lines.filter((line) => line.includes(token!))).toHaveLength(1)
  })

  test('missing, wrong and unavailable tokens are distinguished', async () => {
    const { app, browser } = await open()
    const remote = browser(REMOTE)
    const setUp = async (more: object = {}) => problem(await remote.ask(SETUP, { json: { password: NEW, ...more } }))
    expect(await setUp()).toEqual([401, 'bootstrap_required'])
    expect(await setUp({ bootstrapToken: 'wrong' })).toEqual([401, 'invalid_bootstrap_token'])
    app.sqlite.run('DELETE FROM facts')
    expect(await setUp()).toEqual([401, 'bootstrap_unavailable'])
  })

  test('can be guessed at most eight times a minute', async () => {
    const { browser } = await open()
    const remote = browser(REMOTE)
    const guess = async () =>
      (await problem(await remote.ask(SETUP, { json: { password: NEW, bootstrapToken: 'guess' } })))[0]
    expect(await Promise.all(Array.from({ length: 10 }, guess))).toEqual([...Array(8).fill(401), 429, 429])
  })

  test('only one of fifty parallel uses succeeds', async () => {
    const { app, browser, token } = await open()
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        browser(`192.0.2.${i + 1}`).ask(SETUP, { json: { password: NEW, bootstrapToken: token } }),
      ),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(count(app, 'users')).toBe(1)
  })

  test('a new one invalidates the old one', async () => {
    const { app, browser, token } = await open()
    const actor = { id: 'cli', method: 'cli', address: null, at: app.clock.now() }
    const next = await commit(app.db, (tx) => rotateBootstrapToken(tx, { random: app.bindings.random, actor }))
    const remote = browser(REMOTE)
    expect((await remote.ask(SETUP, { json: { password: NEW, bootstrapToken: token } })).status).toBe(401)
    expect((await remote.ask(SETUP, { json: { password: NEW, bootstrapToken: next } })).status).toBe(200)
  })

  test('a token that was replaced while the password was hashed sets none', async () => {
    const { app, browser, token } = await open()
    const actor = { id: 'cli', method: 'cli', address: null, at: app.clock.now() }
    const { passwords } = app.bindings
    app.bindings.passwords = {
      ...passwords,
      hash: async (password) => {
        await commit(app.db, (tx) => rotateBootstrapToken(tx, { random: app.bindings.random, actor }))
        return passwords.hash(password)
      },
    }
    const refused = await browser(REMOTE).ask(SETUP, { json: { password: NEW, bootstrapToken: token } })
    expect(await problem(refused)).toEqual([401, 'invalid_bootstrap_token'])
    expect(count(app, 'users')).toBe(0)
  })

  test('from the environment is used unchanged and not shown', async () => {
    const environment = { CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN: 'chosen-by-the-operator' }
    const { app, browser, token } = await open({ environment })
    expect([token, app.lines.join('').includes('chosen')]).toEqual([null, false])
    const json = { password: NEW, bootstrapToken: 'chosen-by-the-operator' }
    expect((await browser(REMOTE).ask(SETUP, { json })).status).toBe(200)
  })

  test.each(['127.0.0.1', '::1', '[::1]', 'localhost', '127.0.0.53'])(
    'is not created for a server on %s',
    async (HOST) => {
      const { app, token } = await open({ environment: { HOST } })
      expect([token, await hasBootstrapToken(app.bindings.db)]).toEqual([null, false])
    },
  )

  test.each(['0.0.0.0', '::', '192.168.1.5', 'sluice.lan'])('is created for a server on %s', async (HOST) => {
    const { app, token } = await open({ environment: { HOST } })
    expect(token).not.toBeNull()
    expect(app.lines.join('\n')).toContain('INFO  No password is set yet.')
  })

  test('is not created if a user has a password, nor in another mode', async () => {
    const { app, add } = await open({ environment: { CODEX_LB_DASHBOARD_AUTH_MODE: 'disabled' } })
    expect(tokenIn(app.lines)).toBeNull()
    const second = await testApp({ accounts: 0, environment: { HOST: '0.0.0.0' } })
    await people(second).add({ username: 'admin', role: 'admin' })
    await prepareBootstrapToken(second.bindings)
    expect(tokenIn(second.lines)).toBeNull()
    expect(add).toBeFunction()
  })
})

describe('§5 the first user', () => {
  test('cannot be created twice', async () => {
    const { browser } = await open()
    const local = browser()
    await local.ask(SETUP, { json: { password: NEW } })
    expect(await problem(await local.ask(SETUP, { json: { password: NEW } }))).toEqual([
      409,
      'password_already_configured',
    ])
  })

  test('takes over the keys without an owner', async () => {
    const { app, browser, audit } = await open()
    const { row } = await app.key()
    await browser().ask(SETUP, { json: { password: NEW } })
    const owner = app.sqlite.query('SELECT owner_user_id AS id FROM api_keys WHERE id = ?').get(row.id)
    const admin = app.sqlite.query('SELECT id FROM users').get()
    expect(owner).toEqual(admin)
    expect((await audit()).find(({ event }) => event === 'password_set')?.details).toEqual({
      username: 'admin',
      adoptedKeys: 1,
    })
  })

  test('a key disabled with a deleted owner is not enabled with this one', async () => {
    const { app, browser } = await open()
    const { row } = await app.key()
    app.sqlite.run("UPDATE api_keys SET is_active = 0, deactivated_reason = 'owner_disabled'")
    await browser().ask(SETUP, { json: { password: NEW } })
    const adopted = app.sqlite
      .query('SELECT is_active AS isActive, deactivated_reason AS reason FROM api_keys WHERE id = ?')
      .get(row.id)
    expect(adopted).toEqual({ isActive: 0, reason: 'manual' })
  })

  test('a browser on this machine with a foreign Host is not local', async () => {
    const { browser } = await open()
    const refused = await browser().ask(SETUP, { json: { password: NEW }, headers: { host: 'evil.example' } })
    expect(await problem(refused)).toEqual([401, 'bootstrap_required'])
  })
})

describe.each(REQUEST_FORMATS)('§3 changing a password (%s)', (how) => {
  const change = { currentPassword: PASSWORD, newPassword: NEW }

  test('ends every other session; this browser stays signed in, with its confirmation', async () => {
    const { as, signInAs, browser } = await open()
    const anna = await as('admin', { peer: REMOTE })
    const phone = await signInAs(anna.person, { peer: '192.0.2.8' })
    const response = await anna.send(how, `POST ${AUTH}/password/change`, change)
    expect(response.status).toBe(how === 'json' ? 200 : 303)
    expect((await anna.session()).stepUp).not.toBeNull()
    expect((await phone.session()).authenticated).toBe(false)
    const login = async (password: string) =>
      (await browser().ask(`POST ${AUTH}/password/login`, { json: { password } })).status
    expect([await login(PASSWORD), await login(NEW)]).toEqual([401, 200])
  })

  test('affects one user, even if another has the same', async () => {
    const { as, browser } = await open()
    const [anna, berta] = [await as('admin'), await as('viewer')]
    await anna.send(how, `POST ${AUTH}/password/change`, change)
    const json = { username: berta.person.row.username, password: PASSWORD }
    expect((await browser().ask(`POST ${AUTH}/password/login`, { json })).status).toBe(200)
  })

  test('needs the current password', async () => {
    const { as, audit } = await open()
    const anna = await as('viewer', { peer: REMOTE })
    await anna.send(how, `POST ${AUTH}/password/change`, { ...change, currentPassword: 'wrong' })
    expect((await audit()).at(-1)).toMatchObject({ event: 'login_failed', target: anna.person.row.id })
  })
})

describe('§3 changing a password', () => {
  const change = (password = PASSWORD) => ({ json: { currentPassword: password, newPassword: NEW } })
  const CHANGE = `POST ${AUTH}/password/change`

  test('explains who cannot: no session, half session, a user without one, an install without one', async () => {
    const { add, as, browser } = await open()
    expect(await problem(await browser().ask(CHANGE, change()))).toEqual([400, 'password_not_configured'])
    const waiting = await add({ username: 'anna', hasTotp: true })
    const half = browser(REMOTE)
    await half.ask(`POST ${AUTH}/password/login`, { json: { username: waiting.row.username, password: PASSWORD } })
    expect(await problem(await half.ask(CHANGE, change()))).toEqual([401, 'totp_required'])
    expect(await problem(await browser(REMOTE).ask(CHANGE, change()))).toEqual([401, 'authentication_required'])
    const keyed = await as('viewer', { hasPassword: false, method: 'passkey' })
    expect(await problem(await keyed.ask(CHANGE, change()))).toEqual([400, 'password_not_configured'])
  })

  test('the second of two parallel changes has the wrong current password', async () => {
    const { as } = await open()
    const anna = await as('viewer', { peer: REMOTE })
    const answers = await Promise.all([anna.ask(CHANGE, change()), anna.ask(CHANGE, change())])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 401])
  })
})

describe('§5 Signing in 7: removing the dashboard password', () => {
  const REMOVE = `DELETE ${AUTH}/password`

  test('makes the install passwordless again, with a new token and without requirements', async () => {
    const { app, as, browser, audit } = await open()
    const anna = await as('admin', { username: 'admin', peer: REMOTE, hasTotp: true })
    await app.change({ totpRequiredOnLogin: true, totpRequiredForAdminRole: true })
    const { row } = await app.key()
    app.sqlite.run('UPDATE api_keys SET owner_user_id = ?', [anna.person.row.id])
    expect((await anna.ask(REMOVE, { json: { password: PASSWORD } })).status).toBe(200)
    const token = tokenIn(app.lines)
    expect(anna.cookie).toBeNull()
    expect([count(app, 'users'), count(app, 'sessions')]).toEqual([0, 0])
    const local = browser()
    expect(await local.session()).toMatchObject({ authMethod: 'local_bootstrap', passwordRequired: false })
    expect(await (await local.ask('GET /api/settings')).json()).toMatchObject({
      totpRequiredOnLogin: false,
      totpRequiredForAdminRole: false,
    })
    expect(app.sqlite.query('SELECT owner_user_id AS owner, is_active AS active FROM api_keys').all()).toEqual([
      { owner: null, active: 1 },
    ])
    expect(row.isActive).toBe(true)
    expect(await browser(REMOTE).session()).toMatchObject({ bootstrapRequired: true, bootstrapTokenConfigured: true })
    expect((await audit()).map(({ event }) => event)).toContain('password_removed')
    expect((await browser(REMOTE).ask(SETUP, { json: { password: NEW, bootstrapToken: token } })).status).toBe(200)
  })

  test('a form, which cannot DELETE, posts to a path beside it', async () => {
    const { app, as } = await open()
    const anna = await as('admin')
    expect((await anna.submit(`POST ${AUTH}/password/remove`, { password: PASSWORD })).status).toBe(303)
    expect(count(app, 'users')).toBe(0)
  })

  test.each(['active', 'disabled', 'invited'] as const)('not while another user is %s', async (status) => {
    const { app, as, add } = await open()
    const anna = await as('admin')
    await add({ status, hasPassword: false })
    expect(await problem(await anna.ask(REMOVE, { json: { password: PASSWORD } }))).toEqual([409, 'other_users_exist'])
    expect([count(app, 'users'), (await anna.session()).authenticated]).toEqual([2, true])
  })

  test('and a rejection for another reason than a wrong password costs no attempt', async () => {
    const { as, add } = await open()
    const anna = await as('admin')
    await add({ hasPassword: false })
    const statuses = []
    for (let i = 0; i < 9; i++) statuses.push((await anna.ask(REMOVE, { json: { password: PASSWORD } })).status)
    expect(statuses).toEqual(Array(9).fill(409))
  })

  test('not while the proxy knows a user by it, who would return as a new user', async () => {
    const { app, as } = await open()
    const anna = await as('admin')
    const identity = { id: 'i', userId: anna.person.row.id, provider: 'trusted_header', subject: 'anna' } as const
    await commit(
      app.db,
      async (tx) =>
        void (await tx
          .insert(identities)
          .values({ ...identity, createdAt: 1 })
          .run()),
    )
    expect(await problem(await anna.ask(REMOVE, { json: { password: PASSWORD } }))).toEqual([409, 'other_users_exist'])
  })

  test('not without the password, whatever session', async () => {
    const { app, as } = await open()
    const anna = await as('admin')
    expect(await problem(await anna.ask(REMOVE, { json: { password: 'wrong' } }))).toEqual([401, 'invalid_credentials'])
    expect(count(app, 'users')).toBe(1)
  })

  test('nor if there is none', async () => {
    const { browser } = await open()
    expect(await problem(await browser().ask(REMOVE, { json: { password: 'x' } }))).toEqual([
      400,
      'password_not_configured',
    ])
  })
})
