/** Copy buttons without a clipboard API, which browsers omit on plain http except for localhost. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { getText, launchBrowser, type TestBrowser } from './browser.ts'
import { type ServerWithAdmin, signIn, startServerWithAdmin } from './people-world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let owned: ServerWithAdmin
let url: string

beforeAll(async () => {
  ;[browser, owned] = await Promise.all([
    launchBrowser({ flags: ['--host-resolver-rules=MAP sluice.lan 127.0.0.1'] }),
    startServerWithAdmin(),
  ])
  url = `http://sluice.lan:${owned.server.port}`
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await owned?.server[Symbol.asyncDispose]()
})

const makeKey = async (page: Page) => {
  await signIn(page, url)
  expect(await page.evaluate(() => 'clipboard' in navigator)).toBe(false)
  await page.goto(`${url}/keys/new`)
  await page.fill('[name=name]', 'laptop')
  await page.click('#form-key [type=submit]')
  return page.locator('.command-key')
}

test('a new key can be copied without a secure context', async () => {
  await using visit = await browser.visit(`${url}/login`)
  const { page } = visit
  const shown = await makeKey(page)
  await shown.locator('button').click()
  await shown.locator('button.is-done').waitFor()
  const key = await getText(shown.locator('code'))
  await page.goto(`${url}/keys`)
  await page.locator('main input[type=search]').press('Control+v')
  expect(await page.inputValue('main input[type=search]')).toBe(key)
  expect(visit.problems).toEqual([])
})

test('when the browser does not allow it, the text is selected with a hint', async () => {
  await using visit = await browser.visit(`${url}/login`)
  const { page } = visit
  const shown = await makeKey(page)
  await page.evaluate(() => {
    document.execCommand = () => false
  })
  await shown.locator('button').click()
  await shown.getByText('Not copied. It is selected: copy it with Ctrl+C.').waitFor()
  expect(await page.evaluate(() => String(getSelection()))).toBe(await getText(shown.locator('code')))
  expect(await shown.locator('button.is-done').count()).toBe(0)
})
