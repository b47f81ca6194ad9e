/** The API page in a browser: layout, use without scripts, search, and links into it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type RunningServer, spawnServer } from '../support/spawn.ts'
import { DESKTOP, getText, launchBrowser, overflowsAt, PHONE, type TestBrowser } from './browser.ts'

let browser: TestBrowser
let server: RunningServer

beforeAll(async () => {
  ;[browser, server] = await Promise.all([launchBrowser(), spawnServer()])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await server?.[Symbol.asyncDispose]()
})

const routes = (page: Page) => page.locator('#operations summary:visible')
const pausing = (page: Page) => page.locator('.docs-op', { has: page.locator('#postApiAccountsIdPause') })

test('everything fits, collapsed and expanded', async () => {
  await using visit = await browser.visit(`${server.url}/docs/api`)
  const { page, problems } = visit
  expect(await overflowsAt(page)).toEqual([])
  await page.evaluate(() => {
    for (const one of document.querySelectorAll('details.docs-op')) (one as HTMLDetailsElement).open = true
  })
  expect(await overflowsAt(page, [DESKTOP.width, PHONE.width])).toEqual([])
  expect(problems).toEqual([])
})

test('a link to a route opens it', async () => {
  await using visit = await browser.visit(`${server.url}/docs/api#postApiApiKeysSlash`)
  const { page } = visit
  const body = page.locator('#postApiApiKeysSlash')
  await body.waitFor({ state: 'visible' })
  expect(await getText(body)).toContain('limits[].maxValue')
  expect(await getText(body)).toContain(`${server.url}/api/api-keys/`)
})

test('the list filters while typing, and is complete again afterwards', async () => {
  await using visit = await browser.visit(`${server.url}/docs/api`)
  const { page } = visit
  const all = await routes(page).count()
  await page.keyboard.press('/')
  await page.keyboard.type('pause account_paused')
  expect(await routes(page).count()).toBe(2)
  expect(await pausing(page).isVisible()).toBe(true)
  await page.keyboard.type(' nonsense')
  expect(await routes(page).count()).toBe(0)
  expect(await page.getByText('No route matches.').isVisible()).toBe(true)
  await page.locator('main input[type=search]').fill('')
  expect(await routes(page).count()).toBe(all)
})

test('without scripts the search uses the server, and routes still expand', async () => {
  await using visit = await browser.visit(`${server.url}/docs/api`, { javaScriptEnabled: false })
  const { page } = visit
  await page.locator('main input[type=search]').fill('role_taken clone')
  await page.keyboard.press('Enter')
  await page.waitForURL(/q=role_taken/)
  expect(await routes(page).count()).toBe(1)
  expect(await getText(page.locator('#postApiDashboardRolesIdClone'))).toContain('roles:manage')
})
