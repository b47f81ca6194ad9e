/** The account pages with signed-in users: what needs a confirmation, and what a viewer sees. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { runInProcess } from '../support/cli.ts'
import { until } from '../support/until.ts'
import { createUpstream } from '../support/upstream/app.ts'
import { arrivedAt, getText, getTexts, launchBrowser, loadAndConnect, type TestBrowser } from './browser.ts'
import {
  expireConfirmations,
  PASSWORD,
  type ServerWithAdmin,
  send,
  signIn,
  startServerWithAdmin,
} from './people-world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser

beforeAll(async () => {
  browser = await launchBrowser()
}, 120_000)

afterAll(() => browser?.[Symbol.asyncDispose]())

/** No request leaves this machine. */
const NO_UPSTREAM = { CODEX_LB_UPSTREAM_BASE_URL: 'http://127.0.0.1:1', CODEX_LB_AUTH_BASE_URL: 'http://127.0.0.1:1' }

/** As under load: a dialog reports its closing in a separate task, and responses may arrive before it. */
const saysLateThatItClosed = (): void =>
  document.addEventListener(
    'close',
    (event) => {
      if (!event.isTrusted) return
      event.stopImmediatePropagation()
      setTimeout(() => event.target?.dispatchEvent(new Event('close')), 150)
    },
    true,
  )

/** Like a part of the page that is updated just then. */
const closeAndSwapElsewhere = (): void => {
  document.querySelector<HTMLElement>('dialog[open] [data-action=close]')?.click()
  const detail = { ctx: { target: document.querySelector('main') } }
  document.dispatchEvent(new CustomEvent('htmx:after:swap', { detail }))
}

/** Signs in, and shows the list with the one account that was imported on the machine itself. */
const openAccounts = async (page: Page, { url, server }: ServerWithAdmin): Promise<void> => {
  const path = join(server.dataDir, 'auth.json')
  writeFileSync(path, createUpstream().addAccount({ email: 'ada@example.test' }).authJson())
  const imported = await runInProcess(['accounts', 'import', path], { dataDir: server.dataDir })
  expect(imported.exitCode).toBe(0)
  await signIn(page, url)
  await until(async () => {
    await page.goto(`${url}/accounts`)
    return (await page.locator('.account-link').count()) === 1
  }, server.output)
}

test('an export asks for a confirmation, then shows the file; a deletion asks what happens to the log', async () => {
  const own = await startServerWithAdmin({ env: NO_UPSTREAM })
  await using server = own.server
  await using visit = await browser.visit(`${own.url}/login`)
  const { page } = visit
  await openAccounts(page, own)
  await page.click('.account-link')
  await page.click('.tabs >> text=Credentials')
  await page.waitForURL(/tab=credentials/)
  await page.waitForLoadState()
  await page.evaluate(saysLateThatItClosed)
  expireConfirmations(server)
  await page.click('text=Export for Codex')
  await page.fill('dialog[open] [name=password]', PASSWORD)
  await page.click('dialog[open] [type=submit]')
  await page.waitForSelector('dialog[open] .exported')
  const [download] = await Promise.all([page.waitForEvent('download'), page.click('text=Save file')])
  expect(download.suggestedFilename()).toBe('auth-ada-example.test.json')
  await page.evaluate(closeAndSwapElsewhere)
  await page.click('text=Delete…')
  await page.click('dialog[open] >> text=Delete and keep the log')
  await page.waitForURL(/\/accounts\?done=account_deleted/)
  expect(await getText(page.locator('.empty'))).toContain('No accounts yet')
})

test('a viewer sees masked names, no evidence, no credentials, and why the buttons are disabled', async () => {
  const own = await startServerWithAdmin({ env: NO_UPSTREAM })
  await using server = own.server
  const upstream = createUpstream()
  const path = join(server.dataDir, 'auth.json')
  writeFileSync(path, upstream.addAccount({ email: 'ada@example.test' }).authJson())
  await runInProcess(['accounts', 'import', path], { dataDir: server.dataDir })
  const invited = await send(
    own.url,
    'POST',
    '/api/dashboard-users',
    { username: 'vera', roleId: 'role_viewer' },
    own.cookie,
  )
  const { invite } = (await invited.json()) as { invite: { token: string } }
  await using visit = await browser.visit(`${own.url}/invite/${invite.token}`)
  const { page } = visit
  await page.fill('[name=password]', PASSWORD)
  await Promise.all([page.waitForURL(/dashboard/), page.click('#form-invite [type=submit]')])
  await until(async () => {
    await page.goto(`${own.url}/accounts`)
    return (await page.locator('.account-link').count()) === 1
  }, own.server.output)
  expect(await getTexts(page.locator('.account-link'))).toEqual(['a***@example.test'])
  expect(await page.locator('[name=accountIds], .bulk').count()).toBe(0)
  await page.click('.account-link')
  await page.locator('.tabs a').first().waitFor()
  expect(await getTexts(page.locator('.tabs a'))).toEqual(['Usage', 'Statement', 'Routing', 'Events'])
  expect(await page.locator('.account-head button:not(:disabled)').count()).toBe(0)
  expect(await getText(page.locator('.action-reasons'))).toBe('Your role can view accounts but not change them.')
  expect(await page.content()).not.toContain('ada@')
  expect(visit.problems).toEqual([])
})

test('text typed beside a live part stays when the session ends elsewhere; a field with focus alone does not prevent the redirect', async () => {
  const own = await startServerWithAdmin({ env: NO_UPSTREAM })
  await using _server = own.server
  await using visit = await browser.visit(`${own.url}/login`)
  const { page } = visit
  await openAccounts(page, own)
  const account = new URL((await page.locator('.account-link').getAttribute('href')) ?? '', own.url)
  account.searchParams.set('tab', 'routing')
  await loadAndConnect(page, () => page.goto(account.href))
  await page.fill('[name=alias]', 'typed for long')
  await page.locator('h1').click()
  const asked = page.waitForResponse((response) => response.status() === 401 && response.url().includes('/accounts/'))
  await page.evaluate(() => fetch('/api/dashboard-auth/logout-all', { method: 'POST' }))
  await asked
  await page.locator('.signed-out').waitFor()
  expect(await page.locator('.unlive').isVisible()).toBe(false)
  expect(await page.inputValue('[name=alias]')).toBe('typed for long')
  expect(await page.locator('.offline').isVisible()).toBe(false)
  await page.evaluate(() => document.querySelector<HTMLFormElement>('form[data-edited]')?.reset())
  await page.focus('[name=alias]')
  await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')))
  await arrivedAt(page, '/login')
})
