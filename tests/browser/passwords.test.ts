/** Password fields and recovery codes in a browser. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { launchBrowser, type TestBrowser } from './browser.ts'
import { codeFor, PASSWORD, type ServerWithAdmin, signIn, startServerWithAdmin } from './people-world.ts'

setDefaultTimeout(120_000)

let browser: TestBrowser
let owned: ServerWithAdmin

beforeAll(async () => {
  ;[browser, owned] = await Promise.all([launchBrowser(), startServerWithAdmin()])
}, 120_000)

afterAll(async () => {
  await browser?.[Symbol.asyncDispose]()
  await owned?.server[Symbol.asyncDispose]()
})

test('a button shows the password, and the form still signs in', async () => {
  await using visit = await browser.visit(`${owned.url}/login`)
  const { page } = visit
  const field = page.locator('#form-login [name=password]')
  await field.fill(PASSWORD)
  await page.getByRole('button', { name: 'Show password' }).click()
  expect([await field.getAttribute('type'), await field.inputValue()]).toEqual(['text', PASSWORD])
  await page.getByRole('button', { name: 'Hide password' }).click()
  expect(await field.getAttribute('type')).toBe('password')
  expect(await page.getByRole('textbox', { name: 'Password', exact: true }).count()).toBe(1)
  await page.click('#form-login button[type=submit]')
  await page.waitForURL(/\/dashboard/)
  expect(visit.problems).toEqual([])
})

test('without scripts there is no such button', async () => {
  await using visit = await browser.visit(`${owned.url}/login`, { javaScriptEnabled: false })
  expect(await visit.page.getByRole('button', { name: 'Show password' }).count()).toBe(0)
  expect(await visit.page.locator('main').textContent()).toContain('sluice user reset-password admin')
})

test('a new password is rated weak, fair or strong while typing', async () => {
  await using visit = await browser.visit(`${owned.url}/login`)
  const { page } = visit
  await signIn(page, owned.url)
  await page.goto(`${owned.url}/me`)
  const field = page.locator('[name=newPassword]')
  const hint = page.locator('[data-strength]')
  const before = await hint.textContent()
  for (const [text, says] of [
    ['short', 'Weak'],
    ['password1234', 'Weak'],
    ['aaaaaaaaaaaa', 'Weak'],
    ['tr0ubadour', 'Fair'],
    ['correct horse battery', 'Strong'],
  ] as const) {
    await field.fill(text)
    expect([text, await hint.textContent()]).toEqual([text, expect.stringMatching(new RegExp(`^${says}`))])
  }
  await field.fill('')
  expect(await hint.textContent()).toBe(before)
})

test('recovery codes are shown after setting up two-factor authentication, and one signs in', async () => {
  await using visit = await browser.visit(`${owned.url}/login`)
  const { page } = visit
  await signIn(page, owned.url)
  await page.goto(`${owned.url}/me/two-factor?return=%2Fme`)
  const secret = await page.locator('[name=secret]').inputValue()
  await page.fill('#form-two-factor [name=code]', codeFor(secret))
  await page.click('#form-two-factor button[type=submit]')
  await page.getByRole('heading', { name: 'Save your recovery codes' }).waitFor()
  const codes = ((await page.locator('.command code').textContent()) ?? '').split('\n')
  expect(codes).toHaveLength(10)
  await page.getByRole('link', { name: 'I saved the codes' }).click()
  await page.getByText('10 recovery codes left').waitFor()
  await using signedOut = await browser.visit(`${owned.url}/login`)
  const other = signedOut.page
  await other.fill('#form-login [name=password]', PASSWORD)
  await other.click('#form-login button[type=submit]')
  await other.waitForURL(/\/totp/)
  await other.getByText('Lost your authenticator?').click()
  await other.fill('#form-recovery [name=code]', codes[0]!.toUpperCase())
  await other.click('#form-recovery button[type=submit]')
  await other.waitForURL(/\/dashboard/)
  await other.goto(`${owned.url}/me`)
  await other.getByText('9 recovery codes left').waitFor()
  expect([...visit.problems, ...signedOut.problems]).toEqual([])
})
