/** Users in a browser: the first password, invites, the second factor, confirmations, and new users of the proxy. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { spawnServer } from '../support/spawn.ts'
import { getText, getTexts, held, launchBrowser, overflows, type TestBrowser, untilEmpty } from './browser.ts'
import {
  codeFor,
  expireConfirmations,
  getCookie,
  getUrl,
  inviteLink,
  OTHER_PASSWORD,
  openAs,
  PASSWORD,
  type ServerWithAdmin,
  send,
  signIn,
  startServerWithAdmin,
} from './people-world.ts'

/** Several browsers and servers in one test, on machines with little to spare. */
setDefaultTimeout(120_000)

let browser: TestBrowser
/** With only `admin`. */
let owned: ServerWithAdmin
/** Where tests add users and roles. Tests that change `admin` or end all sessions start their own server. */
let team: ServerWithAdmin

beforeAll(async () => {
  ;[browser, owned, team] = await Promise.all([launchBrowser(), startServerWithAdmin(), startServerWithAdmin()])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await Promise.all([owned, team].map((one) => one?.server[Symbol.asyncDispose]()))
})

test('a page that is being left opens no stream, which would be rejected after signing out', async () => {
  await using visit = await openAs(browser, owned, '/health/live')
  const { page } = visit
  const leaving = await held(page, '**/api/dashboard-auth/logout')
  await page.goto(`${owned.url}/dashboard`, { waitUntil: 'commit' })
  const signOut = page.locator('form[action$="/logout"]').first()
  await signOut.evaluate((form) => (form as HTMLFormElement).requestSubmit())
  await leaving.asked
  const begun: string[] = []
  page.on('request', (request) => {
    if (new URL(request.url()).pathname === '/api/events') begun.push(request.url())
  })
  await page.waitForTimeout(1500) // a page that stays has its stream after half a second
  leaving.letGo()
  await page.waitForURL(/\/login/)
  expect(begun).toEqual([])
  // two pages are left while they load, which may abort their scripts
  expect(visit.problems.filter((problem) => !problem.includes('net::ERR_ABORTED'))).toEqual([])
})

describe.each([
  { title: 'with script', name: 'scripted', javaScriptEnabled: true },
  { title: 'without script', name: 'plain', javaScriptEnabled: false },
])('$title', ({ name, javaScriptEnabled }) => {
  test('from the first password to a signed-in administrator, out and in again', async () => {
    await using server = await spawnServer()
    const url = getUrl(server)
    await using visit = await browser.visit(`${url}/dashboard`, { javaScriptEnabled })
    const { page } = visit
    await page.click('text=Set a password')
    expect(await getText(page.locator('h1'))).toBe('Choose a password')
    await page.fill('[name=password]', PASSWORD)
    await Promise.all([page.waitForURL(`${url}/dashboard`), page.click('#form-setup [type=submit]')])
    await page.click('summary.menu-button:not(.bell-button)')
    expect(await getText(page.locator('.menu-who'))).toMatch(/admin\s+Admin/)
    await Promise.all([page.waitForURL(/\/login/), page.click('text=Sign out')])
    expect(await getText(page.locator('[role=status].done'))).toContain('signed out')
    expect(await page.locator('[name=username]').count()).toBe(0)
    await signIn(page, url)
    expect(visit.problems).toEqual([])
  })

  test('a wrong password is reported in the form, and the sign-in leads to the requested page', async () => {
    await using visit = await browser.visit(`${owned.url}/settings/access`, { javaScriptEnabled })
    const { page } = visit
    expect(new URL(page.url()).pathname).toBe('/login')
    await page.fill('[name=password]', 'not the password')
    await page.click('#form-login [type=submit]')
    await page.waitForSelector('#form-login .problem-line')
    expect(await getText(page.locator('#form-login .problem-line'))).toContain('Wrong user name or password')
    await page.fill('[name=password]', PASSWORD)
    await Promise.all([page.waitForURL(`${owned.url}/settings/access`), page.click('#form-login [type=submit]')])
    expect(await getTexts(page.locator('.person .person-title'))).toEqual([expect.stringContaining('admin')])
  })

  test('an invite creates a user once; afterwards the sign-in asks for a name', async () => {
    const confirmed = { ...team, cookie: await getCookie(team.url, { username: 'admin' }) }
    const link = await inviteLink(confirmed, `grace.${name}`, 'role_viewer')
    await using visit = await browser.visit(link, { javaScriptEnabled })
    const { page } = visit
    expect(await getText(page.locator('.panel'))).toMatch(/admin invited you to this Sluice as\s+Viewer/)
    const username = `hopper.${name}`
    await page.fill('[name=username]', username)
    await page.fill('[name=password]', OTHER_PASSWORD)
    await Promise.all([page.waitForURL(`${team.url}/dashboard`), page.click('#form-invite [type=submit]')])
    const dead = await page.goto(link)
    expect(dead?.status()).toBe(404)
    expect(await getText(page.locator('h1'))).toBe('This invite no longer works')

    await using second = await browser.visit(`${team.url}/login`, { javaScriptEnabled })
    await signIn(second.page, team.url, { username, password: OTHER_PASSWORD })
    await second.page.goto(`${team.url}/settings`)
    expect(await second.page.locator('#access').count()).toBe(1)
    expect(await second.page.locator('#access-people, #form-security').count()).toBe(0)
    expect(team.server.output()).not.toContain(link.split('/').at(-1) ?? 'the token')
  })

  test('the first password from another machine needs the token from the log', async () => {
    await using server = await spawnServer({
      env: { CODEX_LB_DASHBOARD_BOOTSTRAP_TOKEN: 'a-token-of-the-environment' },
    })
    const url = getUrl(server)
    await using visit = await browser.visit(`${url}/health/live`, { javaScriptEnabled })
    const { page } = visit
    await page.setExtraHTTPHeaders({ 'x-forwarded-for': '203.0.113.9' })
    await page.goto(`${url}/dashboard`)
    expect(new URL(page.url()).pathname).toBe('/setup')
    await page.fill('[name=bootstrapToken]', 'not the token at all')
    await page.fill('[name=password]', PASSWORD)
    await page.click('#form-setup [type=submit]')
    await page.waitForSelector('#form-setup .problem-line')
    expect(await getText(page.locator('#form-setup .problem-line'))).toContain('token is wrong')
    await page.fill('[name=bootstrapToken]', 'a-token-of-the-environment')
    await page.fill('[name=password]', PASSWORD)
    await Promise.all([page.waitForURL(`${url}/dashboard`), page.click('#form-setup [type=submit]')])
  })
})

describe('the second factor', () => {
  test('is set up when it becomes required, and needed from then on', async () => {
    const own = await startServerWithAdmin()
    await using server = own.server
    const link = await inviteLink(own, 'grace', 'role_viewer')
    await using visit = await openAs(browser, own, '/me/two-factor?return=/me')
    const { page } = visit
    const secret = await setUpTotp(page)
    await page.waitForURL(`${own.url}/me`)
    await page.goto(`${own.url}/settings`)
    await page.check('#form-security [type=checkbox][name=totpRequiredOnLogin]')
    await page.click('#form-security button')
    await page.waitForSelector('.done')

    await using other = await browser.visit(link)
    await other.page.fill('[name=password]', OTHER_PASSWORD)
    await Promise.all([other.page.waitForURL(/\/me\/two-factor/), other.page.click('#form-invite [type=submit]')])
    expect(await getText(other.page.locator('.note'))).toContain('Set it up to continue')
    await setUpTotp(other.page)
    await other.page.waitForURL(`${own.url}/dashboard`)

    await using again = await browser.visit(`${own.url}/login`)
    await again.page.fill('[name=username]', 'admin')
    await again.page.fill('[name=password]', PASSWORD)
    await Promise.all([again.page.waitForURL(/\/totp/), again.page.click('#form-login [type=submit]')])
    await again.page.fill('[name=code]', codeFor(secret, 1))
    await Promise.all([again.page.waitForURL(`${own.url}/dashboard`), again.page.click('#form-totp [type=submit]')])
    expect(server.output()).not.toContain(secret)
  })
})

describe('confirming a sensitive change', () => {
  test('opens over the form, which is then submitted again automatically', async () => {
    await using visit = await openAs(browser, team, '/settings/access')
    const { page } = visit
    expireConfirmations(team.server)
    await page.click('#invite > summary')
    await page.fill('#form-invite [name=username]', 'vera')
    await page.click('#form-invite [type=submit]')
    await page.waitForSelector('dialog[open] #form-confirm')
    await page.fill('#form-confirm [name=password]', 'not the password')
    await page.click('#form-confirm [type=submit]')
    await page.waitForSelector('#form-confirm .problem-line')
    await page.fill('#form-confirm [name=password]', PASSWORD)
    await page.click('#form-confirm [type=submit]')
    await page.waitForSelector('dialog[open] .command code')
    expect(await getText(page.locator('dialog code'))).toMatch(new RegExp(`^${team.url}/invite/[\\w-]{43}$`))
    await Promise.all([page.waitForEvent('load'), page.click('dialog >> text=Done')])
    const people = await getTexts(page.locator('.person .person-title strong'))
    expect(people.filter((name) => name === 'vera')).toHaveLength(1)
  })

  test('without scripts it is a page that returns', async () => {
    await using visit = await openAs(browser, team, '/settings/access', { javaScriptEnabled: false })
    const { page } = visit
    expireConfirmations(team.server)
    await page.reload()
    await page.click('#invite > summary')
    await page.fill('#form-invite [name=username]', 'edith')
    await Promise.all([page.waitForURL(/\/confirm/), page.click('#form-invite [type=submit]')])
    expect(await getText(page.locator('.problem-line'))).toContain('submit the form again')
    await page.fill('[name=password]', PASSWORD)
    await Promise.all([page.waitForURL(`${team.url}/settings/access`), page.click('#form-confirm [type=submit]')])
    await page.click('#invite > summary')
    await page.fill('#form-invite [name=username]', 'edith')
    await page.click('#form-invite [type=submit]')
    expect(await getText(page.locator('main .command code'))).toContain(`${team.url}/invite/`)
  })

  test('a role, a disabled user and a deleted one, each in place', async () => {
    await acceptInvite({ ...team, cookie: await getCookie(team.url, { username: 'admin' }) }, 'ada', 'role_viewer')
    await using visit = await openAs(browser, team, '/settings/access')
    const { page, problems } = visit
    page.on('dialog', (dialog) => dialog.accept())
    const row = page.locator('.person', { hasText: 'ada' })
    const click = (label: string) =>
      Promise.all([
        page.waitForResponse((response) => response.url().includes('done=')),
        row.locator(`button:text-is("${label}")`).click(),
      ])
    const press = async (label: string) => {
      await row.locator('summary').click()
      await click(label)
    }
    await row.locator('summary').click()
    await row.locator('select').selectOption({ label: 'Operator' })
    await click('Save')
    await page.waitForSelector('.done')
    expect(await getText(row.locator('.person-role'))).toBe('Operator')
    await page.reload()
    await press('Disable')
    await row.locator('.badge:text("Disabled")').waitFor()
    await page.reload()
    await press('Delete')
    await row.waitFor({ state: 'detached' })
    expect(problems).toEqual([])
  })
})

test('a form submitted after the session ended keeps its content, and is sent again after a sign-in elsewhere', async () => {
  await using visit = await openAs(browser, owned, '/keys/new')
  const { page } = visit
  await page.fill('[name=name]', 'typed for long')
  const elsewhere = await page.context().newPage()
  await elsewhere.goto(`${owned.url}/keys`)
  await elsewhere.click('summary.menu-button:not(.bell-button)')
  await Promise.all([elsewhere.waitForURL(/\/login/), elsewhere.click('text=Sign out')])
  await page.click('#form-key [type=submit]')
  expect(await getText(page.locator('#form-key .problem-line'))).toContain('You are signed out.')
  expect([new URL(page.url()).pathname, await page.inputValue('[name=name]')]).toEqual(['/keys/new', 'typed for long'])
  await page.locator('.signed-out').waitFor() // its own stream has ended, too
  expect([new URL(page.url()).pathname, await page.inputValue('[name=name]')]).toEqual(['/keys/new', 'typed for long'])
  const [entrance] = await Promise.all([
    page.waitForEvent('popup'),
    page.click('#form-key >> text=Sign in in another tab'),
  ])
  await signIn(entrance, owned.url)
  await page.click('#form-key [type=submit]')
  await page.locator('.command-key code').waitFor()
  expect(await page.content()).toContain('typed for long')
})

test('with guest access, a user whose session ended can continue as a guest or sign in', async () => {
  const own = await startServerWithAdmin()
  await using _server = own.server
  await send(own.url, 'PATCH', '/api/settings', { guestAccessEnabled: true }, own.cookie)
  await using visit = await openAs(browser, own, '/keys/new')
  const { page } = visit
  await page.fill('[name=name]', 'typed for long')
  await send(own.url, 'POST', '/api/dashboard-auth/logout-all', {}, own.cookie)
  await page.click('#form-key [type=submit]')
  expect(await getText(page.locator('#form-key .problem-line'))).toContain('You are signed out.')
  await page.goto(`${own.url}/accounts`)
  expect(new URL(page.url()).pathname).toBe('/login')
  await Promise.all([page.waitForURL(`${own.url}/accounts`), page.click('#form-guest [type=submit]')])
  expect(await page.locator('.top').getByText('Sign in').count()).toBe(1)
  await signIn(page, own.url)
  await page.locator('summary.menu-button:not(.bell-button)').waitFor()
})

test('an open log redirects to the sign-in when the session ends elsewhere, and keeps an unsaved filter', async () => {
  const own = await startServerWithAdmin()
  await using _server = own.server
  for (const isTyping of [true, false]) {
    await using visit = await openAs(browser, own, '/logs', { untilLive: true })
    const { page } = visit
    if (isTyping) await page.fill('[name=search]', 'half a ques')
    const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ')
    await send(own.url, 'POST', '/api/dashboard-auth/logout-all', {}, cookie)
    if (!isTyping) await page.waitForURL(`${own.url}/login?return=%2Flogs`)
    else {
      await page.locator('.signed-out').waitFor()
      expect(await page.locator('.offline').isVisible()).toBe(false)
      expect(await page.inputValue('[name=search]')).toBe('half a ques')
    }
  }
})

test('a changed password does not stay in the form, nor does a created role', async () => {
  const own = await startServerWithAdmin()
  await using _server = own.server
  await using visit = await openAs(browser, own, '/me')
  const { page } = visit
  await page.fill('[name=currentPassword]', PASSWORD)
  await page.fill('[name=newPassword]', OTHER_PASSWORD)
  await page.click('#form-password [type=submit]')
  await page.locator('.done', { hasText: 'Password changed' }).waitFor()
  await untilEmpty(page, '[name=currentPassword]')
  await untilEmpty(page, '[name=newPassword]')
  await page.goto(`${own.url}/settings/access`)
  await page.click('text=Create role')
  await page.fill('#form-new-role [name=name]', 'Night shift')
  await page.click('#form-new-role [type=submit]')
  await page.locator('.role', { hasText: 'Night shift' }).waitFor()
  await untilEmpty(page, '#form-new-role [name=name]')
})

test('a role is cloned from its own row, changed and listed; the form is then gone', async () => {
  await using visit = await openAs(browser, team, '/settings/access')
  const { page, problems } = visit
  const row = page.locator('.role', { hasText: 'Operator' })
  await row.locator('summary').click()
  await row.locator('text=Copy role').click()
  const form = page.locator('#form-clone-role')
  expect(await form.locator('[name=name]').inputValue()).toBe('Copy of Operator')
  await form.locator('[name=name]:focus').waitFor()
  await form.locator('[name=name]').fill('Night shift')
  await form.locator('[value="accounts:write:all"]').uncheck()
  expect(await overflows(page)).toEqual([])
  await form.locator('button').click()
  await page.locator('.role', { hasText: 'Night shift' }).waitFor()
  expect(await form.count()).toBe(0)
  expect(await page.locator('#new-role[open]').count()).toBe(0)
  const roles = (await (
    await fetch(`${team.url}/api/dashboard-roles`, { headers: { cookie: team.cookie } })
  ).json()) as {
    name: string
    grants: { permission: string }[]
  }[]
  const grants = roles.find(({ name }) => name === 'Night shift')?.grants.map(({ permission }) => permission)
  expect(grants).toContain('accounts:read')
  expect(grants).not.toContain('accounts:write')
  expect(problems).toEqual([])
})

describe('a proxy that sends user identities', () => {
  test('a rejected user sees their name, and has access once added', async () => {
    await using server = await spawnServer({
      env: {
        CODEX_LB_DASHBOARD_AUTH_MODE: 'trusted_header',
        CODEX_LB_FIREWALL_TRUST_PROXY_HEADERS: 'true',
        CODEX_LB_FIREWALL_TRUSTED_PROXY_CIDRS: '127.0.0.0/8,::1/128',
      },
    })
    const url = getUrl(server)
    await using boss = await browser.visit(`${url}/health/live`)
    await boss.page.setExtraHTTPHeaders({ 'remote-user': 'boss@example.test' })
    await boss.page.goto(`${url}/settings/access`)
    expect(await getTexts(boss.page.locator('.person .person-title strong'))).toEqual(['boss.example.test'])
    expect(await boss.page.locator('#providers').count()).toBe(1)
    await setUpAsProxy(url, 'boss@example.test')
    const cookie = await getCookie(url)
    await send(url, 'PATCH', '/api/auth-providers/idp_trusted_header', { unknownIdentityRoleId: null }, cookie)

    await using visit = await browser.visit(`${url}/health/live`)
    await visit.page.setExtraHTTPHeaders({ 'remote-user': 'New.Person@example.test' })
    await visit.page.goto(`${url}/settings`)
    expect(new URL(visit.page.url()).pathname).toBe('/auth/pending')
    expect(await getText(visit.page.locator('.panel'))).toContain('new.person@example.test')
    expect(await visit.page.locator('text=Sign in with a password').count()).toBe(1)
    const expectedIdentity = { provider: 'trusted_header', subject: 'new.person@example.test' }
    const person = { username: 'newcomer', roleId: 'role_viewer', ssoOnly: true, expectedIdentity }
    await send(url, 'POST', '/api/dashboard-users', person, cookie)
    await Promise.all([visit.page.waitForURL(`${url}/settings`), visit.page.click('a:text-is("Try again")')])
    expect(await getText(visit.page.locator('#access'))).toMatch(/Signed in as newcomer \(Viewer\)/)
  })
})

test('the first page is small', async () => {
  const load = async (path: string) => {
    const response = await fetch(owned.url + path, {
      headers: { accept: 'text/html', 'accept-encoding': 'gzip' },
      decompress: false,
    })
    return new Uint8Array(await response.arrayBuffer())
  }
  const page = await load('/login')
  const assets = [...new TextDecoder().decode(page).matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path = '']) => path)
  expect(assets.length).toBe(4)
  const sizes = await Promise.all(assets.map(async (path) => (await load(path)).byteLength))
  expect(Bun.gzipSync(page).byteLength + sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60 * 1024)
})

/** Scans the QR code of the page and enters the first code. Returns the secret. */
const setUpTotp = async (page: Page): Promise<string> => {
  const secret = await page.locator('[name=secret]').inputValue()
  await page.fill('[name=code]', codeFor(secret))
  await page.click('#form-two-factor [type=submit]')
  await page.click('text=I saved the codes')
  return secret
}

const acceptInvite = async (own: ServerWithAdmin, username: string, roleId: string): Promise<void> => {
  const token = (await inviteLink(own, username, roleId)).split('/').at(-1)
  await send(own.url, 'POST', '/api/dashboard-auth/invite/accept', { token, password: OTHER_PASSWORD })
}

/** The fallback password, set by a proxy user who confirms with a second factor created for it. */
const setUpAsProxy = async (url: string, subject: string): Promise<void> => {
  const headers = { 'content-type': 'application/json', accept: 'application/json', 'remote-user': subject }
  const post = async (path: string, body: unknown, cookie = ''): Promise<Response> => {
    const response = await fetch(`${url}/api/dashboard-auth/${path}`, {
      method: 'POST',
      headers: { ...headers, cookie },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return response
  }
  const { secret } = (await (await post('totp/setup/start', {})).json()) as { secret: string } // as: the API's document
  await post('totp/setup/confirm', { secret, code: codeFor(secret) })
  const confirmed = await post('step-up', { code: codeFor(secret, 1) })
  await post('password/setup', { password: PASSWORD }, confirmed.headers.getSetCookie()[0]?.split(';')[0])
}
