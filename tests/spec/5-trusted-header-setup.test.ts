/** Spec §5, rules 1 and 6 of trusted-header mode: while there is no local password, and how the local administrator is created. */
import { describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { commit } from '../../db/commit.ts'
import { users } from '../../db/schema/people.ts'
import { setGuestPassword } from '../../src/model/users/guest.ts'
import { testApp } from '../support/app.ts'
import { type Browser, PASSWORD, people, REMOTE, REQUEST_FORMATS, TOTP_SECRET } from '../support/people.ts'
import { behindProxy, HEADER } from '../support/proxied.ts'

const AUTH = '/api/dashboard-auth'
const HTML = { headers: { accept: 'text/html' } }
const TO_SETUP = '/setup?return=%2Fsettings%2Faccess'

/** Status, redirect target, and the heading of a page. */
const shown = async (browser: Pick<Browser, 'ask'>, path: string) => {
  const response = await browser.ask(`GET ${path}`, HTML)
  const text = await response.text()
  const [, heading] = /<h1[^>]*>(.*?)<\/h1>/.exec(text) ?? []
  return { status: response.status, to: response.headers.get('location'), heading, text }
}

const MESSAGE = { status: 401, to: null, heading: 'Open Sluice through your reverse proxy' }

describe('§5 Trusted-header 1: without the header and without a local password', () => {
  test.each(['/login', '/setup', '/dashboard', '/login?return=%2Fkeys', '/setup?return=%2Fkeys'])(
    '%s shows that the reverse proxy is needed',
    async (path) => {
      const { browser } = await behindProxy()
      const page = await shown(browser(), path)
      expect(page).toMatchObject(MESSAGE)
      expect(page.text).not.toContain('type="password"')
    },
  )

  test.each(['/login', '/setup'])('%s says so to a client that claims an identity, too', async (path) => {
    const { app, announced } = await behindProxy({ CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '10.0.0.0/8' })
    announced('anna')
    const response = await app.ask(`GET ${path}`, { peer: REMOTE, headers: { ...HTML.headers, [HEADER]: 'anna' } })
    expect(response.status).toBe(401)
    expect(await response.text()).toContain(MESSAGE.heading)
  })

  test('a guest password or a disabled local user gives no access', async () => {
    const { app, add, browser } = await behindProxy()
    await app.change({ guestAccessEnabled: true })
    await commit(app.db, (tx) => setGuestPassword(tx, 'some hash', { id: 'test', method: null, address: null, at: 0 }))
    expect(await shown(browser(), '/login')).toMatchObject(MESSAGE)
    await add({ username: 'admin', role: 'admin', status: 'disabled' })
    expect(await shown(browser(), '/login')).toMatchObject(MESSAGE)
  })

  test('a local password is offered as before', async () => {
    const { add, browser } = await behindProxy()
    await add({ username: 'admin', role: 'admin' })
    expect(await shown(browser(), '/login')).toMatchObject({ status: 200, heading: 'Sign in' })
    expect(await shown(browser(), '/setup')).toMatchObject({ status: 302, to: '/login' })
  })

  test('in standard mode the first password is still chosen there', async () => {
    const app = await testApp({ accounts: 0 })
    const { browser } = people(app)
    expect(await shown(browser(), '/login')).toMatchObject({ status: 302, to: '/setup' })
    expect(await shown(browser(), '/setup')).toMatchObject({ status: 200, heading: 'Choose a password' })
  })
})

describe('§5 Trusted-header 6: the local administrator', () => {
  test.each(REQUEST_FORMATS)(
    'an Admin is sent to two-factor authentication, to a confirmation, and creates it (%s)',
    async (how) => {
      const { announced, browser, code } = await behindProxy()
      const anna = announced('anna')
      for (const path of ['/me', '/settings/access'])
        expect((await shown(anna, path)).text.includes('href="/setup?return=')).toBe(true)
      const twoFactor = await shown(anna, TO_SETUP)
      expect([twoFactor.status, twoFactor.to]).toEqual([302, `/me/two-factor?return=${encodeURIComponent(TO_SETUP)}`])
      const enroll = await shown(anna, twoFactor.to ?? '')
      expect(enroll.text).toContain('local administrator')
      expect(
        (await anna.send(how, `POST ${AUTH}/totp/setup/confirm`, { secret: TOTP_SECRET, code: code() })).status,
      ).toBeLessThan(400)
      expect((await shown(anna, TO_SETUP)).to).toStartWith('/confirm?return=%2Fsetup')
      expect((await anna.ask(`POST ${AUTH}/step-up`, { json: { code: code(1) } })).status).toBe(200)
      expect(await shown(anna, TO_SETUP)).toMatchObject({ status: 200, heading: 'Create a local administrator' })
      const made = await anna.send(how, `POST ${AUTH}/password/setup?return=%2Fsettings%2Faccess`, {
        password: PASSWORD,
      })
      expect(made.status).toBeLessThan(400)
      for (const path of ['/me', '/settings/access'])
        expect((await shown(anna, path)).text.includes('href="/setup')).toBe(false)
      const alone = browser()
      expect((await alone.ask(`POST ${AUTH}/password/login`, { json: { password: PASSWORD } })).status).toBe(200)
      expect((await alone.session()).user).toMatchObject({ username: 'admin', role: { slug: 'admin' } })
    },
  )

  test.each([
    ['viewer', 'permission_required'],
    ['operator', 'permission_required'],
    ['member', 'permission_required'],
    ['people', 'insufficient_delegation'],
  ])('is not available to the role %s, who finds no link to it', async (role, code) => {
    const { app, addRole, announced } = await behindProxy()
    const custom = await addRole('people', { 'users:manage': 'all', 'dashboard:read': 'all' })
    const anna = announced('anna')
    await anna.session()
    const roleId = role === 'people' ? custom : `role_${role}`
    await commit(app.db, (tx) => tx.update(users).set({ roleId }).where(eq(users.username, 'anna')).run())
    const page = await shown(anna, '/setup')
    expect([page.status, page.text.includes(`<code>${code}</code>`)]).toEqual([403, true])
    for (const path of ['/me', '/settings/access'])
      expect((await shown(anna, path)).text.includes('href="/setup')).toBe(false)
  })

  test('a rejected identity is sent to the page that explains it', async () => {
    const { app, announced } = await behindProxy()
    const anna = announced('anna')
    await anna.session()
    await commit(app.db, (tx) => tx.update(users).set({ status: 'disabled' }).where(eq(users.username, 'anna')).run())
    for (const path of ['/login', '/setup']) expect((await shown(anna, path)).to).toStartWith('/auth/pending')
  })
})
