/** Spec §5, rule 5 of trusted-header mode: who is rejected, their error, and the audit entry. */
import { describe, expect, test } from 'bun:test'
import { PASSWORD, problem, REMOTE } from '../support/people.ts'
import { behindProxy, SETTINGS } from '../support/proxied.ts'

describe('§5 Trusted-header 5: who is rejected', () => {
  test('a new user, when new users are rejected, until they are added', async () => {
    const { announced, setProvider, names } = await behindProxy()
    const admin = await setProvider({ unknownIdentityRoleId: null })
    const anna = announced('anna')
    const refused = await anna.ask(SETTINGS)
    expect(await problem(refused)).toEqual([401, 'identity_not_provisioned'])
    expect((await anna.session()).login.pendingIdentity).toBe(true)
    expect(await names()).toEqual(['boss'])
    const expectedIdentity = { provider: 'trusted_header', subject: 'Anna' }
    await admin.ask('POST /api/dashboard-users', {
      json: { username: 'annie', role: 'viewer', ssoOnly: true, expectedIdentity },
    })
    expect((await anna.session()).user).toMatchObject({ username: 'annie', role: { slug: 'viewer' } })
  })

  test('a disabled user, whatever their password', async () => {
    const { as, announced } = await behindProxy()
    const anna = announced('anna')
    const { user } = await anna.session()
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${user?.id}`, { json: { status: 'disabled' } })
    expect(await problem(await anna.ask(SETTINGS))).toEqual([401, 'account_disabled'])
  })

  test.each(['active', 'disabled'] as const)(
    'a password here is offered while the proxy user is rejected: %s',
    async (status) => {
      const { app, add, announced, browser } = await behindProxy()
      await announced('anna').session()
      app.sqlite.run("UPDATE users SET status = 'disabled'")
      await add({ username: 'admin', role: 'admin', status })
      const headers = { accept: 'text/html' }
      const unannounced = await browser().ask('GET /dashboard', { headers })
      expect([unannounced.status, unannounced.headers.get('location')]).toEqual(
        status === 'active' ? [303, '/login'] : [401, null],
      )
      const pending = await (await announced('anna').ask('GET /auth/pending', { headers })).text()
      expect(pending.includes('Sign in with a password')).toBe(status === 'active')
    },
  )

  test('a browser that is signed in here keeps working, and nothing was rejected', async () => {
    const { announced, setProvider, audit } = await behindProxy()
    const admin = await setProvider({ unknownIdentityRoleId: null })
    const both = announced('anna')
    both.cookie = admin.cookie
    expect((await both.ask(SETTINGS)).status).toBe(200)
    expect((await both.session()).user?.username).toBe('boss')
    expect((await audit()).map(({ event }) => event)).toEqual(['provider_updated'])
  })

  test('guest access does not bypass a rejection', async () => {
    const { app, as, announced, setProvider } = await behindProxy()
    await setProvider({ unknownIdentityRoleId: null })
    await app.change({ guestAccessEnabled: true })
    const password = { json: { password: 'all guests share' } }
    expect((await (await as('admin')).ask('POST /api/dashboard-auth/guest/password', password)).status).toBe(200)
    const stranger = announced('stranger')
    await stranger.ask('POST /api/dashboard-auth/guest/login', password)
    expect(stranger.cookie).not.toBeNull()
    expect(await problem(await stranger.ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
  })

  test('two headers, which arrive as one, even under a known name', async () => {
    const { app, announced, names, audit } = await behindProxy()
    const { user } = await announced('anna').session()
    app.sqlite.run(
      "INSERT INTO identities (id, user_id, provider, subject, created_at) VALUES ('i', ?, 'trusted_header', 'mallory, anna', 1)",
      [user?.id ?? ''],
    )
    const both = announced('Mallory, Anna')
    expect(await problem(await both.ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
    expect(await names()).toEqual(['anna'])
    expect((await audit()).at(-1)).toMatchObject({ event: 'login_failed', details: { subject: 'mallory, anna' } })
  })

  test('each rejection is recorded with the name and the reason', async () => {
    const { as, announced, setProvider, audit } = await behindProxy()
    const berta = (await announced('berta').session()).user
    await setProvider({ unknownIdentityRoleId: null })
    await (await as('admin')).ask(`PATCH /api/dashboard-users/${berta?.id}`, { json: { status: 'disabled' } })
    for (const subject of ['stranger', 'berta']) await announced(subject).ask(SETTINGS)
    const refused = (await audit()).filter(({ event }) => event === 'login_failed')
    expect(refused.map(({ actor, target, details }) => ({ actor, target, details }))).toEqual([
      {
        actor: 'anonymous',
        target: null,
        details: { method: 'trusted_header', reason: 'unknown_identity', subject: 'stranger' },
      },
      {
        actor: 'anonymous',
        target: berta?.id ?? '',
        details: { method: 'trusted_header', reason: 'account_disabled', subject: 'berta' },
      },
    ])
  })

  test('but of one client eight a minute, without using up password attempts', async () => {
    const { app, announced, setProvider, browser, audit } = await behindProxy()
    await setProvider({ unknownIdentityRoleId: null })
    const authRequest = (address: string) =>
      announced(`of-${address}`).ask(SETTINGS, { headers: { 'x-forwarded-for': address } })
    const count = async () => (await audit()).filter(({ event }) => event === 'login_failed').length
    for (let i = 0; i < 20; i++) expect((await authRequest(REMOTE)).status).toBe(401)
    expect(await count()).toBe(8)
    await authRequest('192.0.2.8')
    expect(await count()).toBe(9)
    const login = await browser().ask('POST /api/dashboard-auth/password/login', {
      json: { username: 'boss', password: PASSWORD },
      headers: { 'x-forwarded-for': REMOTE },
    })
    expect(login.status).toBe(200)
    await app.clock.advance('1m')
    await authRequest(REMOTE)
    expect(await count()).toBe(10)
  })

  test('a rejected user sees why even if it cannot be recorded', async () => {
    const { app, announced, setProvider } = await behindProxy()
    await setProvider({ unknownIdentityRoleId: null })
    app.sqlite.run('PRAGMA query_only = ON')
    expect(await problem(await announced('anna').ask(SETTINGS))).toEqual([401, 'identity_not_provisioned'])
  })

  test('the proxy takes precedence over the cookie when it announces an accepted user', async () => {
    const { as, announced } = await behindProxy()
    const both = announced('anna')
    both.cookie = (await as('admin')).cookie
    expect((await both.session()).user?.username).toBe('anna')
  })
})
