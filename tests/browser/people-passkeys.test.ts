/** Passkeys in a real browser with a virtual authenticator: adding, signing in and confirming. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { getText, getTexts, launchBrowser, type TestBrowser } from './browser.ts'
import { expireConfirmations, signIn, startServerWithAdmin } from './people-world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser

beforeAll(async () => {
  browser = await launchBrowser()
}, 120_000)

afterAll(() => browser?.[Symbol.asyncDispose]())

test('a passkey is added, signs in, confirms a change, and is removed', async () => {
  const { server, url } = await startServerWithAdmin()
  await using _server = server
  await using visit = await browser.visit(`${url}/login`)
  const { page } = visit
  page.on('dialog', (dialog) => dialog.accept())
  await addAuthenticator(page)
  expect(await page.locator('text=Use a passkey').count()).toBe(0)
  await signIn(page, url)
  await page.goto(`${url}/me`)
  await page.fill('[data-passkey] [name=name]', 'Test laptop')
  await Promise.all([page.waitForURL(/done=passkey_added/), page.click('[data-passkey] button')])
  expect(await getTexts(page.locator('#passkeys .row strong'))).toEqual(['Test laptop'])

  await page.click('summary.menu-button:not(.bell-button)')
  await Promise.all([page.waitForURL(/\/login/), page.click('text=Sign out')])
  await Promise.all([page.waitForURL(`${url}/dashboard`), page.click('text=Use a passkey')])
  expect(await getText(page.locator('.menu-name'))).toBe('admin')

  await page.goto(`${url}/settings/access`)
  expireConfirmations(server)
  await page.click('#invite > summary')
  await page.fill('#form-invite [name=username]', 'ada')
  await page.click('#form-invite [type=submit]')
  await page.click('dialog[open] >> text=Use a passkey')
  await page.waitForSelector('dialog[open] .command code')

  await page.goto(`${url}/me`)
  await page.click('#passkeys summary')
  const isRemoved = page.waitForResponse((response) => response.url().includes('done=passkey_removed'))
  await Promise.all([isRemoved, page.click('#passkeys >> text=Remove')])
  await page.locator('#passkeys .row').waitFor({ state: 'detached' })
})

test('adding one asks for a confirmation first, and then continues', async () => {
  const { server, url } = await startServerWithAdmin()
  await using _server = server
  await using visit = await browser.visit(`${url}/login`)
  const { page } = visit
  await addAuthenticator(page)
  await signIn(page, url)
  await page.goto(`${url}/me`)
  expireConfirmations(server)
  await page.fill('[data-passkey] [name=name]', 'Test laptop')
  await page.click('[data-passkey] button')
  await page.fill('dialog[open] [name=password]', 'correct horse battery')
  await Promise.all([page.waitForURL(/done=passkey_added/), page.click('dialog[open] [type=submit]')])
  expect(await page.locator('#passkeys .row').count()).toBe(1)
})

test('on an address where passkeys cannot be used, the page says where they can', async () => {
  const { server, url } = await startServerWithAdmin()
  await using _server = server
  await using visit = await browser.visit(`${server.url}/login`)
  await signIn(visit.page, server.url)
  await visit.page.goto(`${server.url}/me`)
  expect(await visit.page.locator('[data-passkey]').count()).toBe(0)
  expect(await visit.page.locator('#passkeys a:text("Open ")').getAttribute('href')).toBe(`${url}/me`)
})

const addAuthenticator = async (page: Page): Promise<void> => {
  const cdp = await page.context().newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}
